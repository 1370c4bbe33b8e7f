"""Labels by people, and what they make of the rates of a run."""
