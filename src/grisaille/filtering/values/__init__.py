"""Log-likelihoods of filters without derivatives, for comparisons."""
