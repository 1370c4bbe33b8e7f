"""Labels by people, and what they say of a judge."""

SAMPLE = 60
"""Answers that are drawn unless somebody says otherwise: about what narrows most corrected rates to ±8 points."""
