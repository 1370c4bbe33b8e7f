"""Runs that end when their comparison with an earlier run is decided: `--against RUN --until decided`."""
