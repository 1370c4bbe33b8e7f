import json


def reply(prompt: str) -> str:
    marks = {"full:": 1, "half:": 0.5, "none:": 0}
    return json.dumps({"score": next(score for mark, score in marks.items() if mark in prompt)})
