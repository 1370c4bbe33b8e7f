"""A library of prompts: what each sat and how it did, and the gates that only evidence opens (SPEC section 11)."""
