"""Use cases of a prompt library, one a module (SPEC section 11)."""
