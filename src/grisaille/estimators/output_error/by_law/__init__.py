"""Output error where outputs declare laws of their measurements: the largest likelihood, by Fisher scoring."""
