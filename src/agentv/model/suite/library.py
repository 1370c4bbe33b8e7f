"""A library of prompts, as `agentv prompt` tells of it (SPEC section 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from agentv.model.suite.exam import DESCRIPTION, TARGET, ExamRow, PromptStatus
from agentv.model.values.message import Message
from agentv.model.values.values import EMPTY, JsonObject

ChangeKind = Literal["edited", "added", "removed"]


def called(path: str) -> str:
    """Display name of a text of an exam: a path, the description, or a target."""
    if path.startswith(TARGET):
        return f"target '{path.removeprefix(TARGET)}'"
    return "description" if path == DESCRIPTION else path


class TextChange(Struct, frozen=True):
    """A text that changed after the exam.

    Attributes:
        path: from the prompt's directory; the description is called so.
    """

    path: str
    kind: ChangeKind

    def __str__(self) -> str:
        """For people: `prompt.xml: edited`."""
        name = called(self.path)
        return f"{name if name == self.path else f'the {name}'}: {self.kind}"


class ListedPrompt(Struct, frozen=True):
    """One prompt of a library.

    Attributes:
        directory: absolute.
        edited: the text that its status is based on has changed.
        last: the most recent row of its log; None: the exam never ran.
        changes: texts that differ from those of the last exam attempt; empty if that attempt records no texts.
        compared: whether the last exam attempt records its texts.
        wrong: meta.yaml or the log cannot be read as it should; doctor says how.
    """

    id: str
    directory: str
    status: PromptStatus
    edited: bool = False
    last: ExamRow | None = None
    changes: tuple[TextChange, ...] = ()
    compared: bool = False
    wrong: bool = False


class PromotionGate(Struct, frozen=True):
    """Whether a prompt may be promoted.

    Attributes:
        to: the status that it would get; None if it has the highest.
        reasons: what is in the way, each with the notes that belong to it; empty: the gate is open.
    """

    to: PromptStatus | None
    reasons: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def open(self) -> bool:
        """Whether the promotion is allowed."""
        return self.to is not None and not self.reasons


class ShownPrompt(Struct, frozen=True):
    """All data on one prompt.

    Attributes:
        listed: what the list tells of it.
        others: the keys of meta.yaml that only people read.
        texts: what its exam rests on, by path, with how many bytes each has; empty where the exam cannot be read.
        cases: the ids of the exam's cases, in its order.
        queries: query → whether it should trigger the prompt.
        exam_rows: the rows of its log, oldest first.
        findings: how many things doctor finds wrong.
    """

    listed: ListedPrompt
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    others: JsonObject = field(default=EMPTY)
    texts: Mapping[str, int] = field(default_factory=dict)
    cases: tuple[str, ...] = ()
    queries: Mapping[str, bool] = field(default_factory=dict)
    exam_rows: tuple[ExamRow, ...] = ()
    findings: int = 0
    gate: PromotionGate = field(default_factory=lambda: PromotionGate(None))


class Rendered(Struct, frozen=True):
    """What a model would see of one case of an exam."""

    prompt: str
    case: str
    messages: tuple[Message, ...]


class TextDifference(Struct, frozen=True):
    """One text of an exam, as examined and as it is now.

    Attributes:
        before, after: the texts; None: there was, or is, none.
        lost: its earlier text is not stored here; only its hash shows that it changed.
    """

    path: str
    kind: ChangeKind
    before: bytes | None = None
    after: bytes | None = None
    lost: bool = False


class PromptDiff(Struct, frozen=True):
    """A prompt and the texts of its last exam attempt; `exam_row` is None if no attempt can be compared with."""

    prompt: str
    exam_row: ExamRow | None
    differences: tuple[TextDifference, ...] = ()


class Covered(Struct, frozen=True):
    """What evidence covers: path → sha256.

    Attributes:
        ts: when the latest exam ran; None if none ever ran.
        recorded: what it covered.
        now: what an exam would cover.
    """

    ts: str | None
    recorded: Mapping[str, str]
    now: Mapping[str, str]


class Promotion(Struct, frozen=True):
    """Result of a promotion or demotion.

    Attributes:
        written: the file holds the new status.
        gate: what was in the way; of a step back nothing is. Its `to` is None where there was nothing to do.
        evidence: what the evidence covers; None: nobody asked.
    """

    prompt: str
    path: str | None
    before: PromptStatus
    gate: PromotionGate
    written: bool = False
    evidence: Covered | None = None

    @property
    def refused(self) -> bool:
        """Whether something was in the way. Nothing is where the prompt had the status, or a later one, already."""
        return self.gate.to is not None and not self.gate.open


class ExamReport(Struct, frozen=True):
    """One exam in a run, and its effect on the prompt.

    Attributes:
        log: absolute path of the log.
        notes: messages about the log, such as an incomplete line that was moved away.
        error: why the row could not be appended; None: it was.
        status: of the prompt now.
        gate: None where nobody asked.
        partial: why the exam is not evidence.
    """

    prompt: str
    exam_row: ExamRow
    log: str
    notes: tuple[str, ...] = ()
    error: str | None = None
    status: PromptStatus = "draft"
    gate: PromotionGate | None = None
    partial: tuple[str, ...] = ()
