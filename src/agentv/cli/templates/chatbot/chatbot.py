"""The chatbot under test. Replace it with yours: a function, a command, an HTTP service or a model."""

HOURS = {"saturday": "10 to 14", "sunday": None}


def answer(messages: list[dict]) -> str:
    """Answer the last message of a conversation. agentv calls this for each question, in a process of its own."""
    question = messages[-1]["content"].lower()
    day = next((day for day in HOURS if day in question), None)
    if day is None:
        return "I do not know. Shall I hand you over to a colleague?"
    return f"On {day.title()} we are open from {HOURS[day]}." if HOURS[day] else f"On {day.title()} we are closed."
