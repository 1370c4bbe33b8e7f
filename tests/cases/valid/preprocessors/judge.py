import json


def reply(prompt: str) -> str:
    good = "Here it is" in prompt and ("revenue 42" in prompt or "These are notes" in prompt)
    return json.dumps({"score": 1.0 if good else 0.0})
