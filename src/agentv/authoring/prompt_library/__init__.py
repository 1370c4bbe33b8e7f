"""The library of prompts: its directories, and the files of a prompt (SPEC section 11)."""
