"""The environment of a suite: the process's own, the suite's `env:`, and `.env` files (SPEC sections 2 and 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from agentv.model.span import Span
from agentv.ports import Reader
from agentv.spec.files import upwards
from agentv.spec.report import Report

_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(?P<value>.*?)\s*", re.DOTALL)
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<text>.*)(?P=quote)\s*(?:#.*)?", re.DOTALL)
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\\": "\\"}
_ESCAPE = re.compile("|".join(re.escape(one) for one in _ESCAPES))


def dotenv_of(directory: str, root: str, reader: Reader, report: Report) -> dict[str, str]:
    """What the `.env` files from a directory up to the root say; the closest wins."""
    found: dict[str, str] = {}
    for parent in upwards(directory, root):
        path = Path(parent) / ".env"
        if path.is_file():
            found = {**read_dotenv(str(path), reader, report), **found}
    return found


def read_dotenv(path: str, reader: Reader, report: Report) -> dict[str, str]:
    """The variables of one file: `NAME=value` lines, quotes, comments, `export`."""
    try:
        text = reader.read(path).decode("utf-8-sig")
    except OSError as error:
        report.error("missing-file", Span(path, 1, 1, 1, 2), f"cannot read {path}: {error.strerror}")
        return {}
    except UnicodeDecodeError:
        report.error("not-utf-8", Span(path, 1, 1, 1, 2), "not UTF-8: the file cannot be read as text")
        return {}
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            report.error("bad-dotenv", Span(path, number, 1, number, len(line) + 1), "a line must read NAME=value")
            continue
        found[match["name"]] = _value(match["value"])
    return found


def _value(written: str) -> str:
    quoted = _QUOTED.fullmatch(written)
    if quoted is None:
        return re.split(r"\s+#", written, maxsplit=1)[0]
    if quoted["quote"] == "'":
        return quoted["text"]
    return _ESCAPE.sub(lambda match: _ESCAPES[match[0]], quoted["text"])


def merged(process: Mapping[str, str], suite: Mapping[str, str], dotenv: Mapping[str, str]) -> dict[str, str]:
    """One environment: the process's wins over the suite's `env:`, which wins over `.env` (SPEC section 2)."""
    return {**dotenv, **suite, **process}
