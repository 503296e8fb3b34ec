"""Standard errors under residuals that hang together: what correlation they have, and what it does to estimates."""
