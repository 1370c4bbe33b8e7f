import json


def reply(messages):
    role = messages[0]["content"]
    said = [one["content"] for one in messages if one["role"] == "assistant"]
    last = messages[-1]["content"]
    if "prosaic" in role:
        return "I would like a refund, please."
    if "content" in role.split("Reply")[0]:
        return '{"done": "achieved"}'
    if "lazy" in role:
        return '{"done": "gave_up"}'
    if "short of patience" in role:
        return '{"done": "gave_up"}' if len(said) > 1 else '{"message": "Now!"}'
    if "mute" in role:
        return '{"message": " "}'
    if "broken" in role:
        raise ValueError("no player")
    if "clumsy" in role and not last.startswith("Your reply"):
        return "Well..."
    if "fenced" in role:
        return '<think>{"message": "no"}</think>```json\n{"message": null, "done": "achieved"}\n```'
    if "parrot of itself" in role:
        return json.dumps({"message": "Money!" + " " * len(said)})
    if "parrot" in role:
        return json.dumps({"message": f"I see {messages}"})
    if "stubborn" in role:
        return json.dumps({"message": f"More, {len(said)}."})
    if "refunded" in last or last.startswith("Your reply"):
        return '{"done": "achieved"}'
    if "begins" in last:
        return '{"message": "I want a refund for A-7."}'
    return '{"message": "It is A-42."}' if "A-42" in role else '{"message": "I do not know."}'


def satisfied(messages):
    return '{"done": "achieved"}'


def by_function(messages, turn, knows):
    heard = int(messages[-1]["content"].split()[-1])
    return {"done": "achieved"} if heard == knows["last"] else str(heard + 1)
