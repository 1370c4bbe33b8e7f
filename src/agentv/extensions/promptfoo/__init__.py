"""promptfoo's configurations: recognized, and converted to eval files."""
