import json
import re


def deep(prompt):
    if "[cost]" in prompt:
        return json.dumps({"checks": [{"id": "r1", "satisfied": True}, {"id": "cost", "satisfied": False}]})
    detailed = re.search(r"Expected: Provides detailed explanation\nQuestion: <[^>]+>Explain quicksort", prompt)
    return json.dumps({"score": 0.9 if detailed else 0.1, "hits": ["names it"], "misses": [], "reasoning": "so"})
