"""`workspace`, `sandbox` and `variants` as people write them, with their older spellings (AGENTS.md section 2)."""
