"""Authored files as nodes with positions, and the diagnostics of a load."""
