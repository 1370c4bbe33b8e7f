"""Files of other tools as canonical nodes: what a dialect is, and which one a file is written in."""
