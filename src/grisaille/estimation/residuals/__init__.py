"""Whether the residuals of a fit are explained, and how large they are as a robust loss counts them."""
