"""Cassettes and the cache of answers."""
