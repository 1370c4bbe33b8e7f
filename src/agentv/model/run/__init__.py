"""Trials, grades, verdicts, and totals of a run."""
