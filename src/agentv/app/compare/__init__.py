"""Runs against each other: which cases belong together, what their differences show, and why."""
