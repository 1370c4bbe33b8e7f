"""The exam of a prompt, the log of its attempts, and the prompt's metadata (SPEC section 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct, field

from agentv.model.values.values import EMPTY, JsonObject, Span

PromptStatus = Literal["draft", "tested", "ready"]
STATUSES: tuple[PromptStatus, ...] = get_args(PromptStatus)
"""Statuses of a prompt, from lowest to highest."""

DESCRIPTION = "meta.yaml#description"
"""Key of the description in `Exam.texts`; the rest of `meta.yaml` is not examined."""

TARGET = "targets.yaml#"
"""Prefix of the keys in `Exam.texts` that hold the settings of a model or judge."""

LONGEST_DESCRIPTION = 1024
"""Maximum characters of a description; systems that choose prompts by their descriptions show no more."""


def normalised(data: bytes) -> bytes:
    """Return a file's bytes without a byte order mark and with LF line endings, as stored in `Exam.texts`.

    Data with a NUL byte is binary and returned unchanged.
    """
    if b"\0" in data:
        return data
    data = data.removeprefix(b"\xef\xbb\xbf")
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


class Exam(Struct, frozen=True):
    """The exam of a prompt: marks a suite as one, and holds the data to record an attempt.

    Attributes:
        prompt: the prompt's id.
        directory: absolute path of the prompt's directory, which holds its log.
        texts: everything that determines the result: path relative to the prompt's directory, with `/` → bytes,
            `normalised`. The description, if there is one, is under `DESCRIPTION`, in UTF-8; the settings of each model
            and judge are under `TARGET` plus its name, as JSON without secrets.
        other_model: whether it runs on a different model than the one that it specifies.
        queries: id of a query's case → whether the query should trigger the prompt.
    """

    prompt: str
    directory: str
    texts: Mapping[str, bytes] = field(default_factory=dict)
    other_model: bool = False
    queries: Mapping[str, bool] = field(default_factory=dict)


class PromptMeta(Struct, frozen=True):
    """The content of a prompt's `meta.yaml`.

    Attributes:
        id: the id in the file, or else the name of the directory.
        path: absolute path of the file; None if the prompt has none.
        others: all other keys of the file.
        places: key → its position.
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
    """One row of `.eval.jsonl`: an attempt at an exam, complete or partial.

    Attributes:
        ts: when it ended, ISO 8601 in UTC; rows written by eva may hold other text.
        total: number of cases and queries, counted once per target.
        failed_cases: ids of the cases that failed, errored or did not run, in the exam's order.
        prompt_sha256: hash over `files`; None in rows written by eva.
        files: path → sha256 of the examined texts; empty in rows written by eva.
        errored: number of cases that were not graded because the target, the judge or the network failed.
        partial: whether only a part of the exam ran, or another model than the exam specifies.
        line: line of the log, from 1; 0 if not written yet.
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
