"""Cassettes: files with recorded answers of targets, judges and embedders, to replay a run without calls.

The format is JSON Lines, suitable for people and git: a header `{"format":"agentv-cassette","version":1}`, then one
line per call, sorted so that a new recording only differs where an answer does. A line has `key`, `case`, `target`,
`sample` and `turn` unless they are the default, `asked` (the messages) and `answer`. Files of version 3 also hold
trials of agents, each on several lines (`recorded_trials`).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.redaction import Redactor
from agentv.model.values.message import Message, portable
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.values import JsonObject
from agentv.ports import Call, TargetRequest
from agentv.store.cassettes.recorded_trials import Place, RecordedTrial, call_in, is_exchange, units_in
from agentv.store.files.encoding import to_json
from agentv.store.files.lines import read_lines
from agentv.store.files.whole_file import as_store_error, check_link, checkout_of, open_private
from agentv.store.journal.answers import AnswerRow, answer_row


class _Recording(Struct, gc=False):
    key: str
    case: str
    target: str
    sample: int | UnsetType
    turn: int | UnsetType
    asked: list[JsonObject]
    answer: AnswerRow


class Cassette:
    """The calls in a cassette, and those that a run adds.

    Attributes:
        path: path of the file.
        added, added_trials: numbers of calls and trials of agents that the run added.
        refused: (target, case) of calls that were not recorded because they contain a secret.

    Args:
        redactor: detects secrets, which must not be recorded.
    """

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.path = path
        self.added = self.added_trials = 0
        self.refused: list[tuple[str, str]] = []
        self._redactor = redactor
        self._answers: dict[str, TargetResponse] = {}
        self._trials: dict[str, RecordedTrial] = {}
        self._lines: dict[str, tuple[Place, bytes]] = {}
        self._readable_message: set[tuple[str, str]] = set()

    @classmethod
    def load(cls, path: Path, redactor: Redactor) -> Cassette:
        """Load a cassette from a file.

        Raises:
            StoreError: the file is missing, is not a cassette, contains a call twice, or was written by a newer agentv.
        """
        check_exists(path)
        made = cls(path, redactor)
        first_lines: dict[str, int] = {}
        for number, line in made._units():
            key = made._add_unit(number, line)
            first = first_lines.setdefault(key, number)
            if first != number:
                why = "as after a merge that kept both sides: delete the line that should not count"
                raise StoreError(f"{path}:{number}: duplicate of the call in line {first}, {why}")
        return made

    def _units(self) -> Iterator[tuple[int, bytes | RecordedTrial]]:
        """Yield the calls and recorded trials now in the file, each with the number of its first line."""
        return units_in(self.path, calls_in(self.path))

    def _add_unit(self, number: int, line: bytes | RecordedTrial) -> str:
        """Add the call in a line, or a recorded trial, and return its key."""
        if isinstance(line, RecordedTrial):
            self._trials[line.trial.key] = line
            self._lines[line.line_key] = (line.place, line.lines())
            return line.line_key
        try:
            found, answer = call_in(line)
        except (ValueError, LookupError, TypeError) as error:
            raise StoreError(f"{self.path}:{number}: not a cassette call: {error}") from error
        self._answers[found.key] = answer
        self._readable_message.add((found.target, found.case))
        self._lines[found.key] = (found.place, line if line.endswith(b"\n") else line + b"\n")
        return found.key

    @property
    def empty(self) -> bool:
        """Whether it contains no calls."""
        return not self._lines

    @property
    def trials(self) -> int:
        """Number of recorded trials of agents."""
        return len(self._trials)

    def recorded_trial(self, call: Call) -> RecordedTrial | Failure:
        """Return the recording of a trial, or why the cassette has no usable one."""
        found = self._trials.get(call.key)
        if found is not None:
            return found
        what = f"'{call.target}' at the case '{call.request.case_id}'"
        others = (one for one in self._trials.values() if one.is_of(call))
        why = next((f"; it has one, but {one.changed(call)} changed since" for one in others), "")
        return Failure("not-recorded", f"{self.path.name} has no recorded trial of {what}{why}")

    def keep_trial(self, recorded: RecordedTrial, texts: Iterable[str]) -> bool:
        """Record a trial, replacing an earlier recording of it, unless it contains a secret.

        Args:
            recorded: the trial.
            texts: texts of its replies, joined from the pieces of streams.

        Returns:
            Whether the trial was recorded.
        """
        lines, trial = recorded.lines(), recorded.trial
        if any(self._redactor.redact(text) != text for text in texts) or self._redactor.found_in(lines):
            self.refused.append((trial.target, trial.case))
            return False
        self._trials[trial.key] = recorded
        self._lines[recorded.line_key] = (recorded.place, lines)
        self.added_trials += 1
        return True

    def stored_answer(self, call: Call) -> TargetResponse | None:
        """Return the recorded answer to a call, or None."""
        return self._answers.get(call.key)

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Record the answer to a call that is not recorded yet. An answer with a secret is refused.

        Answers of agents behind the gateway are not recorded. The replies of their models are, and on replay the agent
        runs again.
        """
        if call.key in self._lines or call.request.gateway is not None:
            return
        request = call.request
        took_ms = None if answer.duration_ms is None else round(answer.duration_ms, 3)  # readable
        line = to_json(
            _Recording(
                call.key,
                request.case_id,
                call.target,
                request.sample if request.sample > 1 else UNSET,
                request.turn or UNSET,
                [_readable_message(message, request) for message in portable(request.messages, request.root)],
                answer_row(replace(answer, earlier=False, duration_ms=took_ms)),  # the same wherever it came from
            )
        )
        if self._redactor.found_in(line):
            self.refused.append((call.target, request.case_id))
            return
        place = (request.case_id, call.target, request.turn or 0, request.sample, call.key)
        self._lines[call.key] = (place, line + b"\n")
        self.added += 1

    def unanswered(self, call: Call) -> Failure:
        """Return why the cassette has no answer to a call."""
        target, case = call.target, call.request.case_id
        what = f"'{target}' to the case '{case}'" if case else f"'{target}'"
        if (target, case) in self._readable_message:
            why = "it has one to something else: the input, a prompt, or the target's settings changed"
            return Failure("not-recorded", f"{self.path.name} has no answer of {what} to this; {why}")
        return Failure("not-recorded", f"{self.path.name} has no answer of {what}")

    def write(self) -> tuple[int, int]:
        """Replace the file atomically, and return the new and the old number of calls and trials in it.

        Raises:
            StoreError: the file cannot be written, or is no longer a cassette.
        """
        with replacing(self.path) as file:
            before = sum(not is_exchange(line) for _, line in calls_in(self.path))
            self._write(file)
        return len(self._lines), before

    def add(self) -> int:
        """Add the new calls and trials to the current content of the file, and return the number that it then holds.

        Raises:
            StoreError: as for `write` and `load`.
        """
        with replacing(self.path) as file:
            own = dict(self._lines)  # these take precedence over lines that others changed since
            for number, line in self._units():
                self._add_unit(number, line)
            self._lines.update(own)
            self._write(file)
        return len(self._lines)

    def _write(self, file: BinaryIO) -> None:
        file.write(header(trials=bool(self._trials)))
        file.writelines(line for _, line in sorted(self._lines.values()))


