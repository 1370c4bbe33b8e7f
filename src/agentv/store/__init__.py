"""Where a run is kept: its directory, the journal of answers, the rows, and the totals computed from them."""
