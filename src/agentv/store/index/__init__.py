"""The search index of a run, and deletion of runs."""
