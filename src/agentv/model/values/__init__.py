"""Plain data, messages, answers and traces."""
