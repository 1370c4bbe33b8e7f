"""Reads authored files into a Suite, or into every diagnostic of these files."""
