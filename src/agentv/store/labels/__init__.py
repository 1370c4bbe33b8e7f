"""Labels by people: `.agentv/labels/NAME.jsonl`."""
