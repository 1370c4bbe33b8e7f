"""The commands, and the push of a run while it goes on."""
