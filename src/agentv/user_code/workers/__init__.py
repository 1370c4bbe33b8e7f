"""Worker processes that run users' Python (SPEC section 16)."""
