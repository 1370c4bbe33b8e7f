"""Recorded answers as a target."""
