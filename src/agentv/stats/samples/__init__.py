"""Several samples of a case, and when to stop sampling."""
