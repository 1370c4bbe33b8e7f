"""Valid projects; any change to their files leaves them valid or gives a diagnostic with a position."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import yaml

from agentv.codes import FILES
from agentv.errors import Diagnostic, UsageError
from doubles.loading import outcome

VALID = Path(__file__).parents[1] / "cases" / "valid"
NOT_LOADED = ("expected.yaml", "request.yaml")
LONGEST = 500
"""Maximum length of a message, in characters."""

NO_HOSTS = {"AGENTV_HOME": f"{os.devnull}/agentv", "GIT_ALLOW_PROTOCOL": "none"}
"""An environment that prevents any call to a git host."""

_JSONL_END = re.compile(r"\n")
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Project:
    """A folder of `tests/cases/valid`: the path to load, its files by path, and the options of the command line."""

    loaded: str
    files: Mapping[str, bytes]
    request: Mapping[str, Any]

    @property
    def mutable(self) -> list[str]:
        """The files that may be mutated: no code, because loading may run it."""
        return [path for path in self.files if not path.endswith((".py", ".ts", ".js", ".mjs"))]


def projects() -> dict[str, Project]:
    """Return all projects by name, except those with files outside their folder."""
    folders = [folder for folder in sorted(VALID.iterdir()) if not (folder / "remote").exists()]
    return {folder.name: _project(folder) for folder in folders}


def _project(folder: Path) -> Project:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in NOT_LOADED)
    files = {str(path.relative_to(folder)): path.read_bytes() for path in found}
    asked = folder / "request.yaml"
    request = yaml.safe_load(asked.read_text(encoding="utf-8")) if asked.is_file() else {}
    first = next((name for name in ("suite.eval.yaml", "suite.jsonl") if name in files), ".")
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in request.items()}
    path, target = given.pop("path", first), given.pop("target", None)
    asked_for = {"targets": (target,)} if target is not None else {}  # the SDK, which runs these folders, takes one
    return Project(path, files, {"process_env": {**given.pop("env", {}), **NO_HOSTS}, **asked_for, **given})


HOSTILE = (
    "", " ", "~", "null", "no", "on", "0", "-1", "1e999", "-.inf", ".nan", "0x1F", "1_000", "12:30:00", "9" * 5000, "=",
    "<<", "{}", "[]", "[[]]", "{a: {b: [c]}}", "[null]", "'", '"', "&a [*a]", "*nobody", "!!binary =", "!!python/object:x",
    "|", ">-", "---", "...", "%YAML 1.1", "\t", "\r", "\x00", "\x1b[2J", "\ufeff", "\x85", "\u2028", "é" * 600, "\U0001f600",
    '"\\ud800"', '"\\u0085"', "{{ name }}", "{{ nobody }}", "{{", "{% if", "${{ NOBODY }}", "{{ 9 ** 9 ** 9 }}", "{{ [1] * 3 }}",
    "../../x", "file://", "file:///dev/null", "/", ".", "x\x00y", "a" * 5000, "not-not-contains", "mock:{", "(", "a|" * 50,
    "https://github.com/", "https://github.com/o/r/blob/main", "$.a[", "file.py:name", "[" * 200, "{a: " * 200,
)  # fmt: skip
"""Replacement values, each of which has broken a reader of YAML, JSON, templates or paths."""

_VALUE = re.compile(r"(?<=[:\-,\[{] )[^\s,\]}][^\n,\]}]*")
_WORD = re.compile(r"[A-Za-z_]{2,}")


def mutated(content: bytes, random: Random) -> bytes:
    """Return the content with one to three lines, values or words changed as by a person or an attacker."""
    text = content.decode(errors="surrogateescape")
    for _ in range(random.randint(1, 3)):
        text = random.choice(_MUTATIONS)(text, random)
    return text.encode(errors="surrogateescape")


def _with_lines(change: Callable[[list[str], int, Random], None]) -> Callable[[str, Random], str]:
    def mutate(text: str, random: Random) -> str:
        lines = text.splitlines(keepends=True) or [""]
        change(lines, random.randrange(len(lines)), random)
        return "".join(lines)

    return mutate


def _swap(lines: list[str], at: int, random: Random) -> None:
    other = random.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def _indent(lines: list[str], at: int, random: Random) -> None:
    lines[at] = random.choice(["  ", " ", "\t", "- "]) + lines[at] if random.random() < 0.5 else lines[at].lstrip()


def _replaced(pattern: re.Pattern[str], others: Callable[[str], Sequence[str]]) -> Callable[[str, Random], str]:
    def mutate(text: str, random: Random) -> str:
        found = list(pattern.finditer(text))
        if not found:
            return text + random.choice(HOSTILE)
        one = random.choice(found)
        return text[: one.start()] + random.choice(others(text)) + text[one.end() :]

    return mutate


_MUTATIONS = (
    _with_lines(lambda lines, at, _random: lines.pop(at) and None),
    _with_lines(lambda lines, at, _random: lines.insert(at, lines[at])),
    _with_lines(_swap),
    _with_lines(_indent),
    _replaced(_VALUE, lambda _text: HOSTILE),
    _replaced(_VALUE, lambda _text: HOSTILE),
    _replaced(_VALUE, lambda text: _VALUE.findall(text) or [""]),
    _replaced(_WORD, _WORD.findall),
)


def check_reported(path: Path, **request: object) -> tuple[Diagnostic, ...]:
    """Load a file for a run and for `validate`; every diagnostic must have a code and a position inside a file.

    Returns:
        All diagnostics.
    """
    found: list[Diagnostic] = []
    for for_run in (True, False):
        try:
            suites, told = outcome(path, for_run=for_run, **request)
        except UsageError as error:
            if not str(error):
                raise
            return ()
        errors = [one for one in told if one.severity == "error"]
        if for_run:
            assert bool(suites) != bool(errors), told
        found += told
    _check(found)
    return tuple(found)


def _check(found: Iterable[Diagnostic]) -> None:
    lines: dict[str, list[str]] = {}
    for one in found:
        assert one.code in FILES, one
        texts = (one.message, *([one.hint] if one.hint else []), *one.notes)
        assert all("\n" not in text and "\r" not in text for text in texts), one
        assert one.message == one.message.strip(), one
        assert 0 < len(one.message) <= LONGEST, one
        span = one.span
        if span is None:
            continue  # a diagnostic about the command line
        if span.file not in lines:
            assert Path(span.file).exists(), one
            ends = _JSONL_END if span.file.endswith(".jsonl") else _LINE_END
            lines[span.file] = ends.split(Path(span.file).read_bytes().decode("utf-8-sig", errors="replace"))
        within = lines[span.file]
        assert 1 <= span.line <= span.end_line <= len(within), one
        assert 1 <= span.column <= len(within[span.line - 1]) + 1, one
        if span.end_line == span.line:
            assert span.end_column > span.column or span.end_column == span.column, one
