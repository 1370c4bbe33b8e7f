"""A run in the terminal, and the words and numbers that every report of it shares."""
