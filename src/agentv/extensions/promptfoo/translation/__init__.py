"""promptfoo's configuration as an eval file."""
