"""Decides on the grades of a set: the lowest score counts."""

from __future__ import annotations

import json
import sys

results = json.load(sys.stdin)["results"].values()
lowest = min(one["score"] for one in results)
print(json.dumps({"score": lowest, "assertions": [{"text": "lowest score", "passed": lowest >= 0.5}]}))
