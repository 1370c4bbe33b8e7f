"""Power of a planned comparison."""
