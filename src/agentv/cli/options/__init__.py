"""Types and groups of options that several commands share."""
