"""What people do with a library of prompts: one use case a module (SPEC section 11)."""
