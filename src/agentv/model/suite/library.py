"""The prompt library, as shown by `agentv prompt` (SPEC section 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from agentv.model.suite.exam import DESCRIPTION, TARGET, ExamRow, PromptStatus
from agentv.model.values.message import Message
from agentv.model.values.values import EMPTY, JsonObject

ChangeKind = Literal["edited", "added", "removed"]


def display_name(path: str) -> str:
    """Return the display name of a key of `Exam.texts`: a path, the description, or a target."""
    if path.startswith(TARGET):
        return f"target '{path.removeprefix(TARGET)}'"
    return "description" if path == DESCRIPTION else path


class TextChange(Struct, frozen=True):
    """A text that changed since the exam.

    Attributes:
        path: key of the text in `Exam.texts`.
    """

    path: str
    kind: ChangeKind

    def __str__(self) -> str:
        """The change as shown to users: `prompt.xml: edited`."""
        name = display_name(self.path)
        return f"{name if name == self.path else f'the {name}'}: {self.kind}"


class ListedPrompt(Struct, frozen=True):
    """One prompt of a library.

    Attributes:
        directory: absolute path.
        edited: whether the text that its status is based on has changed.
        last: the latest row of its log; None if the exam never ran.
        changes: texts that differ from those of the last attempt; empty if that attempt recorded no texts.
        compared: whether the last attempt recorded its texts.
        wrong: whether meta.yaml or the log has an error; `doctor` lists it.
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
        to: the next status; None if it already has the highest.
        reasons: why it may not be promoted, each with its notes; empty if the gate is open.
    """

    to: PromptStatus | None
    reasons: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def open(self) -> bool:
        """Whether the promotion is allowed."""
        return self.to is not None and not self.reasons


class ShownPrompt(Struct, frozen=True):
    """A prompt with all its data, as shown by `agentv prompt show`.

    Attributes:
        listed: its entry in the list of prompts.
        others: the keys of meta.yaml without a meaning to agentv.
        texts: key of each examined text → its size in bytes; empty if the exam cannot be read.
        cases: ids of the exam's cases, in order.
        queries: query → whether it should trigger the prompt.
        exam_rows: the rows of its log, oldest first.
        findings: number of problems that `doctor` finds.
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
    """The messages that a model would get for one case of an exam."""

    prompt: str
    case: str
    messages: tuple[Message, ...]


class TextDifference(Struct, frozen=True):
    """One text of an exam, as last examined and as it is now.

    Attributes:
        before, after: the texts; None if there was, or is, none.
        lost: whether the earlier text is not stored here, so that only its hash shows the change.
    """

    path: str
    kind: ChangeKind
    before: bytes | None = None
    after: bytes | None = None
    lost: bool = False


class PromptDiff(Struct, frozen=True):
    """Differences between a prompt and its last exam attempt; `exam_row` is None if no attempt can be compared."""

    prompt: str
    exam_row: ExamRow | None
    differences: tuple[TextDifference, ...] = ()


class Covered(Struct, frozen=True):
    """The texts that an exam covers: path → sha256.

    Attributes:
        ts: time of the latest exam; None if none ever ran.
        recorded: texts that the latest exam covered.
        now: texts that an exam would cover now.
    """

    ts: str | None
    recorded: Mapping[str, str]
    now: Mapping[str, str]


class Promotion(Struct, frozen=True):
    """Result of a promotion or demotion.

    Attributes:
        written: whether the new status was written to the file.
        gate: the gate of a promotion; always open for a demotion. Its `to` is None if there was nothing to do.
        evidence: the texts that the exam covers; None if they were not requested.
    """

    prompt: str
    path: str | None
    before: PromptStatus
    gate: PromotionGate
    written: bool = False
    evidence: Covered | None = None

    @property
    def refused(self) -> bool:
        """Whether the gate was closed. False if the prompt already had the status, or a higher one."""
        return self.gate.to is not None and not self.gate.open


class ExamReport(Struct, frozen=True):
    """The result of one exam in a run, and its effect on the prompt.

    Attributes:
        log: absolute path of the log.
        notes: messages about the log, such as that an incomplete line was moved away.
        error: why the row could not be appended; None if it was.
        status: status of the prompt now.
        gate: the gate of the next promotion; None if it was not requested.
        partial: why the exam does not count as evidence; empty if it does.
    """

    prompt: str
    exam_row: ExamRow
    log: str
    notes: tuple[str, ...] = ()
    error: str | None = None
    status: PromptStatus = "draft"
    gate: PromotionGate | None = None
    partial: tuple[str, ...] = ()
