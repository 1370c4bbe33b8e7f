"""The database that a team's servers share: projects, tokens, runs and the audit log."""
