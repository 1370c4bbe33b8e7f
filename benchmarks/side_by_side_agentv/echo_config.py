"""Prints the config that a script gets as its score, its `wanted` as the score of `found`."""

from __future__ import annotations

import json
import sys

payload = json.load(sys.stdin)
config = payload["config"] or {}
print(json.dumps({"score": 1 if config.get("wanted") == payload["output"].strip() else 0, "assertions": []}))
