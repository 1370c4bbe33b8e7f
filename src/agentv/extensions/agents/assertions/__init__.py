"""Assertions on the work of an agent: files, changes, commands, counts of its trace (AGENTS.md section 7)."""
