"""Standard errors under residuals that are correlated: what correlation they have, and what it does to estimates."""
