"""A customer without a model: gives the number when asked, or gives up."""


def reply(messages, knows):
    last = messages[-1]["content"]
    if "refunded" in last:
        return {"done": "achieved"}
    if "number" in last and "order" in knows:
        return f"It is {knows['order']}."
    return {"done": "gave_up"} if len(messages) > 2 else "I do not have it. Just do it!"
