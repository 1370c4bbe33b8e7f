"""Entries of `assert:` lists and templates, and the judges and embedders that they need."""
