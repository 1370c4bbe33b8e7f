"""Traces of stored runs, and of sessions that others recorded."""
