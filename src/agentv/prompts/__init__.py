"""Prompt library: exam logs and promotion gates (SPEC section 11)."""
