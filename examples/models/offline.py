"""Runs the suite in this directory without a model or a key: a local server replaces both."""

import json
import os
import re
import sys
from pathlib import Path

import agentv
from agentv.testing import ModelCall, ModelServer

ANSWERS = {
    "45 days": "That is over our 30 days, so there is no refund, but we gladly repair the lamp.",
    "furious": "I am sorry, that must be annoying. Send us the lamp and you get the full price back this week.",
    "How long": "You can return it within 30 days, for the full price.",
}


def reply(call: ModelCall) -> str:
    """The reply of the model, or of the judge."""
    if call.protocol == "anthropic":
        return verdict(call.text)
    return next(answer for words, answer in ANSWERS.items() if words in call.prompt)


def verdict(question: str) -> str:
    """A judge that approves everything, in the format that the question asks for."""
    if "SCORE=" in question:
        return "SCORE=5 REASON=It is kind, and says what happens next."
    if '"category"' in question:
        return json.dumps({"reason": "The same days and the same price.", "category": "C"})
    items = re.findall(r"^\[(r\d+)\]", question, re.MULTILINE)
    return json.dumps({"checks": [{"id": item, "satisfied": True, "reasoning": "It does."} for item in items]})


if __name__ == "__main__":
    with ModelServer(reply) as server:
        os.environ |= {"OPENAI_BASE_URL": server.openai, "OPENAI_API_KEY": "none"}
        os.environ |= {"ANTHROPIC_BASE_URL": server.anthropic, "ANTHROPIC_API_KEY": "none"}
        run = agentv.evaluate(Path(__file__).parent / "evals")
    cases = run.summary.cases
    for result in run.results:
        if result.status != "passed":
            print(result.trial.case.id, result.status, result.error or [score.error for score in result.scores])
    print(f"{cases.passed} of {cases.total} cases passed")
    sys.exit(cases.passed != cases.total)
