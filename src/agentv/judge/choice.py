"""Choosing the best of several answers: the question, twice with the answers in opposite orders, and its replies.

A judge tends to prefer what it reads first, or last: L. Zheng et al., Judging LLM-as-a-Judge with MT-Bench and Chatbot
Arena, 2023, section 3.3, who ask in both orders and take a choice that changes with the order for a tie.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from agentv.judge.material import CONFIRM, Delimiter, Excerpt, new_word
from agentv.judge.question import built_in
from agentv.judge.reply import UsageTotal, verdicts_in
from agentv.judge.shapes import TEXT, UnreadableError, closed
from agentv.model.run.context import AssertionContext
from agentv.model.run.rubric import MAX_CHARS, Choice
from agentv.model.values.message import Message
from agentv.model.values.values import JsonObject


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """One question: the answers in one order.

    Attributes:
        places: id of an answer in this question → its place among all answers. The ids are new for each question, so
            that no answer can name itself.
        token: of the markers around what is shown.
        mark: the word that the choice shall carry; it stands in our instruction alone.
        earlier: the marks of the requests before this one.
    """

    messages: tuple[Message, ...]
    places: dict[str, int]
    token: str
    mark: str
    earlier: tuple[str, ...] = ()
    temperature: ClassVar[float] = 0.0

    @property
    def nonces(self) -> tuple[str, ...]:
        """Random values that are new in each question."""
        return (self.token, *self.places, *self.earlier, self.mark)

    @property
    def schema(self) -> JsonObject:
        """JSON Schema of the reply."""
        best: JsonObject = {"type": "string", "enum": list(self.places)}
        return closed({"reason": TEXT, "best": best, CONFIRM: TEXT})

    def again(self, reply: str, problem: str) -> ChoiceQuestion:
        """Follow-up request after an unreadable reply, with a new confirmation word."""
        mark = new_word()
        shape = f'{{"reason": <why>, "best": <id>, "{CONFIRM}": "{mark}"}}'
        request = f"Your reply cannot be used: {problem}. Reply with {shape} and nothing else."
        previous = (Message("assistant", reply),) if reply.strip() else ()
        messages = (*self.messages, *previous, Message("user", request))
        return replace(self, messages=messages, mark=mark, earlier=(*self.earlier, self.mark))

    def read(self, said: str) -> tuple[int, str | None]:
        """The place of the answer that is chosen, and why.

        Raises:
            UnreadableError: there is no choice, one of no answer, or several that differ.
        """
        rows, _ = verdicts_in(said, "best", self.mark)
        chosen = {f"{row['best']}" for row in rows}
        if not chosen <= self.places.keys():
            raise UnreadableError(f"'best' must be one of {', '.join(self.places)}")
        if len(chosen) > 1:
            raise UnreadableError("it contains several choices that disagree")
        reason = rows[-1].get("reason")
        return self.places[chosen.pop()], reason if isinstance(reason, str) and reason.strip() else None


@dataclass(frozen=True, slots=True)
class OrderedChoice:
    """Choice in one order, with its usage."""

    best: int
    reason: str | None
    usage: UsageTotal


def joined(one: OrderedChoice, other: OrderedChoice) -> Choice:
    """Combine the choices of both orders."""
    usage = one.usage.plus(other.usage)
    return Choice((one.best, other.best), (one.reason, other.reason), usage.token_usage, usage.cost_usd)


def choice_questions(criteria: str, contexts: Sequence[AssertionContext]) -> tuple[ChoiceQuestion, ChoiceQuestion]:
    """The question which answer is best, in an order that the case's id determines, and in the opposite one."""
    order = list(range(len(contexts)))
    random.Random(contexts[0].case_id).shuffle(order)  # noqa: S311  # the same at each run, which is the point
    return _question(criteria, contexts, order), _question(criteria, contexts, order[::-1])


def _question(criteria: str, contexts: Sequence[AssertionContext], order: Sequence[int]) -> ChoiceQuestion:
    delimiter = Delimiter.new()
    places: dict[str, int] = {}
    while len(places) < len(order):
        places.setdefault(secrets.token_hex(4), order[len(places)])
    shown = "\n\n".join(
        delimiter.around(f"answer-{name}", Excerpt.of(contexts[at].output or "", MAX_CHARS).text)
        for name, at in places.items()
    )
    mark = new_word()
    rules = built_in("choice")
    for name, value in (("token", delimiter.token), ("mark", mark), ("ids", ", ".join(places))):
        rules = rules.replace(f"{{{{ {name} }}}}", value)
    rubric, first = delimiter.around("criteria", criteria), contexts[0]
    task = f"The task:\n{delimiter.around('task', first.prompt)}\n\n"
    if first.metadata:
        metadata = json.dumps(first.metadata, ensure_ascii=False, indent=2)
        task += f"The metadata of the case:\n{delimiter.around('metadata', metadata)}\n\n"
    task += f"The criteria:\n{rubric}\n\nThe answers:\n{shown}"
    return ChoiceQuestion((Message("system", rules), Message("user", task)), places, delimiter.token, mark)
