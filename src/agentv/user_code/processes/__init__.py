"""Other programs, and the processes of a run."""
