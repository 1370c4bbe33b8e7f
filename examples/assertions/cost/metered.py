"""A model that reports what its answers took: a long question costs more."""


def answer(prompt: str) -> dict[str, object]:
    long = "long" in prompt
    return {
        "output": "Yes, within 30 days.",
        "token_usage": {"input": 40, "output": 4000 if long else 12},
        "cost_usd": 0.04 if long else 0.001,
        "duration_ms": 9000 if long else 800,
        "finish_reason": "length" if long else "stop",
    }
