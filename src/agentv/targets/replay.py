"""The `replay` target, which looks up recorded answers by case and sample.

Only the offset of each row of the JSONL file is kept in memory, at 16 to 32 bytes per row. A file can therefore have
millions of rows and be larger than memory. In return, each call reads one row from disk, which takes some 10 µs.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec.structs import replace

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import messages_from_json
from agentv.model.values.response import ANSWER_KEYS, Failure, TargetResponse
from agentv.model.values.trace import Trace
from agentv.model.values.values import EMPTY
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Doc, FileOrDirectoryPath, Text
from agentv.registry.types import Calls, ProviderSettings
from agentv.targets.http.answers import LIMIT, from_object
from agentv.targets.http.preparation import Once


@dataclass(frozen=True, slots=True)
class Replay(ProviderSettings):
    """Returns recorded answers; a case without a recording is an error."""

    calls: ClassVar[Calls] = "nothing"
    example: ClassVar[str | None] = "answers.jsonl"
    short: ClassVar[str | None] = "fixtures"
    free: ClassVar[bool] = True

    fixtures: Annotated[
        FileOrDirectoryPath,
        Doc(
            "JSONL of rows with `test_id` (or `id`) and `output`, and optionally `sample`, `token_usage`, …; "
            "or a directory of such files, or of a run"
        ),
    ]

    suite: Annotated[Text | None, Doc("use the rows of this suite only")] = None
    source_target: Annotated[Text | None, Doc("use the rows of this target only")] = None
    variant: Annotated[Text | None, Doc("use the rows of this variant only")] = None

    @property
    def rows(self) -> Mapping[str, str]:
        """Keys and values that a row must have to be used."""
        settings = {"suite": self.suite, "source_target": self.source_target, "variant": self.variant}
        return {key: value for key, value in settings.items() if value is not None}

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target that reads the recordings at the first call."""
        del spec
        return _Replay(self, executor)


class _Replay:
    def __init__(self, settings: Replay, executor: Executor) -> None:
        self._settings = settings
        self._executor = executor
        self._reading: Once[Recordings | Failure] = Once()
        self._read: Recordings | Failure | None = None

    def answer(self, request: TargetRequest) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
        if self._read is None:
            return self._answer_first(request)
        return self._find(self._read, request)

    async def _answer_first(self, request: TargetRequest) -> TargetResponse | Failure:
        self._read = await self._reading.result(
            lambda: self._executor.call(lambda: Recordings.open(self._settings.fixtures, self._settings.rows))
        )
        return self._find(self._read, request)

    @staticmethod
    def _find(read: Recordings | Failure, request: TargetRequest) -> TargetResponse | Failure:
        if isinstance(read, Failure):
            return read
        return read.answer(request.case_id, request.sample, request.prompt_id, request.turn)

    async def close(self) -> None:
        await self._reading.close()
        if self._read is not None and not isinstance(self._read, Failure):
            self._read.close()


ROW_LIMIT = 8 * LIMIT
"""Largest row in bytes: room for an answer and its messages with JSON escapes."""

COMPARED = 1000
"""Largest number of recorded cases for which a missing id gets a "did you mean" hint."""

_ANSWER_KEYS = {"response_metadata" if key == "metadata" else key: key for key in ANSWER_KEYS}
"""Keys of a row that belong to the answer → keys of an answer object."""
_ANY_SAMPLE = 0


_NONE = msgspec.Raw(b"null")


