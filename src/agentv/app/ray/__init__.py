"""Trials on the machines of a Ray cluster: `--executor ray`."""
