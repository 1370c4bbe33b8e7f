def answer(messages):
    return " | ".join(m["role"] + ":" + m["content"] for m in messages)
