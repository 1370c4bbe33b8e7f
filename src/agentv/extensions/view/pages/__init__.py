"""The HTML report: a run, optionally compared with another one, as one self-contained file."""
