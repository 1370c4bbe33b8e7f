"""Queries that should load a prompt by its description, or should not: cases that ask the judge."""
