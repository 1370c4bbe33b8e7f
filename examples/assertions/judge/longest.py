"""A judge that needs no model: it finds the longest answer the best."""

import json
import re

ANSWER = re.compile(r"<answer-([0-9a-f]{8})-([0-9a-f]+)>\n(.*?)\n</answer-\1-\2>", re.DOTALL)


def reply(prompt: str) -> str:
    best = max(ANSWER.findall(prompt), key=lambda found: len(found[2]))
    return json.dumps({"reason": "It is the longest.", "best": best[0]})
