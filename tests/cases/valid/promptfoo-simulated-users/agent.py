import json


def call_api(prompt, options, context):
    system, *messages = json.loads(prompt)
    shop = system["content"].removeprefix("Answer for ").rstrip(".")
    if shop == "Data":
        return {"output": {"refunded": True}}
    return {"output": f"refunded by {shop}" if messages[-1]["content"] == "A-42" else "Which number? ###STOP###"}


def play(messages):
    goal = messages[0]["content"].partition("What you want: ")[2].partition("\n")[0]
    said = [message["content"] for message in messages[2:]]
    if said and "refunded" in said[-1]:
        return '{"done": "achieved"}'
    message = goal if "order" not in goal else "A-42" if said else "My money!"
    return json.dumps({"message": message})
