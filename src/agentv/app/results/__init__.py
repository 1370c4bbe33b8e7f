"""Stored runs: find, open, list, select, merge and delete."""
