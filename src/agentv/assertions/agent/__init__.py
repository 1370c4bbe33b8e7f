"""Assertions on what an agent did, and what it cost."""
