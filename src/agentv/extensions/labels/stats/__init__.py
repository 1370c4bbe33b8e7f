"""Judges compared with people: agreement, and pass rates corrected by labels."""

SAMPLE = 60
"""Answers that are drawn unless somebody says otherwise: about what narrows most corrected rates to ±8 points."""
