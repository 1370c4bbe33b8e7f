import json


def repeat(messages):
    """A judge that is content with a prompt that begins as those of this test do."""
    rules, task = (message["content"] for message in messages)
    right = task.startswith("Does it greet?")
    return json.dumps({"criterion_met": right} if "criterion_met" in rules else {"score": float(right)})
