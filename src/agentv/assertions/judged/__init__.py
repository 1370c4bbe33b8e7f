"""Assertions that a judge grades."""
