"""Digests of examined texts, and how they differ from the current ones (SPEC section 11)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from stat import S_ISREG

from agentv.model.suite.exam import DESCRIPTION, TARGET, ExamRow, normalised
from agentv.model.suite.library import ChangeKind, called


@dataclass(frozen=True, slots=True)
class DigestChange:
    """A text whose digest changed."""

    path: str
    kind: ChangeKind

    def __str__(self) -> str:
        """For people: `prompt.xml: edited`."""
        name = called(self.path)
        return f"{name if name == self.path else f'the {name}'}: {self.kind}"


def digests(texts: Mapping[str, bytes]) -> dict[str, str]:
    """Path → sha256, in hexadecimal, of what `Exam.texts` holds."""
    return {path: hashlib.sha256(data).hexdigest() for path, data in texts.items()}


def prompt_sha256(found: Mapping[str, str]) -> str:
    """One hash over all digests: that of the JSON of their sorted pairs, `[["a","…"],["b","…"]]`, in ASCII."""
    return hashlib.sha256(json.dumps(sorted(found.items()), separators=(",", ":")).encode()).hexdigest()


def changes(recorded: Mapping[str, str], now: Mapping[str, str]) -> tuple[DigestChange, ...]:
    """Differences between the digests in a row and the current ones, by path."""
    now, found = comparable(recorded, now), []
    for path in sorted(recorded.keys() | now.keys()):
        if path not in recorded:
            found.append(DigestChange(path, "added"))
        elif path not in now:
            found.append(DigestChange(path, "removed"))
        elif recorded[path] != now[path]:
            found.append(DigestChange(path, "edited"))
    return tuple(found)


def comparable(recorded: Mapping[str, str], now: Mapping[str, str]) -> Mapping[str, str]:
    """The current digests that a row can be compared with.

    A row that records no target, as older ones do, is compared without. A recorded target that cannot be read here,
    since a variable of the environment is not set, is taken as it was: what names targets is among the texts.
    """
    targets = {path: digest for path, digest in recorded.items() if path.startswith(TARGET)}
    if targets:
        return {**targets, **now}
    return {path: digest for path, digest in now.items() if not path.startswith(TARGET)}


def is_current(row: ExamRow, now: Mapping[str, str]) -> bool:
    """Whether a row is about what there is now."""
    return row.prompt_sha256 == prompt_sha256(comparable(row.files, now))


def current_digests(
    directory: str, recorded: Mapping[str, str], description: str | None, targets: Mapping[str, str]
) -> dict[str, str]:
    """The digests of today of the files that a row names, without loading the exam; what is gone is left out.

    A file that the exam has come to rest on since is not found this way: it is named by one of these, which was edited.

    Args:
        directory: the prompt's.
        recorded: `files` of the row.
        description: of the prompt as it stands.
        targets: digests of today of recorded targets; others are taken as they were.
    """
    found: dict[str, str] = {}
    for path in recorded:
        if path.startswith(TARGET):
            found[path] = targets.get(path, recorded[path])
        elif path != DESCRIPTION and (data := _bytes(os.path.join(directory, path))) is not None:  # noqa: PTH118  # for thousands of prompts
            found[path] = hashlib.sha256(normalised(data)).hexdigest()
    if description is not None:
        found[DESCRIPTION] = hashlib.sha256(description.encode()).hexdigest()
    return found


def _bytes(path: str) -> bytes | None:
    """A file's bytes. A row may name anything: what is no plain file may never end, and is not there."""
    try:
        with open(path, "rb", opener=_at_once) as file:  # as above
            return file.read() if S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None


def _at_once(path: str, flags: int) -> int:
    """Open a file; a pipe would wait for somebody who writes into it."""
    return os.open(path, flags | os.O_NONBLOCK)
