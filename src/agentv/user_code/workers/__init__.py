"""Worker processes that run users' Python code (SPEC section 16)."""
