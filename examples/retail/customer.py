"""A customer without a model: answers what is asked, agrees, and leaves when it is done or refused."""


def reply(messages, knows):
    last = messages[-1]["content"]
    if last.startswith("Done"):
        return {"done": "achieved"}
    if "number" in last:
        return f"It is {knows['order']}."
    if "Shall I" in last:
        return "Yes."
    return "Really?" if len(messages) < 6 else {"done": "gave_up"}
