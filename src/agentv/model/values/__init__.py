"""Plain data, messages and answers."""
