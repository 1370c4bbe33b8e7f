"""A run as a file for other programs."""
