"""Totals of runs, computed from rows."""
