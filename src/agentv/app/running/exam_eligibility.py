"""Reasons why an exam attempt is no evidence: it was incomplete, or not the exam that the file describes (SPEC 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.app.planning.sampling import shard_of
from agentv.model.run.trial import Status, Trial
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.exam import DESCRIPTION, TARGET, Exam, normalised
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.values.values import Json

if TYPE_CHECKING:
    from agentv.app.settings import EvalSettings

INTERRUPTED = "it was interrupted"

_REPLAYED = "answers from a cassette (--replay)"
_REGRADED = "answers of another run (--regrade)"
_RERUN = "failed cases ran again (--rerun=failed)"
_LAST_FAILED = "only cases that had not passed ran (--last-failed)"
_SHARD = "one shard of the cases ran (--shard)"
_WATCHED = "cases ran again while files were edited (--watch)"
_CACHED = "answers may come from the cache (--no-cache calls the target again)"

REUSED = "some answers were reused (rows with 'reused')"


def why_of_run(settings: EvalSettings, before: Mapping[str, Json], *, interrupted: bool, cached: bool) -> Iterator[str]:
    """Reasons why a whole run is no evidence, for this process and those that it resumes.

    Args:
        settings: of this process.
        before: settings of the earlier processes, as in `run.json`.
        interrupted: it was ended early.
        cached: answers of other runs could be used: of targets, whose rows show it, and of judges, whose rows do not.
    """
    if interrupted:
        yield INTERRUPTED
    if settings.replay is not None or before.get("replay") is not None:
        yield _REPLAYED
    if settings.regrade is not None or before.get("regrade") is not None:
        yield _REGRADED
    if "failed" in (settings.rerun, before.get("rerun")):
        yield _RERUN
    if settings.failed is not None or before.get("last_failed") is not None:
        yield _LAST_FAILED
    if settings.shard is not None and shard_of(settings.shard)[1] > 1:
        yield _SHARD
    if settings.watched is not None or before.get("watched") is not None:
        yield _WATCHED
    if cached or before.get("cache"):
        yield _CACHED


def why_partial(suite: Suite, found: Sequence[tuple[Trial, Status]], settings: EvalSettings) -> Iterator[str]:
    """Reasons why an exam attempt is no evidence.

    Args:
        suite: the exam.
        found: the first trial of each case on each target, and what the case came to.
        settings: what the command line says.
    """
    exam = suite.exam
    if exam is None:
        return
    if exam.other_model or _is_other_judge(suite):
        yield "another model or judge than the exam specifies, or other inputs"
    if settings.variables:
        yield "--var"
    if settings.threshold is not None:
        yield "--threshold"
    if any(status == "skipped" for _, status in found):
        yield "some cases did not run"
    if any(trial.repeat < (trial.case.repeat or suite.run.repeat or 1) for trial, _ in found):
        yield "fewer repeats than the exam requires"
    ran = {trial.case.id for trial, _ in found}
    if any(case.id not in ran for case in suite.cases):
        yield "some cases were excluded"
    yield from (f"{path} was changed during the exam" for path in _changed(exam))


def _changed(exam: Exam) -> Iterator[str]:
    """The files that are not what they were when the exam was loaded: code is read when it runs."""
    for path, data in exam.texts.items():
        if path == DESCRIPTION or path.startswith(TARGET):
            continue
        try:
            now = normalised(Path(exam.directory, path).read_bytes())
        except OSError:
            now = None
        if now != data:
            yield path


def _is_other_judge(suite: Suite) -> bool:
    """Whether the command line's judge stands in for the one that would judge without it."""
    forced = suite.forced_judge
    if forced is None:
        return False
    of_entries = {name for case in suite.cases for name in asked(case.assertions) if name is not None}
    named = [suite.judge, *map(suite.judges.get, of_entries), *(case.judge for case in suite.cases)]
    if not any(named):
        named = [suite.default_judge, *(suite.judges.get(one.judge) for one in _targets(suite) if one.judge)]
    return any(one is not None and one.fingerprint != forced.fingerprint for one in named)


def _targets(suite: Suite) -> Iterator[TargetSpec]:
    yield from suite.targets
    yield from (case.target for case in suite.cases if case.target is not None)


def asked(entries: Iterable[AssertionEntry]) -> Iterator[str | None]:
    """The name that each entry gives its judge, for those that ask one."""
    for entry in entries:
        if getattr(entry.assertion, "needs_judge", False):
            yield getattr(entry.assertion, "judge", None)
        yield from asked(entry.inner)
