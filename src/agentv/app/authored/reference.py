"""`agentv explain` and `schema`: explanations of codes, and the JSON Schema.

Long explanations are files in `explanations/`, read on demand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentv.authoring.source.files import is_directory, repository_root, upwards
from agentv.codes import CODES, FILES, RUNS
from agentv.errors import UsageError
from agentv.reports.diagnostics import ExampleFile, Explanation

FOLDER = Path(__file__).parents[2] / "explanations"

GROUPS: Mapping[str, Mapping[str, str]] = {"In files": FILES, "In a run": RUNS}
"""Groups of codes, as listed by `agentv explain`."""

_CALL_PREFIXES: Mapping[str, str] = {
    "judge-": "the judge",
    "embedder-": "the target that computes embeddings",
    "user-": "the model that plays the user",
}
"""Prefixes of codes for failed calls to models other than the target → the model that was called."""

_SECTIONS = re.compile(r"^## (Wrong|Fix)\n", re.MULTILINE)
_FENCE = re.compile(r"^```(?P<language>\w+)(?: title=(?P<path>\S+))?\n(?P<body>.*?)^```\n?", re.MULTILINE | re.DOTALL)


def explanation(code: str) -> Explanation:
    """Return the explanation of a code.

    Raises:
        UsageError: there is no such code; the hint has similar ones.
    """
    known = code.strip()
    if known in CODES:
        return parsed(known, CODES[known], _text(known))
    whose, of = _split_code(known)
    if whose and of in RUNS:
        return parsed(known, f"The call to {whose} failed with `{of}`. {RUNS[of]}", _text(of))
    from rapidfuzz.distance import DamerauLevenshtein
    from rapidfuzz.process import extract

    near = extract(code, list(CODES), scorer=DamerauLevenshtein.normalized_similarity, score_cutoff=0.5, limit=3)
    containing = [one for one in CODES if code in one.split("-")]
    names = list(dict.fromkeys([*(str(one[0]) for one in near), *containing]))[:5]
    hint = f"did you mean {' or '.join(repr(name) for name in names)}?" if names else "'agentv explain' lists all codes"
    raise UsageError(f"no code '{code}'", hint)


def explanations(codes: Iterable[str]) -> dict[str, Explanation]:
    """Return code → explanation for the known codes."""
    return {code: explanation(code) for code in dict.fromkeys(codes) if code in CODES or _split_code(code)[1] in RUNS}


def parsed(code: str, meaning: str, text: str) -> Explanation:
    """Parse a file of `explanations/`: an introduction, `## Wrong` with files and the message, `## Fix` with files."""
    why, *rest = _SECTIONS.split(text)
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    wrong, fix = sections.get("Wrong", ""), sections["Fix"]
    return Explanation(
        code=code,
        meaning=meaning,
        why=why.strip(),
        wrong=tuple(_files(wrong)),
        message="".join(found["body"] for found in _FENCE.finditer(wrong) if found["path"] is None).rstrip("\n"),
        fix=_FENCE.sub("", fix).strip(),
        right=tuple(_files(fix)),
    )


def _files(section: str) -> Iterator[ExampleFile]:
    for found in _FENCE.finditer(section):
        if found["path"] is not None:
            yield ExampleFile(found["path"], found["body"])


def _text(code: str) -> str:
    return (FOLDER / f"{code}.md").read_text(encoding="utf-8")


def _split_code(code: str) -> tuple[str | None, str]:
    """Split `judge-X`, `embedder-X` or `user-X` into the model that was called and the code X."""
    for prefix, whose in _CALL_PREFIXES.items():
        if code.startswith(prefix):
            return whose, code.removeprefix(prefix)
    return None, code


WIDTH = 120
_DEPTH = 3


def schema_text(kind: str, directory: str | None = None) -> str:
    """Return the JSON Schema of one kind of file, formatted as it is committed.

    Args:
        kind: one of the `KINDS` of `agentv.authoring.json_schema.schema`.
        directory: absolute directory of a project: its own assertion types are included, and unknown types are
            rejected. None: types are rejected only if they look like misspelt known ones.
    """
    from agentv.app.registries import registries
    from agentv.assertions.user_code.custom import MAY_OVERRIDE
    from agentv.authoring.json_schema.schema import Vocabulary, json_schema

    found, custom = registries(), None
    if directory is not None:
        types = found.custom(directory, repository_root(directory)).types
        custom = dict.fromkeys(types, "defined in .agentv/assertions")
    schema = json_schema(kind, Vocabulary(found.assertions, found.providers, MAY_OVERRIDE, custom))
    return _formatted(schema) + "\n"


def in_project(directory: str) -> bool:
    """Whether a directory or one above it contains `.agentv`; the home directory does not count."""
    home = str(Path.home())
    return any(is_directory(str(Path(one, ".agentv"))) and one != home for one in upwards(directory, ""))


def _formatted(schema: Mapping[str, Any], depth: int = _DEPTH) -> str:
    """Format JSON with one line per definition and keyword, so that diffs are readable."""
    indent = " " * (_DEPTH - depth + 1)
    pairs = (f"{indent}{json.dumps(key)}: {_value(value, depth - 1)}" for key, value in schema.items())
    return "{\n" + ",\n".join(pairs) + f"\n{indent[1:]}}}"


def _value(value: Any, depth: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    return _formatted(value, depth) if isinstance(value, dict) and depth and len(line) > WIDTH else line
