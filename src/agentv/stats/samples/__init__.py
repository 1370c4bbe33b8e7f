"""Statistics of repeated samples of a case, and rules for when to stop sampling."""
