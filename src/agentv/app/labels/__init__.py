"""Labels by people, and what they say of a judge."""
