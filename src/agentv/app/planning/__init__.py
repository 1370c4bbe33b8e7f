"""Preparation of a run: apply settings, read suites and plan trials."""
