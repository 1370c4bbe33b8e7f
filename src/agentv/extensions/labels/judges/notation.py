"""A judge as a command names it: `NAME`, or `NAME,prompt=FILE,votes=3,temperature=0`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import UsageError
from agentv.model.run.rubric import Rubric
from agentv.registry.fields import Document

MOST_VOTES = 101

_OPTION = re.compile(r",\s*([a-z_]+)=([^,]*)$")


@dataclass(frozen=True, slots=True)
class NamedJudge:
    """A judge, and what it does otherwise than the eval file says.

    Attributes:
        written: as the command names it.
        name: of targets.yaml, or `provider:model`.
        prompt: replaces the judge prompt; None: as in the eval file; so for the others.
    """

    written: str
    name: str
    prompt: Document | None = None
    votes: int | None = None
    temperature: float | None = None

    def rubric(self, rubric: Rubric) -> Rubric:
        """The rubric as this judge is asked, for one vote."""
        changed: dict[str, Any] = {"votes": 1}
        if self.prompt is not None:
            changed |= {"prompt": self.prompt.text, "prompt_path": self.prompt.path, "writer": None}
        if self.temperature is not None:
            changed["temperature"] = self.temperature
        return structs.replace(rubric, **changed)

    def votes_for(self, rubric: Rubric) -> int:
        """How often it votes on an answer."""
        return self.votes or rubric.votes


def named_judge(written: str) -> NamedJudge:
    """The judge that a text names.

    Raises:
        UsageError: an option is unknown, twice there, or wrong, or a prompt file cannot be read.
    """
    rest, options = written.strip(), dict[str, Any]()
    while (found := _OPTION.search(rest)) is not None:
        name, value = found[1], found[2].strip()
        if name not in _OPTIONS:
            hint = did_you_mean(name, _OPTIONS) or f"options of a judge: {', '.join(_OPTIONS)}"
            raise UsageError(f"'{name}' in '{written}' is not an option of a judge", hint)
        if name in options:
            raise UsageError(f"'{written}' has '{name}' twice")
        options[name] = _OPTIONS[name](value, written)
        rest = rest[: found.start()]
    if not rest.strip():
        raise UsageError(f"'{written}' names no judge", "name a judge of targets.yaml, or provider:model")
    return NamedJudge(written.strip(), rest.strip(), **options)


def named_judges(written: Sequence[str], votes: int | None) -> tuple[NamedJudge, ...]:
    """The judges of a command.

    Args:
        written: as the command names them.
        votes: of those that do not say how often they vote; None: as the eval file says.

    Raises:
        UsageError: as above.
    """
    if votes is not None:
        votes = _votes(str(votes), "--votes")
    found = [named_judge(text) for text in written]
    return tuple(replace(one, votes=one.votes or votes) for one in found)


def _prompt(value: str, written: str) -> Document:
    path = Path(value.removeprefix("file://"))
    if path.suffix in (".py", ".js", ".ts", ".mjs"):
        raise UsageError(f"the judge prompt {path} is code", "use a text file; code is named in the eval file")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"cannot read the judge prompt {path} of '{written}': {why}") from error
    return Document(text, str(path))


def _votes(value: str, written: str) -> int:
    number = int(value) if value.isascii() and value.isdigit() else 0
    if not 1 <= number <= MOST_VOTES:
        raise UsageError(f"votes in '{written}' must be a whole number from 1 to {MOST_VOTES}")
    if number % 2 == 0:
        raise UsageError(f"{number} votes in '{written}' have no majority", f"use {number - 1} or {number + 1}")
    return number


def _temperature(value: str, written: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 2:
        raise UsageError(f"temperature in '{written}' must be a number from 0 to 2")
    return number


_OPTIONS: dict[str, Callable[[str, str], object]] = {"prompt": _prompt, "votes": _votes, "temperature": _temperature}
