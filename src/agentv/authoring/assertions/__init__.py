"""Entries of `assert:`, templates, and checks of assertion lists."""
