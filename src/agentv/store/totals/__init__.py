"""Totals computed from rows."""
