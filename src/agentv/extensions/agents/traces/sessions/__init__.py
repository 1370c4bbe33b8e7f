"""Session files that coding agents keep in their HOME, as traces."""
