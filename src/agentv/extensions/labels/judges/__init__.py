"""Judges compared on labelled answers, and probed with changed ones."""
