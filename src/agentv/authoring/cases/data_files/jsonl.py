"""Read JSON Lines files, with one case or one recorded transcript per line.

Transcripts are rows of `agentv import` or of a run's `index.jsonl`. The input of such a case is the recorded
conversation up to the last user message. The answer comes from the target, which may replay the same file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from agentv.authoring.cases.collector import at_line, down
from agentv.authoring.cases.data_files.rows import RowKeys
from agentv.authoring.source.files import shown
from agentv.authoring.source.json_text import parse_json, read_json
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, as_data, node_of, plain, span_of
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic
from agentv.model.values.values import Json, Span


def _from_disk(path: str) -> BinaryIO:
    return open(path, "rb")  # noqa: PTH123  # a Path would add nothing; the caller closes it


class JsonLines(Struct):
    """The format of a JSONL file.

    Attributes:
        opened: opens the file.
        extra: keeps unknown keys, if the lines are data; None if unknown keys are errors.
    """

    path: str
    opened: Callable[[str], BinaryIO] = _from_disk
    extra: RowKeys | None = None
    unit: str = "line"

    def records(self, report: Report) -> Iterator[tuple[int, bytes]]:
        """Yield the non-blank lines."""
        with self.opened(self.path) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
        if self.extra is not None:
            self.extra.warn(report)

    def node(self, number: int, record: bytes, report: Report) -> Node | None:
        """The content of a line, with all positions at its start; None if it is invalid."""
        node = parsed_line(record, number, self.path, report)
        if node is None or self.extra is None:
            return node
        return self.extra.kept(node, report, lambda: self._placed(number, record, Report()))

    def exact(self, number: int, record: bytes, report: Report) -> Node | None:
        """The content of a line, with columns; None if it is not UTF-8 or invalid."""
        node = self._placed(number, record, report)
        return node if node is None or self.extra is None else self.extra.kept(node, report, lambda: node)

    def _placed(self, number: int, record: bytes, report: Report) -> Node | None:
        text = _decoded(record, number)
        if isinstance(text, UnicodeDecodeError):
            return None
        found = Report()
        node = read_json(self.path, text, found).value
        for one in found.diagnostics:
            report.add(at_line(one, number - 1))
        return None if node is None else _moved(node, number - 1)

    def renders(self, record: bytes) -> bool:
        """Whether a line may contain placeholders."""
        return b"{{" in record or b"{%" in record

    def reworded(self, record: bytes, found: Diagnostic) -> Diagnostic:
        """The diagnostic unchanged, since its line number is enough."""
        del record
        return found


def _moved(node: Node, lines: int) -> Node:
    """The node, moved down by a number of lines."""
    at = down(span_of(node.at), lines)
    if isinstance(node, Scalar):
        return Scalar(node.value, node.text, at)
    if isinstance(node, ListNode):
        return ListNode([_moved(item, lines) for item in node.items], at)
    items = {key: _moved(item, lines) for key, item in node.items.items()}
    return MapNode(items, {key: down(span_of(place), lines) for key, place in node.keys.items()}, at)


def _decoded(line: bytes, number: int) -> str | UnicodeDecodeError:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        return error


def parsed_line(line: bytes, number: int, path: str, report: Report) -> Node | None:
    """The content of a line, with all positions at its start; None if it is invalid, which is reported."""
    at = Span(path, number, 1, number, 2)
    text = _decoded(line, number)
    if isinstance(text, UnicodeDecodeError):
        report.error("not-utf-8", at, f"not UTF-8 (byte {text.start + 1} of the line)")
        return None
    return parse_json(text, at, report)


INDEX = "index.jsonl"
"""Name of the file with the rows of a run. Other files in its directory are not transcripts."""

LARGEST_LINE = 64_000_000
"""Maximum number of bytes read of the first line, by which a file of transcripts is recognized."""

_ROLES = frozenset({"system", "user", "assistant"})


def holds_transcripts(path: str) -> bool:
    """Whether the first line of a JSON Lines file is the row of a transcript."""
    try:
        with Path(path).open("rb") as file:
            found = json.loads(file.readline(LARGEST_LINE))
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(found, dict) or not {"test_id", "output"} <= found.keys():
        return False
    return isinstance(found.get("input"), list) or isinstance(found.get("trace"), dict)


def transcripts_in(directory: str) -> list[str]:
    """The files of transcripts in a directory, sorted; for the directory of a run, only its `index.jsonl`."""
    folder = Path(directory)
    names = [folder / INDEX] if (folder / INDEX).is_file() else sorted(folder.glob("*.jsonl"))
    return [str(one) for one in names if holds_transcripts(str(one))]


class Transcripts(Struct):
    """The format of a file of transcripts, with one per line."""

    path: str
    unit: str = "transcript"

    def records(self, report: Report) -> Iterator[tuple[int, bytes]]:
        """Yield the lines, without further samples of a case or answers of other targets to the same conversation."""
        del report
        seen: dict[str, bytes] = {}
        with Path(self.path).open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not self._is_repeated(number, line, seen):
                    yield number, line

    def node(self, number: int, record: bytes, report: Report) -> Node | None:
        """The case of a transcript."""
        row = parsed_line(record, number, self.path, report)
        if row is None:
            return None
        at = Span(self.path, number, 1, number, 2)
        value = plain(row)
        test_id = value.get("test_id") if isinstance(value, dict) else None
        if not isinstance(test_id, str) or not test_id.strip():
            report.error(
                "bad-case", at, "a transcript needs the key 'test_id'", hint="write such rows with agentv import"
            )
            return None
        messages = _conversation(value)
        if not messages:
            report.error("missing-input", at, f"the transcript of '{test_id}' has no message of the user")
            return None
        metadata = {"transcript": shown(self.path), **_source(value)}
        return as_data(node_of({"id": test_id, "input": messages, "metadata": metadata}, at))

    def exact(self, number: int, record: bytes, report: Report) -> Node | None:
        """None, since the parts of the case have no positions in the line."""
        del number, record, report
        return None

    def renders(self, record: bytes) -> bool:
        """False: recorded messages are not templates."""
        del record
        return False

    def reworded(self, record: bytes, found: Diagnostic) -> Diagnostic:
        """The diagnostic unchanged, since its line number is enough."""
        del record
        return found

    def _is_repeated(self, number: int, line: bytes, seen: dict[str, bytes]) -> bool:
        """Whether an earlier line has the same conversation for the same case."""
        row = parsed_line(line, number, self.path, Report())
        value = plain(row) if row is not None else None
        test_id = value.get("test_id") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(test_id, str):
            return False
        digest = sha256(json.dumps(_conversation(value)).encode(errors="surrogatepass")).digest()
        if test_id in seen:
            return seen[test_id] == digest
        seen[test_id] = digest
        return False


def _conversation(row: Mapping[str, Any]) -> list[dict[str, Json]]:
    """The recorded conversation up to the last user message."""
    recorded = row.get("input")
    if not isinstance(recorded, list):
        trace = row.get("trace")
        steps = trace.get("steps") if isinstance(trace, dict) else None
        dicts = [one for one in steps if isinstance(one, dict)] if isinstance(steps, list) else []
        # without the messages of sub-agents
        own = [one for one in dicts if one.get("type") == "message" and one.get("parent") is None]
        recorded = [{"role": one.get("role"), "content": one.get("text")} for one in own]
    messages = [{"role": one["role"], "content": one["content"]} for one in recorded if _is_message(one)]
    last = max((place for place, one in enumerate(messages) if one["role"] == "user"), default=-1)
    return messages[: last + 1]


def _is_message(one: object) -> bool:
    if not isinstance(one, dict) or one.get("role") not in _ROLES:
        return False
    content = one.get("content")
    return isinstance(content, list) or (isinstance(content, str) and bool(content.strip()))


def _source(row: Mapping[str, Any]) -> dict[str, str]:
    """The target and the session of the recorded answer, if known."""
    trace = row.get("trace")
    session = trace.get("session_id") if isinstance(trace, dict) else None
    named = {"recorded_target": row.get("target"), "session_id": session}
    return {key: value for key, value in named.items() if isinstance(value, str) and value}
