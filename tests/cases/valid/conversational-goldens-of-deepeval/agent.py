import json


def answer(messages):
    return f"heard {len(messages)}"


def play(prompt, messages):
    if "You play a person" in prompt:
        assert "refunds" not in prompt.replace("wants a refund", ""), "the user sees what is expected"
        return json.dumps({"done": "achieved"} if len(messages) > 3 else {"message": prompt.partition("What you want: ")[2][:3]})
    met = "User:" in prompt and "Unmet" not in prompt
    return json.dumps({"checks": [{"id": f"r{number}", "satisfied": met} for number in range(1, prompt.count("\n[r") + 1)]})
