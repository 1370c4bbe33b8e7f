"""Assertions on the fields of an answer's JSON."""
