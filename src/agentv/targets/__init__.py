"""Systems under test: one file a provider, each its settings and how it answers (SPEC section 12)."""
