"""Runs that are over, or were: found, opened, listed, shown."""