class _RecordedRow(msgspec.Struct):
    """The keys of a row that the index needs. The decoder skips the others."""

    output: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    test_id: str | int | None = None
    id: str | int | None = None
    sample: int | None = None
    status: str | None = None
    error: msgspec.Raw = _NONE
    target: msgspec.Raw = _NONE
    suite: msgspec.Raw = _NONE
    source_target: msgspec.Raw = _NONE
    variant: msgspec.Raw = _NONE
    attempt: int | None = None
    prompt_id: msgspec.Raw = _NONE

    @property
    def case(self) -> str | None:
        """The id of the case."""
        found = self.test_id if self.test_id is not None else self.id
        return None if found is None else str(found)

    @property
    def prompt(self) -> str | None:
        """The id of the prompt that the row answers; None if the case has its own input."""
        found: object = msgspec.json.decode(self.prompt_id)
        return found if isinstance(found, str) else None

    @property
    def source(self) -> tuple[bytes, ...]:
        """The target, suite, source target, variant and prompt of the answer, as raw JSON."""
        return tuple(map(bytes, (self.target, self.suite, self.source_target, self.variant, self.prompt_id)))

    @property
    def number(self) -> int:
        """The sample that the row answers, from 1, or 0 for every sample. AgentV's `attempt` counts from 0."""
        return self.sample or (self.attempt + 1 if self.attempt else _ANY_SAMPLE)

    def matches(self, wanted: Mapping[str, str]) -> bool:
        """Whether the row has the wanted suite, target and variant."""
        for key, value in wanted.items():
            data = bytes(getattr(self, key))
            if key == "source_target" and data == b"null":
                data = bytes(self.target)  # rows of agentv's own runs name it `target`
            if data == b"null" or msgspec.json.decode(data) != value:
                return False
        return True

    @property
    def unanswered(self) -> bool:
        """Whether the row records an error or a skip instead of an answer."""
        return self.status in {"errored", "skipped"} or bytes(self.error) != b"null"


