"""Diagnostics, and explanations of their codes."""
