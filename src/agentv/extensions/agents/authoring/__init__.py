"""Reading of `workspace`, `sandbox` and `variants`, with their older spellings (AGENTS.md section 2)."""
