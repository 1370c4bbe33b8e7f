"""The question whether a query would load a prompt: the text of `triggering.md`, filled in.

It contains texts of authors and users, which are untrusted. They are inserted as text, once, between tags that end
in a hash over all of them: nobody can write a tag into a text on which the tag depends.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_PLACEHOLDER = re.compile(r"\{\{ (\w+) \}\}")


def question_of(name: str, description: str, others: Mapping[str, str], query: str) -> str:
    """The question to the judge.

    The same for the same arguments, so that a run can be resumed.

    Args:
        name: the prompt's id.
        description: the prompt's.
        others: id → description of the other prompts; empty: they are not mentioned.
        query: of a user.
    """
    token = _token(name, description, others, query)
    catalogue = "\n\n".join(_entry(one, text) for one, text in others.items())
    shown = f"\nThe other prompts:\n\n{_fenced('others', token, catalogue)}\n" if others else ""
    values = {
        "token": token,
        "prompt": _fenced("prompt", token, _entry(name, description)),
        "others": shown,
        "query": _fenced("query", token, query.strip()),
    }
    return _PLACEHOLDER.sub(lambda found: values[found[1]], _template())  # in one go: no text is looked into


def _entry(name: str, description: str) -> str:
    return f"name: {' '.join(name.split())}\ndescription: {description.strip()}"


def _fenced(what: str, token: str, text: str) -> str:
    return f"<{what}-{token}>\n{text}\n</{what}-{token}>"


def _token(name: str, description: str, others: Mapping[str, str], query: str) -> str:
    """64 bits of a hash over all that is shown."""
    shown = json.dumps([name, description, dict(others), query])
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


@cache
def _template() -> str:
    return Path(__file__).with_name("triggering.md").read_text(encoding="utf-8").strip()
