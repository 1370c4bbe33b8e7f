"""Assertions on the words of an answer."""
