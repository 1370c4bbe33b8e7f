"""Targets as eval files and projects name them."""
