"""`agentv prompt promote` and `demote`: a status is written where evidence opens the gate, else it is said why not."""

from __future__ import annotations

from pathlib import Path

from agentv.app.prompts.examining import Examined
from agentv.app.prompts.library import LibraryPrompt
from agentv.authoring.source.files import META
from agentv.errors import UsageError
from agentv.model.suite.exam import STATUSES, PromptStatus
from agentv.model.suite.library import Covered, Promotion, PromotionGate
from agentv.prompts.gates import next_status, previous_status, refusals
from agentv.prompts.status import write_status


def covered_by(examined: Examined) -> Covered:
    """What the latest exam covered, and what it would cover now."""
    row = examined.log.rows[-1] if examined.log.rows else None
    return Covered(row.ts if row else None, row.files if row else {}, examined.now)


def gate_of(examined: Examined, to: PromptStatus | None = None) -> PromotionGate:
    """Whether a prompt may be promoted to the next status, or to the given one."""
    status = examined.prompt.meta.status
    wanted = to or next_status(status)
    if wanted is None:
        return PromotionGate(None)
    found = refusals(status, wanted, examined.evidence)
    return PromotionGate(wanted, tuple((one.message, one.notes) for one in found))


def promote(examined: Examined, to: PromptStatus | None, *, dry_run: bool) -> Promotion:
    """Write the next status, or the one that is named, if the gate is open. What has that status already keeps its own.

    Raises:
        UsageError: there is no `meta.yaml` to write it into.
        StoreError: `meta.yaml` cannot be written.
    """
    prompt = examined.prompt
    status = prompt.meta.status
    if to is not None and STATUSES.index(to) <= STATUSES.index(status):
        return Promotion(prompt.id, prompt.meta.path, status, PromotionGate(None))
    gate = gate_of(examined, to)
    if gate.open and gate.to is not None and not dry_run:
        write_status(_meta_of(prompt), gate.to)
        return Promotion(prompt.id, prompt.meta.path, status, gate, written=True)
    return Promotion(prompt.id, prompt.meta.path, status, gate)


def demote(prompt: LibraryPrompt, to: PromptStatus | None, *, dry_run: bool) -> Promotion:
    """Write the previous status, or the given one. Needs no evidence.

    Raises:
        UsageError: the given status is not below the prompt's.
        StoreError: `meta.yaml` cannot be written.
    """
    status = prompt.meta.status
    wanted = to or previous_status(status)
    if wanted is None:
        raise UsageError(f"'{prompt.id}' is a draft, the lowest status")
    if STATUSES.index(wanted) >= STATUSES.index(status):
        raise UsageError(
            f"'{prompt.id}' cannot be demoted from {status} to {wanted}",
            "to raise its status, use agentv prompt promote",
        )
    if not dry_run:
        write_status(_meta_of(prompt), wanted)
    return Promotion(prompt.id, prompt.meta.path, status, PromotionGate(wanted), written=not dry_run)


def _meta_of(prompt: LibraryPrompt) -> Path:
    if prompt.meta.path is None:
        raise UsageError(f"'{prompt.id}' has no {META} to write the status to")
    return Path(prompt.meta.path)
