"""Files of workspaces: copied, placed and removed, never through links."""
