"""A prompt's exam, its attempts, and the metadata of a prompt (SPEC section 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct, field

from agentv.model.values.values import EMPTY, JsonObject, Span

PromptStatus = Literal["draft", "tested", "ready"]
STATUSES: tuple[PromptStatus, ...] = get_args(PromptStatus)
"""Statuses of a prompt, in order."""

DESCRIPTION = "meta.yaml#description"
"""The key of the description among the files of an exam; the rest of `meta.yaml` is not evaluated."""

TARGET = "targets.yaml#"
"""Stands before the name of a model or judge among the files of an exam: the record is what it was set to."""

LONGEST_DESCRIPTION = 1024
"""Characters of a description; more no system that loads prompts by it would show."""


def normalised(data: bytes) -> bytes:
    """A file's bytes as `Exam.texts` holds them: without a byte order mark, every line ended by a line feed alone.

    What holds a NUL is no text, and stays as it is.
    """
    if b"\0" in data:
        return data
    data = data.removeprefix(b"\xef\xbb\xbf")
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


class Exam(Struct, frozen=True):
    """Marks a suite as the exam of a prompt, and contains the data to record it.

    Attributes:
        prompt: the prompt's id.
        directory: the prompt's, absolute: where its log is.
        texts: what the exam rests on: path from the prompt's directory, parts joined by `/` → the bytes, `normalised`.
            The description, if the prompt has one, is under `DESCRIPTION`, in UTF-8; the settings of each model and
            judge are under `TARGET` and its name, as JSON without secrets.
        other_model: it runs on another model than the one that it specifies.
        queries: id of the case that asks about a query → whether the query should trigger the prompt.
    """

    prompt: str
    directory: str
    texts: Mapping[str, bytes] = field(default_factory=dict)
    other_model: bool = False
    queries: Mapping[str, bool] = field(default_factory=dict)


class PromptMeta(Struct, frozen=True):
    """What `meta.yaml` says of a prompt.

    Attributes:
        id: its directory's name, unless the file says another.
        path: of the file, absolute; None if the prompt has no such file.
        others: every other key of the file.
        places: key → where it stands.
    """

    id: str
    path: str | None = None
    description: str | None = None
    status: PromptStatus = "draft"
    owner: str | None = None
    tags: tuple[str, ...] = ()
    others: JsonObject = field(default=EMPTY)
    places: Mapping[str, Span] = field(default_factory=dict)


class ExamRow(Struct, frozen=True):
    """One row of `.eval.jsonl`: a complete or incomplete exam.

    Attributes:
        ts: when it ended, ISO 8601 in UTC; rows of eva may hold other text.
        total: cases and queries, each on every target.
        failed_cases: ids of those that failed, errored or were not run, in the exam's order.
        prompt_sha256, files: the examined texts: the hash over `files`, path → sha256; None and empty in rows of eva.
        errored: how many were not graded, because the target, the judge or the network failed.
        partial: a part of the exam, or another model than the exam names.
        line: of the log, from 1; 0: not written yet.
    """

    ts: str
    all_passed: bool
    total: int
    passed: int
    failed_cases: tuple[str, ...] = ()
    run_id: str | None = None
    prompt_sha256: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    judge: str | None = None
    errored: int = 0
    partial: bool = False
    line: int = 0
