"""The messages of a request, in any of the protocols: which of them the model wrote, and the text of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from agentv.model.values.values import Json, JsonObject
from agentv.testing.agents.tool_mapping import SEARCH_ID
from agentv.testing.calls import ModelCall

_TURNS = ("messages", "contents", "input")
_ANSWERS = frozenset({"reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call"})


@dataclass(frozen=True, slots=True)
class Turn:
    """One message, or one item of OpenAI's responses.

    Attributes:
        answer: the model wrote it.
        text: of a message to the model; empty for answers and the results of tools.
    """

    answer: bool
    text: str = ""


def turns_of(body: JsonObject) -> tuple[Turn, ...]:
    """The messages of a request in their order."""
    given = next((body[key] for key in _TURNS if key in body), ())
    if isinstance(given, str):
        return (Turn(answer=False, text=given),)
    if not isinstance(given, Sequence):
        return ()
    return tuple(_turn(one) for one in given if isinstance(one, Mapping))


def _turn(message: JsonObject) -> Turn:
    role, kind = message.get("role"), message.get("type")
    if role in ("assistant", "model") or kind in _ANSWERS:
        return Turn(answer=not _searches(message))
    if role == "tool" or (isinstance(kind, str) and kind != "message"):
        return Turn(answer=False)
    content = message.get("content", message.get("parts"))
    blocks = content if isinstance(content, Sequence) and not isinstance(content, str) else [content]
    return Turn(answer=False, text="\n".join(piece for block in blocks for piece in _said(block)))


def _searches(message: JsonObject) -> bool:
    """Whether a message is a search for a tool that no script holds."""
    blocks = message.get("content")
    ids = [block.get("id") for block in blocks if isinstance(block, Mapping)] if isinstance(blocks, Sequence) else []
    return any(isinstance(one, str) and one.startswith(SEARCH_ID) for one in ids)


def _said(block: Json) -> Sequence[str]:
    if isinstance(block, Mapping):
        text = block.get("text")  # a tool's result holds its text one level deeper
        return [text] if isinstance(text, str) else []
    return [block] if isinstance(block, str) else []


def answers_in(turns: Sequence[Turn]) -> int:
    """How often the model has answered: an answer may be several messages in a row."""
    return sum(turn.answer and not before.answer for before, turn in zip((Turn(False), *turns), turns, strict=False))


def history_of(call: ModelCall) -> str:
    """A digest of the messages so far: the same for a request and its retry."""
    found = [call.body.get(key) for key in _TURNS]
    return sha256(msgspec.json.encode(found, order="sorted")).hexdigest()
