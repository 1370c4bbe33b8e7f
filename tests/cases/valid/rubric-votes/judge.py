import json
from itertools import count
from threading import Lock

_calls, _lock = {"freeform": count(), "checklist": count()}, Lock()


def undecided(prompt):
    """Two of three votes say yes, in whatever order they are asked for; and two of five."""
    mode = "checklist" if "[r1]" in prompt else "freeform"
    with _lock:
        call = next(_calls[mode])
    if mode == "freeform":
        return json.dumps({"score": (0.1, 0.9, 0.95)[call % 3]})
    return json.dumps({"checks": [{"id": "r1", "satisfied": call in (1, 3)}]})
