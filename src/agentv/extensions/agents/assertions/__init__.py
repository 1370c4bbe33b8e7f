"""Assertions on what an agent did: tool calls, skills, files, changes, commands (AGENTS.md section 7)."""
