"""Rows of `index.jsonl`, written and read."""
