"""Judges: the question put to a model, and its reply read so strictly that no answer can grade itself."""
