"""Judges compared with people: agreement, and pass rates corrected by labels."""
