"""Completion of command lines in shells."""
