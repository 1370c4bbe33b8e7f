"""Scripts of several steps for coding agents."""
