"""Storage of a run: its directory, the journal of answers, the rows, and totals computed from them."""
