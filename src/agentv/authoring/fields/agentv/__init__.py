"""AgentV's dialect: older spellings and places of keys, translated to canonical nodes (SPEC sections 1, 3, 4 and 7)."""
