import json


def deep(prompt):
    if "[cost]" in prompt:
        return json.dumps({"checks": [{"id": "r1", "satisfied": True}, {"id": "cost", "satisfied": False}]})
    detailed = "Expected: Provides detailed explanation\nQuestion: Explain quicksort" in prompt
    return json.dumps({"score": 0.9 if detailed else 0.1, "hits": ["names it"], "misses": [], "reasoning": "so"})
