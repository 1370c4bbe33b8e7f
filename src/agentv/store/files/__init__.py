"""Files and directories of a run."""
