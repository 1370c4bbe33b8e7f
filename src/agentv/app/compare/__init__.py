"""Comparison of runs: match their cases, test the differences, and collect evidence."""
