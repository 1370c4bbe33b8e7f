"""A run, and its changes from another one, as one self-contained HTML file."""
