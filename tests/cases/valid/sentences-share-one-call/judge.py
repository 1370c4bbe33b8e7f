import json
import re


def yes(prompt):
    return json.dumps({"checks": [{"id": found, "satisfied": True} for found in re.findall(r"\[(r\d+)\]", prompt)]})
