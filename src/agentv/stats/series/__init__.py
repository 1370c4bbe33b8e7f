"""Trends over a series of runs."""