def _readable_message(message: Message, request: TargetRequest) -> JsonObject:
    """Return a message for readers, with random values replaced by names so that recordings do not differ by them."""
    row = dict(message.as_json())
    if request.nonces and isinstance(row.get("content"), str):
        text = str(row["content"])
        for number, nonce in enumerate(request.nonces):
            text = text.replace(nonce, f"[nonce-{number}]")
        row["content"] = text
    return row


VERSION = 3
_FORMAT = "agentv-cassette"


def header(*, trials: bool = False) -> bytes:
    """Return the first line of a cassette, with version 1 if it holds no trials of agents."""
    return f'{{"format":"{_FORMAT}","version":{3 if trials else 1}}}\n'.encode()


def check_exists(path: Path) -> None:
    """Raise an error if a cassette does not exist.

    Raises:
        StoreError: the path is not a file.
    """
    if not path.is_file():
        raise StoreError(f"no cassette at {path}; `agentv eval --record {path}` writes one")


def calls_in(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a cassette after the header, each with its number; nothing if the file is missing.

    Raises:
        StoreError: it cannot be read, is not a cassette, or was written by a newer agentv.
    """
    lines = read_lines(path)
    first = next(lines, None)
    if first is None and not path.exists():
        return
    _check_header(path, first[1] if first is not None else b"")
    yield from lines


def new_file(path: Path) -> Path:
    """Return the path of the temporary file that later replaces a cassette."""
    return path.with_name(f".{path.name}.new")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces a cassette when the block ends; a symlink to the cassette is kept.

    The writer holds a lock on the temporary file. Renaming removes its name, so a process that was waiting for the lock
    creates a new file.

    Raises:
        StoreError: the file cannot be written.
    """
    with as_store_error("write", path):
        place = _place(path)
        new = new_file(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked(new) as file, ExitStack() as leftover:
            leftover.callback(new.unlink, missing_ok=True)
            file.truncate(0)
            yield file
            file.flush()
            os.fsync(file.fileno())
            new.replace(place)
            leftover.pop_all()


def _place(path: Path) -> Path:
    """Return the real path of a cassette. A symlink may point anywhere in the same repository.

    Raises:
        StoreError: the symlink points outside of the repository.
    """
    if not path.is_symlink():
        return Path(os.path.realpath(path))
    return check_link(path, checkout_of(path))


def _locked(new: Path) -> BinaryIO:
    while True:
        file = open(open_private(new, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")  # noqa: PTH123, SIM115
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), new.stat()):
                return file
        file.close()  # another process renamed the file while this one waited


def check_place(path: Path) -> None:
    """Raise an error if a cassette could not be written to a path, before any paid call.

    Raises:
        StoreError: the path is a directory or a file that is not a cassette, or cannot be written.
    """
    with as_store_error("write", path):
        if path.exists():
            if not path.is_file():
                kind = "a directory" if path.is_dir() else "not a regular file"
                raise StoreError(f"{path} is {kind}: a cassette must be a file")
            next(calls_in(path), None)
        place = _place(path)
        there = next(one for one in place.absolute().parents if one.exists())  # missing ones will be created
        if not there.is_dir():
            raise StoreError(f"cannot write {place}: {there.name} is not a directory")
        if not os.access(there, os.W_OK | os.X_OK):
            raise StoreError(f"cannot write {place}: the directory {there} is not writable")
        new_file(place).exists()  # raises if the name is too long


def _check_header(path: Path, line: bytes) -> None:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    if isinstance(found, dict) and found.get("format") == _FORMAT:
        version = found.get("version")
        if version in range(1, VERSION + 1):
            return
        raise StoreError(f"{path} was written by a newer agentv (format {version}; this one reads up to {VERSION})")
    raise StoreError(f"{path} is not a cassette: its first line is not {header().decode().strip()}")
