"""The journal of answers."""
