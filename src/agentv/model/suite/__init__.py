"""Suites, cases, assertions, and the files they come from."""
