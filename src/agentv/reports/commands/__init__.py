"""The output of commands other than `eval`."""
