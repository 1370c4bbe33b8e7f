"""AgentV's projects: older spellings that `fixes` cannot rewrite where they stand, and keys without effect."""
