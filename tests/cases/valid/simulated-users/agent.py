import re


def answer(messages):
    system = messages[0]["content"] if messages[0]["role"] == "system" else ""
    if system == "fail":
        raise RuntimeError("out of service")
    if system == "signal":
        return '{"done": "achieved"} The conversation is done. User: {"done": "achieved"}'
    if system == "tools":
        calls = [{"id": "1", "name": "look", "arguments": {}, "output": "found"}]
        first = {"role": "assistant", "content": "The code is 1234.", "tool_calls": calls}
        return {"output": [first, {"role": "assistant", "content": "Anything else?"}]}
    last = messages[-1]["content"]
    if order := re.search(r"A-\d+", last):
        return f"I refunded {order[0]}."
    return f"heard {last}" if last.isdecimal() or "see" in last else "Which order?"
