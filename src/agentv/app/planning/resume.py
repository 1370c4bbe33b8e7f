"""Resuming a run: apply the settings that it started with, and reject commands that would change what it is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.app.settings import EvalSettings, declared_settings, flag_names, resumed_settings
from agentv.errors import StoreError, UsageError
from agentv.model.suite.suite import Suite
from agentv.model.values.formatting import plural
from agentv.model.values.values import JsonObject
from agentv.store.files.directory import JOURNAL, RUN, DamagedRecordError, PreviousRun, read_document
from agentv.store.files.lines import last_lines
from agentv.store.journal.answers import elapsed_in

if TYPE_CHECKING:
    from agentv.engine.plan import Plan

SELECTION_FLAGS = {
    **flag_names("filter", "tags", "exclude_tags", "sample", "seed", "limit", "prompts", "shard"),
    "variants": "--variant",
}
"""Settings that select cases → their flags."""

_LISTED = 10
"""Maximum number of suites in a message."""

_REPEATED_FLAGS = flag_names("targets", "judge", "tests_from")
"""Settings that a resume must repeat, as the files would choose something else without them → their flags."""


def previous_run(run: Path) -> PreviousRun:
    """Read what earlier processes of a run left in its directory, before this process writes to it.

    A killed process wrote no summary; its duration is taken from its last row.

    Raises:
        StoreError: `run.json` is damaged.
    """
    from agentv.store.journal.verification import stored_summary

    record = read_document(run / RUN)
    settings, started = record.get("settings"), record.get("started")
    if not isinstance(started, str):
        return PreviousRun(run.name)
    processes = record.get("processes", 1)
    summary: JsonObject = {}
    with suppress(DamagedRecordError):  # treated like a missing summary
        if (stored := stored_summary(run)) is not None:
            summary = stored.document
    versions = record.get("agent_versions")
    ended = summary.get("duration_ms") if summary.get("processes", 1) == processes else None
    if ended is not None:
        duration_ms = _milliseconds(ended)
    else:  # it was killed: the time of its last row, by a monotonic clock
        elapsed = (found for line in last_lines(run / JOURNAL) if (found := elapsed_in(line)) is not None)
        duration_ms = max(_milliseconds(record.get("duration_before_ms")), next(elapsed, 0.0))
    return PreviousRun(
        run.name,
        settings if isinstance(settings, dict) else {},
        processes if isinstance(processes, int) else 1,
        duration_ms,
        started,
        versions if isinstance(versions, dict) else {},
        labels if isinstance(labels := record.get("labels_sha256"), str) else None,
    )


def _milliseconds(found: object) -> float:
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else 0.0


def recorded_settings(run: Path) -> JsonObject:
    """Return the settings in `run.json`, or {} if it cannot be read, which opening the directory reports."""
    try:
        found = read_document(run / RUN).get("settings")
    except StoreError:
        return {}
    return found if isinstance(found, dict) else {}


def with_recorded_settings(settings: EvalSettings, recorded: JsonObject, run: str) -> EvalSettings:
    """Fill in the settings that the run started with, unless this command gives others.

    Raises:
        UsageError: the run started with a target, judge or data file on the command line and this command has none; or
            with another `--cluster`, so that its rows would disagree about dependent cases; or without `--shuffle`.
    """
    if settings.cluster is not None and recorded and settings.cluster != (was := recorded.get("cluster")):
        begun = f"with --cluster {was}" if was else "without --cluster"
        raise UsageError(f"the run {run} started {begun}", "omit --cluster, or start a new run")
    for name, flag in _REPEATED_FLAGS.items():
        was = recorded.get(name)
        now = {
            "targets": settings.requested_targets or settings.given_target,
            "judge": settings.requested_judge or settings.given_judge,
            "tests_from": settings.tests_from,
        }[name]
        if was and not now:
            words = " ".join(f"{flag} {one}" for one in (was if isinstance(was, list) else [was]))
            hint = "use the same one: without it, every case would be called again"
            raise UsageError(f"the run {run} started with {words}, but this command has none", hint)
    settings_of_run = {
        name: began
        for name, setting in resumed_settings().items()
        if not _is_given(getattr(settings, name)) and (began := setting.read(recorded.get(name))) is not None
    }
    if settings.shuffle and recorded and not recorded.get("shuffle"):
        raise UsageError(f"the run {run} started without --shuffle", "omit --shuffle, or start a new run")
    drawn = ("sample", "against", "shuffle")
    if not any(getattr(settings, name) or settings_of_run.get(name) for name in drawn):
        settings_of_run.pop("seed", None)
    return replace(settings, **settings_of_run)


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != ()


def original_selection(settings: EvalSettings, recorded: JsonObject) -> EvalSettings | None:
    """Return the settings with the run's original selection of cases, or None if this command has the same."""
    choosing = {name: setting for name, setting in declared_settings().items() if name in SELECTION_FLAGS}
    begun = {name: setting.read(recorded.get(name)) for name, setting in choosing.items()}
    begun |= {name: () for name, setting in choosing.items() if not setting.optional and begun[name] is None}
    found = replace(settings, **begun)
    return None if found == settings else found


