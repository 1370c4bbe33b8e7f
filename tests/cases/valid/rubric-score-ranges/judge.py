import json
import re

POINTS = {"polite": 7, "short": 7, "right": 10}


def points(prompt):
    found = re.findall(r"^\[(\w+)\]", prompt, re.MULTILINE)
    return json.dumps({"checks": [{"id": one, "score": POINTS[one], "reasoning": "I think so"} for one in found]})
