"""Files of labels: one label per line and append-only, so that git can merge branches by union."""

from __future__ import annotations

import fcntl
import os
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from agentv.errors import StoreError
from agentv.model.run.labels import Label
from agentv.store.files.encoding import to_json
from agentv.store.files.lines import read_lines
from agentv.store.files.whole_file import as_store_error

LABELS = "labels"
_MARKER = re.compile(rb"<{7}|={7}\s|>{7}|\|{7}")
_SHOWN = 20

_Name = Annotated[str, Meta(min_length=1)]
_Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class _LabelLine(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A line of a file; without the keys of `_JUDGE_KEYS` it is a rating."""

    case: _Name
    output_sha256: _Sha256
    rubric_sha256: _Sha256 | UnsetType = UNSET
    label: Literal["pass", "fail", "unsure"]
    person: _Name
    time: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT")]
    suite: str
    assertion: str | UnsetType = UNSET
    run: str
    judge_model: str | UnsetType = UNSET
    prompt_sha256: _Sha256 | UnsetType = UNSET
    judge_pass: bool | UnsetType = UNSET
    note: str = ""
    probability: Annotated[float, Meta(gt=0, le=1)] | None = None
    drawn_from: Annotated[int, Meta(ge=1)] | None = None


_decode = msgspec.json.Decoder(_LabelLine).decode

_JUDGE_KEYS = ("rubric_sha256", "assertion", "judge_model", "prompt_sha256", "judge_pass")
"""Keys of a line that a rating lacks."""

_RENAMED = {"label": "verdict", "judge_model": "model", "judge_pass": "judge_passed"}
_ATTRIBUTES = {name: _RENAMED.get(name, name) for name in _LabelLine.__struct_fields__}
"""Key of a line → attribute of `Label`."""


def labels_directory(root: Path) -> Path:
    """Return the directory of a repository's labels."""
    return root / ".agentv" / LABELS


def labels_file(root: Path, suite: str) -> Path:
    """Return the file of a suite's labels."""
    name = re.sub(r"[^\w.-]+", "-", suite).strip("-.") or "labels"
    return labels_directory(root) / f"{name}.jsonl"


def append_labels(path: Path, labels: Iterable[Label]) -> None:
    """Append labels and flush them to disk. If the file ends with an incomplete line, they begin on a new line.

    Raises:
        StoreError: the file cannot be written.
    """
    text = b"".join(label_line(label) + b"\n" for label in labels)
    if text:
        _append(path, lambda _: text)


def merge_labels(path: Path, labels: Iterable[Label]) -> int:
    """Append the labels that a file lacks, in order, and return their number. Existing lines are unchanged.

    Raises:
        StoreError: the file cannot be read or written.
    """
    wanted = {label_line(label): None for label in labels}
    missing: list[bytes] = []

    def chosen(before: Callable[[], bytes]) -> bytes:
        known = set(map(_canonical, before().split(b"\n")))
        missing.extend(line for line in wanted if line not in known)
        return b"".join(line + b"\n" for line in missing)

    if wanted:
        _append(path, chosen)
    return len(missing)


def _canonical(line: bytes) -> bytes:
    """Return a line in the form that `label_line` writes; lines that are not labels are unchanged."""
    try:
        return label_line(label_in(line))
    except ValueError:
        return line


def _append(path: Path, text_after: Callable[[Callable[[], bytes]], bytes]) -> None:
    """Append text that may depend on the current content of a file, under a lock."""
    with as_store_error("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        with open(descriptor, "r+b", buffering=0) as file:  # noqa: PTH123  # a descriptor
            fcntl.flock(file, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            text = text_after(lambda: os.pread(descriptor, size, 0))
            if not text:
                return
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            written = b"\n" + text if torn else text
            if file.write(written) != len(written):
                os.ftruncate(descriptor, size)
                raise StoreError(f"cannot write {path}: the disk took only a part of it")
            os.fsync(descriptor)


def read_labels(paths: Iterable[Path]) -> list[Label]:
    """Return the labels in files without ratings, in order; raises as `read_labels_and_ratings` does."""
    return [one for one in read_labels_and_ratings(paths) if not one.is_rating]


def read_labels_and_ratings(paths: Iterable[Path]) -> list[Label]:
    """Return the labels and ratings in files, in order.

    Raises:
        StoreError: a file cannot be read, or some lines are not labels; the message lists them.
    """
    found: list[Label] = []
    problems: list[str] = []
    for path in paths:
        for number, raw in read_lines(path):
            line = raw.removeprefix(BOM_UTF8)
            if not line.strip():
                continue
            try:
                found.append(label_in(line))
            except ValueError as error:
                problems.append(f"{path}:{number}: {_problem(line, error)}")
    if problems:
        more = [f"and {len(problems) - _SHOWN} more lines"] if len(problems) > _SHOWN else []
        raise StoreError("\n".join([*problems[:_SHOWN], *more]))
    return found


def is_rating_line(line: bytes) -> bool:
    """Whether a line looks like a rating, without decoding it."""
    return line.startswith(b"{") and b'"rubric_sha256":' not in line


def label_line(label: Label) -> bytes:
    """Return the line of a label, without a line end."""
    left_out = _JUDGE_KEYS if label.is_rating else ()
    return to_json(_LabelLine(**{name: getattr(label, of) for name, of in _ATTRIBUTES.items() if name not in left_out}))


def label_in(line: bytes) -> Label:
    """Return the label in a line.

    Raises:
        ValueError: the line is not a label.
    """
    found = _decode(line)
    unset = [name for name in _JUDGE_KEYS if getattr(found, name) is UNSET]
    if unset and len(unset) < len(_JUDGE_KEYS):
        raise ValueError(f"Object missing required field `{unset[0]}`")
    values: dict[str, Any] = {"rubric_sha256": "", "assertion": ""} if unset else {}
    values |= {of: getattr(found, name) for name, of in _ATTRIBUTES.items() if name not in unset}
    return Label(**values)


def _problem(line: bytes, error: Exception) -> str:
    if _MARKER.match(line):
        return "a conflict marker of git; keep the lines of both sides and delete the markers"
    if not line.endswith(b"\n") or not line.rstrip().endswith(b"}"):
        return "the label was cut off; delete the line and label the answer again"
    return f"not a label: {error}"
