"""Programs as targets."""
