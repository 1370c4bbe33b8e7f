"""Prompt library: logs of exams, and the gates of promotions (SPEC section 11)."""
