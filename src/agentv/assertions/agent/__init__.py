"""Assertions on what an agent did, and on its cost."""
