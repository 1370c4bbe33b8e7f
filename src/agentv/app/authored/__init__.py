"""Authored files: validated, fixed, converted, created."""
