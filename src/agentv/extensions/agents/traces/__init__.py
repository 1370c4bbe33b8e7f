"""Conversion between other programs' trace formats and `Trace` (AGENTS.md section 3)."""
