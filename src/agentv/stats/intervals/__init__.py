"""Confidence intervals of rates and means, clustered or not."""
