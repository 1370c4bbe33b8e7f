"""Calls of users' Python functions."""
