"""Statistics on plain numbers, without access to files, rows or targets."""
