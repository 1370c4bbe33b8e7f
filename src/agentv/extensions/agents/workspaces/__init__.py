"""Workspaces of trials: made, confined, compared with their baseline, removed (AGENTS.md section 2)."""
