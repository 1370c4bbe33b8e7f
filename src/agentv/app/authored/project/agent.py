"""The system under test. Put your own in its place: a function, a command, or an HTTP service."""

HOURS = {"Saturday": "10 to 14", "Sunday": None}


def answer(prompt: str) -> str:
    """Answer one question. agentv calls this once a case, with the case's input."""
    day = next((day for day in HOURS if day.lower() in prompt.lower()), None)
    if day is None:
        return "I do not know, so I hand you over to a colleague."
    if "German" in prompt:
        return f"Geöffnet: {HOURS[day]} Uhr." if HOURS[day] else "Da haben wir geschlossen."
    return f"On {day} we are open from {HOURS[day]}." if HOURS[day] else f"On {day} we are closed."
