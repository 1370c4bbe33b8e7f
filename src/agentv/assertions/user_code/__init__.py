"""Assertions that run the user's code, and custom assertion types."""
