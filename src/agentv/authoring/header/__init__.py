"""Everything of an eval file but its cases, and the project configuration."""
