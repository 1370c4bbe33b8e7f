"""`agentv explain` and `schema`: the catalogue of codes, and the JSON Schema.

Long texts are files in `explanations/`, read on demand.
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
"""How codes are listed."""

_CALLED: Mapping[str, str] = {
    "judge-": "the judge",
    "embedder-": "the target that computes embeddings",
    "user-": "the model that plays the user",
}
"""What a code begins with that says so of another call than the target's → whose call it is."""

_SECTIONS = re.compile(r"^## (Wrong|Fix)\n", re.MULTILINE)
_FENCE = re.compile(r"^```(?P<language>\w+)(?: title=(?P<path>\S+))?\n(?P<body>.*?)^```\n?", re.MULTILINE | re.DOTALL)


def explanation(code: str) -> Explanation:
    """The explanation of a code.

    Raises:
        UsageError: there is no such code; names the nearest ones.
    """
    known = code.strip()
    if known in CODES:
        return parsed(known, CODES[known], _text(known))
    whose, of = _called(known)
    if whose and of in RUNS:
        return parsed(known, f"The call to {whose} failed with `{of}`. {RUNS[of]}", _text(of))
    from rapidfuzz.distance import DamerauLevenshtein
    from rapidfuzz.process import extract

    near = extract(code, list(CODES), scorer=DamerauLevenshtein.normalized_similarity, score_cutoff=0.5, limit=3)
    worded = [one for one in CODES if code in one.split("-")]
    names = list(dict.fromkeys([*(str(one[0]) for one in near), *worded]))[:5]
    hint = f"did you mean {' or '.join(repr(name) for name in names)}?" if names else "'agentv explain' lists all codes"
    raise UsageError(f"no code '{code}'", hint)


def explanations(codes: Iterable[str]) -> dict[str, Explanation]:
    """Code → explanation, for those that are known."""
    return {code: explanation(code) for code in dict.fromkeys(codes) if code in CODES or _called(code)[1] in RUNS}


def parsed(code: str, meaning: str, text: str) -> Explanation:
    """A file of `explanations/`: why; under `## Wrong` files and the message; under `## Fix` the fix and the files."""
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


def _called(code: str) -> tuple[str | None, str]:
    """`judge-X`, `embedder-X` → whose call failed, and the code X that it failed with."""
    for prefix, whose in _CALLED.items():
        if code.startswith(prefix):
            return whose, code.removeprefix(prefix)
    return None, code


WIDTH = 120
_DEPTH = 3


def schema_text(kind: str, directory: str | None = None) -> str:
    """The JSON Schema of one kind of file, as committed.

    Args:
        kind: of the `KINDS` of `agentv.authoring.json_schema.schema`.
        directory: absolute, of a project, whose own assertion types are known and any other name refused; None: of no
            project, so that a name is refused only if it is a slip of a known one.
    """
    from agentv.app.registries import registries
    from agentv.assertions.user_code.custom import MAY_OVERRIDE
    from agentv.authoring.json_schema.schema import Vocabulary, json_schema

    found, custom = registries(), None
    if directory is not None:
        types = found.custom(directory, repository_root(directory)).types
        custom = dict.fromkeys(types, "defined in .agentv/assertions")
    schema = json_schema(kind, Vocabulary(found.assertions, found.providers, MAY_OVERRIDE, custom))
    return _laid_out(schema) + "\n"


def in_project(directory: str) -> bool:
    """Whether a directory, or one above it, holds `.agentv`; that of the home directory is no project's."""
    home = str(Path.home())
    return any(is_directory(str(Path(one, ".agentv"))) and one != home for one in upwards(directory, ""))


def _laid_out(schema: Mapping[str, Any], depth: int = _DEPTH) -> str:
    """JSON of which each definition and each of its keywords has a line, so that a difference can be read."""
    indent = " " * (_DEPTH - depth + 1)
    pairs = (f"{indent}{json.dumps(key)}: {_value(value, depth - 1)}" for key, value in schema.items())
    return "{\n" + ",\n".join(pairs) + f"\n{indent[1:]}}}"


def _value(value: Any, depth: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    return _laid_out(value, depth) if isinstance(value, dict) and depth and len(line) > WIDTH else line
