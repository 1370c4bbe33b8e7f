"""promptfoo's providers as targets."""
