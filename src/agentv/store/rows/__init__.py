"""Reading and writing rows of `index.jsonl`."""
