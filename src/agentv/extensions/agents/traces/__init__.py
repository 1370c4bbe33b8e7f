"""Traces in the formats of others, read into the one model and written from it (AGENTS.md section 3)."""
