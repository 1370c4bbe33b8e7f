"""Targets of eval files and projects."""
