"""Reports of a run in the terminal, and the wording and numbers that all reports of a run share."""
