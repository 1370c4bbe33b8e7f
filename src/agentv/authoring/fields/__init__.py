"""Readers generated from declared classes: they turn nodes into frozen options."""