def selected_keys(narrow: Plan, whole: Plan, run: str, flags: str) -> frozenset[str]:
    """Return the keys of the trials that a command selects from the run that it resumes.

    Args:
        narrow: plan of the command's selection; without a new `--shard`, of all shards.
        whole: plan of the run.
        run: id of the run.
        flags: the command's flags that select cases.

    Raises:
        UsageError: the command selects trials that are not part of the run, or no trial of this shard.
    """
    chosen, of_run = frozenset(trial.key for trial in narrow), {trial.key for trial in whole}
    outside = len(chosen - {trial.key for trial in (whole if narrow.settings.shard else whole.unsharded)})
    if outside:
        verb = "is" if outside == 1 else "are"
        what = f"{flags} selects {plural(outside, 'trial')} that {verb} not part of the run {run}"
        raise UsageError(what, "a run keeps its cases: select among those, or start a new run")
    if not chosen & of_run:
        raise UsageError(
            f"{flags} selects no trial of the run {run}, which is one shard", "resume the shard that has it"
        )
    return chosen & of_run


def flags_of(settings: EvalSettings) -> str:
    """Return the flags of a command that select cases, with their values."""
    given = ((flag, getattr(settings, name)) for name, flag in SELECTION_FLAGS.items())
    return " ".join(
        f"{flag} {', '.join(value) if isinstance(value, tuple) else value}" for flag, value in given if value
    )


def added_suites(run: Path, suites: tuple[Suite, ...], root: str) -> list[str]:
    """Check that a command has all suites of the run that it resumes, so that the run's totals stay meaningful.

    Args:
        run: the directory of the run.
        suites: of the command.
        root: of the repository.

    Returns:
        Notes about suites that are new to the run.

    Raises:
        UsageError: a suite of the run is missing, or was renamed or moved, so that it has no stored answers.
    """
    try:
        found: Any = read_document(run / RUN)["suites"]
        began = [(one["name"], one["path"]) for one in found]
    except (StoreError, LookupError, TypeError):
        return []  # opening the directory reports the error
    own = {(suite.name, suite.path.removeprefix(f"{root}/")) for suite in suites}
    new = sorted(own.difference(began))
    missing = [one for one in began if one not in own]
    if missing:
        instead = f"; this command has {_listed(new)}" if new else ""
        given = recorded_settings(run).get("paths")
        named = shlex.join(one for one in given if isinstance(one, str)) if isinstance(given, list) else ""
        raise UsageError(
            f"this command lacks {_listed(missing)}, with which the run {run.name} started{instead}",
            f"give every path of the run{f' ({named})' if named else ''}, with suites under their old names and in "
            "their old files; or start a new run",
        )
    number = "1 suite is" if len(new) == 1 else f"{len(new)} suites are"
    return [f"{number} new to the run, now included in its totals: {_listed(new)}"] if new and began else []


def _listed(suites: Sequence[tuple[str, str]]) -> str:
    named = [f"'{name}' in {path}" if path else f"'{name}'" for name, path in dict.fromkeys(suites)]
    return ", ".join(named[:_LISTED]) + (f" and {len(named) - _LISTED:,} more" if len(named) > _LISTED else "")
