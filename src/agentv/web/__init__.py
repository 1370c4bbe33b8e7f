"""What web applications share: request checks, endpoint declarations, encoded responses."""
