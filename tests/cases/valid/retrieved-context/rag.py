"""An answer with retrieved texts, and a judge that finds relevant what speaks of Paris or wine."""

import json
import re

DOCUMENTS = [
    "Paris is the capital of France.",
    {"page_content": "Wine of Paris.", "metadata": {"source": "wine.md"}, "score": 0.5},
]


def answer():
    return {"output": "It is Paris.", "context": DOCUMENTS, "metadata": {"docs": "Paris, as said before."}}


def nothing():
    return {"output": "It is Paris.", "context": []}


def judge(prompt):
    found = re.findall(r"^\[([st]\d+)\] (.*)$", prompt, re.MULTILINE)
    if not found:
        return json.dumps({"claims": [{"claim": "It is Paris.", "supported": "Wine of Paris." in prompt}]})
    key, verdict = ("statements", "attributed") if found[0][0] == "t1" else ("sentences", "relevant")
    return json.dumps({key: [{"id": name, verdict: "Paris" in text} for name, text in found]})


if __name__ == "__main__":
    print(json.dumps(answer()))
