"""A small support agent: the system under test. It answers from policy.md, by rules rather than with a model."""

import json
import re
from pathlib import Path

POLICY = (Path(__file__).parent / "policy.md").read_text(encoding="utf-8")
DAYS_TO_RETURN = int(re.search(r"Within (\d+) days", POLICY)[1])
SHIPPING = {country: int(days) for country, days in re.findall(r"(\w+): (\d+) days", POLICY)}


def answer(prompt: str) -> str:
    """Answer one customer. agentv calls this once a case, with the case's input."""
    if order := re.search(r"order (\S+?)\?", prompt):
        return f"Order {order[1]}: I hand you over to a colleague."
    if age := re.search(r"(\d+) days ago", prompt):
        return returns(int(age[1]))
    if country := next((name for name in SHIPPING if name in prompt), None):
        return json.dumps({"country": country, "days": SHIPPING[country]})
    return "That is not in our policy, so I cannot say."


def returns(age: int) -> str:
    if age <= DAYS_TO_RETURN:
        return f"You are within {DAYS_TO_RETURN} days, so you get a full refund."
    return f"After {DAYS_TO_RETURN} days we offer store credit or an exchange."
