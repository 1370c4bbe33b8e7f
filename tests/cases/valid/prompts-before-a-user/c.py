def reply(messages):
    return {"done": "achieved"} if len(messages) > 3 else "again"