class Recordings:
    """The recorded answers in one file, with rows as in `index.jsonl` (SPEC section 13).

    Of several rows for one case and sample, the last one counts. A row without `sample` answers every sample.
    """

    def __init__(self, path: str, file: _JoinedFiles, wanted: Mapping[str, str]) -> None:
        self._wanted = wanted
        self.name = Path(path).name
        self._directory = Path(path) if Path(path).is_dir() else Path(path).parent
        self._file = file
        self._offsets = _Offsets()
        self._ids: set[str] | None = set()

    @classmethod
    def open(cls, path: str, wanted: Mapping[str, Any] = EMPTY) -> Recordings | Failure:
        """Index the rows of a file, or return a Failure that names the first invalid line (code `bad-recording`).

        Args:
            path: path of the file, or of a directory of such files.
            wanted: keys and values that a row must have to be used.
        """
        place = Path(path)
        try:
            files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
            if not files:
                return Failure("bad-recording", f"the directory {place.name} has no JSONL file")
            index = place / "index.jsonl"  # a run directory has other JSONL files too
            found = cls(path, _JoinedFiles([index] if index.is_file() else files), wanted)
            failure = found._read()
        except OSError as error:
            return Failure("bad-recording", f"cannot read {place.name}: {error.strerror}")
        return failure or found

    def _read(self) -> Failure | None:
        decoder = msgspec.json.Decoder(_RecordedRow)
        begin = 0
        for number, line in enumerate(iter(lambda: self._file.readline(ROW_LIMIT), b""), 1):
            content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not content.isspace():
                try:
                    self._index(decoder.decode(content), begin)
                except ValueError as error:
                    self.close()
                    return Failure("bad-recording", f"{self.name}:{number}: {error}")
            begin += len(line)
        self._offsets.sort()
        return None

    def _index(self, row: _RecordedRow, begin: int) -> None:
        case = row.case
        if case is None:
            raise ValueError("the row has neither 'test_id' nor 'id'")
        if self._wanted and not row.matches(self._wanted):
            return
        if not row.unanswered and (row.output is msgspec.UNSET or bytes(row.output)[:1] not in b'"[n'):
            raise ValueError("the row must have an 'output': text, messages or null")
        self._offsets.note(_key(case, row.number), begin, row.source)
        if row.prompt is not None:  # found again by case and prompt together
            self._offsets.note(_key(_case_with_prompt(case, row.prompt), row.number), begin, row.source[:-1])
        if self._ids is not None:
            self._ids.add(case)
            if len(self._ids) > COMPARED:
                self._ids = None

    def answer(
        self, case: str, sample: int, prompt_id: str | None = None, turn: int | None = None
    ) -> TargetResponse | Failure:
        """Return the recorded answer to one sample of a case, or to one of its turns.

        A row for that prompt takes precedence over a row without a prompt.
        """
        names = [case] if prompt_id is None else [_case_with_prompt(case, prompt_id), case]
        found = (self._offsets.find(_key(name, one)) for name in names for one in (sample, _ANY_SAMPLE))
        begin = next((place for place in found if place is not None), None)
        if begin is None:
            return self._missing(case, sample)
        if begin == AMBIGUOUS:
            message = f"{self.name} has answers to '{case}' from several targets, suites or prompts; keep those of one"
            return Failure("ambiguous-recording", message)
        row = self._row(begin)
        if row is None or str(row.get("test_id", row.get("id"))) != case:
            return Failure("bad-recording", f"{self.name} has changed since it was read")
        if prompt_id is not None and row.get("prompt_id") not in (None, prompt_id):
            return Failure("no-recording", f"{self.name} has an answer to '{case}' only with another prompt")
        return self._answer_in(row, case, turn)

    def _answer_in(self, row: dict[str, Any], case: str, turn: int | None) -> TargetResponse | Failure:
        unanswered = f"the recording of '{case}' in {self.name} has no answer"
        error = row.get("error")
        if error is not None or row.get("status") in {"errored", "skipped"}:
            why = error.get("message", error) if isinstance(error, dict) else error or row.get("status")
            return Failure("no-recording", f"{unanswered}: {str(why)[:200]}")
        answer = _answer(row) if turn is None else _answer_to(row, turn)
        trace = self._trace_in(row) if turn is None else None
        if isinstance(trace, Trace) and trace.error:
            return Failure("no-recording", f"{unanswered}: {trace.unanswered}")
        for found in (answer, trace):
            if isinstance(found, Failure):
                return Failure(found.code, f"{self.name}, row of '{case}': {found.message}")
        return answer if trace is None else replace(answer, trace=trace)

    def _trace_in(self, row: dict[str, Any]) -> Trace | Failure | None:
        """Return the trace in the row, or in the file below the recording's directory that the row names."""
        inline, named = row.get("trace"), row.get("trace_path")
        if inline is None and not isinstance(named, str):
            return None
        from agentv.model.values.trace_document import LARGEST_FILE, parse  # few recordings have traces

        if inline is not None:
            return parse(msgspec.json.encode(inline), "trace")
        root = self._directory.resolve()
        path = (root / str(named)).resolve()
        if not path.is_relative_to(root):
            return Failure("bad-trace", f"'{named}' is outside the directory of the recording")
        try:
            if path.stat().st_size > LARGEST_FILE:
                return Failure("bad-trace", f"{path.name} is larger than {LARGEST_FILE / 1_000_000:g} MB")
            return parse(path.read_bytes(), path.name)
        except OSError as error:
            return Failure("bad-trace", f"cannot read {path.name}: {error.strerror}")

    def _row(self, begin: int) -> dict[str, Any] | None:
        try:
            self._file.seek(begin)
            row = msgspec.json.decode(self._file.readline(ROW_LIMIT).removeprefix(b"\xef\xbb\xbf"))
        except (OSError, ValueError):
            return None
        return row if isinstance(row, dict) else None

    def _missing(self, case: str, sample: int) -> Failure:
        if self._offsets.find(_key(case, 1)) is not None:
            return Failure("no-recording", f"{self.name} has no sample {sample} of '{case}'")
        from rapidfuzz.process import extractOne

        of = "".join(f", with {key} '{value}'" for key, value in self._wanted.items())
        near = extractOne(case, self._ids or (), score_cutoff=60)
        hint = f"; did you mean '{near[0]}'?" if near is not None else ""
        return Failure("no-recording", f"{self.name} has no answer to '{case}'{of}{hint}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _JoinedFiles:
    """Several files, read as if they were concatenated."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files = [path.open("rb") for path in paths]
        self._begins = [0]
        for file in self._files:
            self._begins.append(self._begins[-1] + file.seek(0, os.SEEK_END))
        self.seek(0)

    def seek(self, place: int) -> None:
        """Go to an offset in bytes from the beginning of the first file."""
        self._current = min(bisect_right(self._begins, place) - 1, len(self._files) - 1)
        self._files[self._current].seek(place - self._begins[self._current])

    def readline(self, limit: int) -> bytes:
        """Return the next line, or b"" at the end of the last file."""
        while True:
            line = self._files[self._current].readline(limit)
            if line or self._current == len(self._files) - 1:
                return line
            self._current += 1
            self._files[self._current].seek(0)

    def close(self) -> None:
        """Close all files."""
        for file in self._files:
            file.close()


def _answer(row: dict[str, Any]) -> TargetResponse | Failure:
    found = from_object({ours: row[name] for name, ours in _ANSWER_KEYS.items() if name in row})
    thoughts = row.get("thoughts")
    if not isinstance(thoughts, str) or isinstance(found, Failure):
        return found
    return replace(
        found, output=thoughts + (found.output or "")
    )  # the full answer: the target decides whether to strip the thoughts


def _answer_to(row: dict[str, Any], turn: int) -> TargetResponse | Failure:
    """Return the recorded answer to one turn, counted from 1, with the messages of its tool calls."""
    turns = row.get("turns")
    turn_row = turns[turn - 1] if isinstance(turns, list) and turn <= len(turns) else None
    if not isinstance(turn_row, dict):
        count = len(turns) if isinstance(turns, list) else "no"
        return Failure("no-recording", f"there is no answer to turn {turn}: the row has {count} 'turns'")
    answer = _answer(turn_row)
    if isinstance(answer, Failure) or not turn_row.get("messages"):
        return answer
    try:
        return replace(answer, messages=messages_from_json(turn_row["messages"]))
    except (ValueError, AttributeError, TypeError):
        return Failure("bad-answer", f"the 'messages' of turn {turn} are not valid messages")


def _case_with_prompt(case: str, prompt_id: str) -> str:
    """Return a name for a case with one of several prompts. No id contains the separating NUL character."""
    return f"{case}\0{prompt_id}"


def _key(case: str, sample: int) -> int:
    """Return a 64-bit hash of a case and a sample."""
    return hash((case, sample)) & 0xFFFF_FFFF_FFFF_FFFF


_BEGIN_BITS = 48
_MOST_SOURCES = 1 << 64 - _BEGIN_BITS
AMBIGUOUS = -1
"""Result of `_Offsets.find` for a key whose rows come from several sources."""


class _Offsets:
    """The offsets of the rows by key, in two parallel arrays that `sort` orders by key."""

    def __init__(self) -> None:
        self._keys, self._values = array("Q"), array("Q")
        self._sources: dict[tuple[bytes, ...], int] = {}

    def note(self, key: int, begin: int, source: tuple[bytes, ...]) -> None:
        """Add the offset of a row."""
        number = min(self._sources.setdefault(source, len(self._sources)), _MOST_SOURCES - 1)
        self._keys.append(key)
        self._values.append(number << _BEGIN_BITS | begin)

    def sort(self) -> None:
        """Sort by key, which `find` requires. Rows with the same key stay in their order."""
        keys, values = self._keys, self._values
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self._keys, self._values = (array("Q", map(one.__getitem__, order)) for one in (keys, values))

    def find(self, key: int) -> int | None:
        """Return the offset of the last row of a key in bytes, AMBIGUOUS if its rows have several sources, or None."""
        first = last = bisect_left(self._keys, key)
        while last < len(self._keys) and self._keys[last] == key:
            last += 1
        found = self._values[first:last]
        if not found:
            return None
        several = len({value >> _BEGIN_BITS for value in found}) > 1
        return AMBIGUOUS if several else found[-1] & (1 << _BEGIN_BITS) - 1
