"""Workspaces of trials: creation, sandboxes, comparison with the baseline, and removal (AGENTS.md section 2)."""
