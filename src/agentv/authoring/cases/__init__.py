"""Cases of a suite, from YAML, JSON Lines, CSV and Python."""
