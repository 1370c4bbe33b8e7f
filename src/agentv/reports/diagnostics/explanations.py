"""Explanations of codes, with an example and the fix: for `agentv explain`, the docs, and SARIF rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import indent

_INDENT = "    "


@dataclass(frozen=True, slots=True)
class ExampleFile:
    """One file of an example. `path` begins in the project's root."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is known of one code.

    Attributes:
        meaning: one sentence, the one of `agentv.codes`.
        why: what leads to it and what it would lead to, in paragraphs.
        wrong: files that give it; empty where no text can show it.
        message: what agentv says of them.
        fix: how it is mended, in paragraphs.
        right: all of those files once it is mended; empty where words say it better.
    """

    code: str
    meaning: str
    why: str
    wrong: tuple[ExampleFile, ...]
    message: str
    fix: str
    right: tuple[ExampleFile, ...]

    @property
    def mended(self) -> tuple[ExampleFile, ...]:
        """Those of the right files that differ from the wrong ones."""
        return tuple(file for file in self.right if file not in self.wrong)


def render_explanation(one: Explanation) -> str:
    """The explanation as text for a terminal."""
    parts = [one.code, one.meaning, one.why]
    if one.wrong:
        parts += ["Wrong:", *_files(one.wrong)]
    if one.message:
        parts += ["Output:", indent(one.message, _INDENT)]
    parts += ["The fix:", one.fix, *_files(one.mended)]
    return "\n\n".join(part for part in parts if part)


def render_markdown(one: Explanation) -> str:
    """The explanation as Markdown, without a heading."""
    parts = [one.meaning, one.why, *_blocks(one.wrong)]
    if one.message:
        parts.append(f"```text\n{one.message}\n```")
    parts += [f"**Fix.** {one.fix}", *_blocks(one.mended)]
    return "\n\n".join(part for part in parts if part)


def explanation_json(one: Explanation) -> str:
    """The explanation as one JSON object."""
    return json.dumps(asdict(one), indent=2)


def render_codes(groups: Mapping[str, Mapping[str, str]]) -> str:
    """Every code with its sentence, by group."""
    width = max(len(code) for codes in groups.values() for code in codes)
    lines = []
    for title, codes in groups.items():
        rows = [f"  {code:<{width}}  {meaning}" for code, meaning in codes.items()]
        lines.append("\n".join([title, *rows]))
    return "\n\n".join(lines)


def codes_json(groups: Mapping[str, Mapping[str, str]]) -> str:
    """Every code as JSON: a list of objects with `code`, `group` and `meaning`."""
    rows = [
        {"code": code, "group": title, "meaning": meaning}
        for title, codes in groups.items()
        for code, meaning in codes.items()
    ]
    return json.dumps(rows, indent=2)


def _files(files: Sequence[ExampleFile]) -> Iterator[str]:
    for one in files:
        yield indent(f"# {one.path}\n{one.text}".rstrip("\n"), _INDENT)


def _blocks(files: Sequence[ExampleFile]) -> Iterator[str]:
    for one in files:
        yield f"`{one.path}`\n\n```text\n{one.text}```"
