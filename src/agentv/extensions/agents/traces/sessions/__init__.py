"""Readers of the session files that coding agents keep in their HOME."""
