"""Judges compared on labelled answers."""
