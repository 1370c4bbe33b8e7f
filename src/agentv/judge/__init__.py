"""Judges: they put a question to a model, and read its reply so strictly that no answer can grade itself."""
