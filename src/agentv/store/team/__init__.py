"""The database that a team's servers share: projects, tokens, runs, labels and the audit log."""
