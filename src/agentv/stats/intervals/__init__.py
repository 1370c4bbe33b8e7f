"""Confidence intervals of rates and means, with or without clusters."""
