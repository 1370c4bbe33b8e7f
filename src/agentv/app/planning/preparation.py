"""Preparation of a run: read, check and plan everything, without making a call."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.planning.workspaces import check_workspaces, existing_directory, notes_on_workspaces, works_in_existing
from agentv.app.registries import registries
from agentv.app.results.place import RESULTS, project_of, project_with
from agentv.app.results.stored import find_run
from agentv.app.settings import LOCAL, EvalSettings, parse_shard
from agentv.authoring.dialects.recognition import Dialect
from agentv.authoring.loading.load import LoadRequest, load
from agentv.authoring.source.files import repository_root
from agentv.authoring.source.nearest import did_you_mean, nearest_first
from agentv.engine.plan import Plan, PlanSettings, compares, draw, every_case
from agentv.errors import Diagnostic, LoadError, UsageError
from agentv.model.redaction import SHORTEST
from agentv.model.run.verdict import ZERO_HINT, always_passes
from agentv.model.suite.suite import DEFAULT_WORKERS, Suite, TargetSpec
from agentv.model.values.formatting import plural

if TYPE_CHECKING:
    from agentv.engine.draws import Draws

_PROMPTS_SHOWN = 20
"""Maximum number of prompts in a hint."""

SHOWN = 10
"""Maximum number of cases, files or targets in a note."""


class Prepared(Struct, frozen=True):
    """A plan whose files are all read and valid; no call has been made yet.

    Attributes:
        diagnostics: warnings and hints about the files.
        counts: numbers of planned distinct cases and of trials.
        notes: notes about the plan, such as cases that were added as dependencies.
        chosen: keys of the trials that this command selects from a resumed run; None: all trials.
        draws: the trials in random order, if the run is compared with another (`--against`).
    """

    settings: EvalSettings
    suites: tuple[Suite, ...]
    plan: Plan
    counts: tuple[int, int]
    diagnostics: tuple[Diagnostic, ...]
    notes: tuple[str, ...] = ()
    chosen: frozenset[str] | None = None
    draws: Draws | None = None


def prepare(settings: EvalSettings) -> Prepared:
    """Read and check everything that a run needs.

    Raises:
        LoadError: a file is invalid.
        UsageError: the settings are impossible, such as a filter that selects nothing.
    """
    settings.check()
    loaded = load(_request(settings), registries())
    suites = tuple(map(_independent, loaded.suites)) if settings.independent else loaded.suites
    if settings.exports:
        from agentv.app.exports import check_exports

        named = (*(suite.path for suite in suites), settings.record, settings.replay, settings.env_file)
        read = (*(path for suite in suites for path in suite.files), *(path for path in named if path))
        check_exports(settings.exports, settings.out, {os.path.realpath(path) for path in read})
    diagnostics, zero = loaded.diagnostics, settings.threshold
    if zero is not None and any(always_passes(zero, case.assertions) for suite in suites for case in suite.cases):
        what = "with --threshold 0 every answer passes"
        diagnostics = (Diagnostic("zero-threshold", what, severity="warning", hint=ZERO_HINT), *diagnostics)
    if settings.strict and any(found.severity == "warning" for found in diagnostics):
        raise LoadError(diagnostics)
    if settings.resume_run is not None:
        return _resumed(settings, suites, diagnostics)
    if settings.against is not None:
        from agentv.app.gates import with_base_id

        settings = with_base_id(settings, results_of(suites))
    settings = seeded(settings)
    found: tuple[str, ...] = ()
    if settings.last_failed:
        from agentv.app.planning.last_failed import last_failed

        whole = _plan(settings, suites)
        last = last_failed(whole, results_of(suites), root_of(suites), settings.tests_from)
        found = last.notes
        if last.trials is not None:
            settings = replace(settings, failed=last.trials)
        else:
            why = "there is no earlier run of these suites" if last.run_id is None else "no case failed in the last run"
            found += (f"--last-failed: {why}; running all {plural(whole.counts()[0], 'case')}",)
    plan = _plan(settings, suites)
    check_until(settings, plan)
    return _prepared(settings, suites, plan, diagnostics, found)


def _independent(suite: Suite) -> Suite:
    """Return the suite without `depends_on`; cases of a conversation still follow each other."""
    links = {name: replace(link, depends_on=()) for name, link in suite.links.items() if link.follows is not None}
    return replace(suite, links=links)


def _plan(settings: EvalSettings, suites: tuple[Suite, ...]) -> Plan:
    check_workspaces(settings, suites)
    known = [name for suite in suites for one, label in suite.prompts.items() for name in (one, label) if name]
    for name in settings.prompts:
        if name not in known:
            listed = ", ".join(dict.fromkeys(known[:_PROMPTS_SHOWN]))
            hint = did_you_mean(name, known) or (f"the prompts are {listed}" if known else "no suite has prompts")
            raise UsageError(f"--prompt {name}: no suite has this prompt", hint)
    check_gates(suites, ends_early=settings.until is not None or settings.against is not None)
    chosen = settings.selects if settings.narrows else every_case
    drawn = None
    if settings.sample is not None:
        drawn = draw(suites, chosen, settings.sample, seed=settings.seed or 0, root=root_of(suites))
    plan_settings = PlanSettings(
        repeat=settings.repeat,
        threshold=settings.threshold,
        timeout_s=settings.timeout_s,
        until=settings.until if settings.against is None else None,
        alpha=settings.alpha if settings.against is None else None,
        flagged_targets=bool(settings.requested_targets) or settings.given_target is not None,
        chosen=chosen,
        limit=settings.limit,
        sample=drawn,
        prompts=settings.prompts,
        variants=settings.variants,
        shuffle=settings.seed if settings.shuffle else None,
        failed=settings.failed,
    )
    plan = Plan(suites, plan_settings)
    if not plan.counts()[1]:
        raise _no_case_error(settings, suites)
    patterns, tags = settings.unmatched(case for suite in suites for case in suite.cases)
    if patterns or tags:
        raise _no_case_error(EvalSettings(filter=patterns or None, tags=tags), suites)
    return plan if settings.shard is None else plan.sharded(*parse_shard(settings.shard))


def seeded(settings: EvalSettings) -> EvalSettings:
    """Return the settings, with a new seed if they need one and have none."""
    if settings.seed is not None or (settings.sample is None and not settings.shuffle):
        return settings
    return replace(settings, seed=int.from_bytes(os.urandom(4)))


def _resumed(settings: EvalSettings, suites: tuple[Suite, ...], diagnostics: tuple[Diagnostic, ...]) -> Prepared:
    """Prepare a resumed run: the plan that it started with, of which the command may select a part."""
    from agentv.app.planning import resume

    run = find_run(settings.resume_run or "last", results_of(suites), settings.out)
    watched = settings.watched is not None  # suites can be added and removed while files are edited
    added = () if watched else resume.added_suites(run, suites, root_of(suites))
    recorded = resume.recorded_settings(run)
    if settings.against is not None or recorded.get("against") is not None:
        from agentv.app.gates import check_terms

        check_terms(settings, recorded, run.name)
    cluster = settings.cluster
    flags, settings = resume.flags_of(settings), resume.with_recorded_settings(settings, recorded, run.name)
    if "last_failed" in recorded:
        from agentv.app.planning.last_failed import from_record

        settings = replace(settings, failed=from_record(recorded["last_failed"], root_of(suites)))
    if settings.cluster != cluster:  # reading assigns cases to clusters
        suites = load(_request(settings), registries()).suites
    settings = seeded(settings)
    original = resume.original_selection(settings, recorded) if flags and recorded else None
    plan = _plan(original or settings, suites)
    check_until(settings, plan)
    chosen = None
    if original is not None:
        shard = None if settings.shard == original.shard else settings.shard  # already applied to the plan
        chosen = resume.selected_keys(_plan(replace(settings, shard=shard), suites), plan, run.name, flags)
    return _prepared(original or settings, suites, plan, diagnostics, added, chosen)


def _prepared(
    settings: EvalSettings,
    suites: tuple[Suite, ...],
    plan: Plan,
    diagnostics: tuple[Diagnostic, ...],
    notes: Iterable[str],
    chosen: frozenset[str] | None = None,
) -> Prepared:
    """Add notes and draws to a plan, and limit its workers by the number of open files."""
    notes = (*notes, *_notes(settings, suites, plan))
    draws = None
    if settings.against is not None:
        from agentv.app.gates import draws_of  # loaded only with --against

        draws = draws_of(settings, plan, root_of(suites), results_of(suites))
    prepared = Prepared(settings, suites, plan, plan.counts(), diagnostics, notes, chosen, draws)
    if settings.executor != LOCAL:  # workers on other machines have their own limits
        return prepared
    targets = (spec for suite in suites for spec in suite.targets)
    workers, note = workers_within(min(workers_of(prepared), prepared.counts[1]), targets)
    if note is None:
        return prepared
    return replace(prepared, settings=replace(settings, workers=workers), notes=(*notes, note))


def _notes(settings: EvalSettings, suites: tuple[Suite, ...], plan: Plan) -> Iterator[str]:
    """Yield notes about the plan and about how its files were read."""
    if added := list(plan.added_dependencies()):
        yield f"{plural(len(added), 'case')} added as dependencies: {_first_names(added)}"
    for suite in plan.suites:
        if suite.exam is not None and next(plan.planned(suite), None) is None:
            yield f"no case of the exam of {Path(suite.exam.directory).name} is selected; it does not run"
    for suite in suites:
        if suite.dialect is not None:
            yield Dialect.note(suite.path, suite.dialect)
    of_targets = {spec.name for suite in suites for spec in (*suite.targets, *suite.judges.values()) if spec.unfollowed}
    grades = {label for suite in suites if suite.graders is not None for label in suite.graders.unfollowed}
    names = [f"'{name}'" for name in (*sorted(of_targets), *sorted(grades))]
    if names and (caches(settings, suites) or settings.replay or settings.resume_run is not None):
        yield (
            f"agentv caches what {_first_names(names)} starts by its command text and does not notice changes to the "
            "files it uses; list those files with 'fingerprint: [globs]'"
        )
    unsearched = sorted({name for suite in suites for name in suite.unsearched})
    if unsearched:  # values that look like ordinary text
        whose, verb = ("the value of", "is") if len(unsearched) == 1 else ("the values of", "are")
        why = f"shorter than {SHORTEST} characters, or a plain word"
        yield f"{whose} {_first_names(unsearched)} {verb} not redacted in results: {why}"
    for suite in suites:  # a closer file may shadow these later
        if found := [f"'{written}' is {os.path.relpath(path)}" for written, path in sorted(suite.above.items())]:
            yield f"found in a directory above {os.path.relpath(suite.path)}: {_first_names(found)}"
    yield from notes_on_workspaces(settings, suites)


def _first_names(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")


def _request(settings: EvalSettings) -> LoadRequest:
    return LoadRequest(
        paths=settings.paths,
        targets=settings.requested_targets,
        judge=settings.requested_judge,
        variables=settings.variables,
        process_env=settings.process_env,
        env_file=settings.env_file,
        documents=settings.documents,
        given_target=settings.given_target,
        given_judge=settings.given_judge,
        cluster=settings.cluster,
        tests_from=settings.tests_from,
        asks=settings.asks and (settings.replay is None or settings.replay_mode == "new"),
        lists=not settings.asks,
        asks_targets=settings.regrade is None,
        first_messages=settings.first_messages,
        workspace_path=existing_directory(settings.workspace_path),
        sandbox=settings.sandbox,
        keep_workspaces=settings.keep_workspaces,
        allow_outside=settings.allow_outside,
        trust_data=settings.trust_data is True,
    )


_IDS = 5
"""Maximum number of case ids in a message."""


def _no_case_error(settings: EvalSettings, suites: tuple[Suite, ...]) -> UsageError:
    chosen_by = [
        *(f"--filter '{pattern}'" for pattern in settings.filters),
        f"--tag {', '.join(settings.tags)}" if settings.tags else "",
        f"--exclude-tag {', '.join(settings.exclude_tags)}" if settings.exclude_tags else "",
        f"--sample {settings.sample}" if settings.sample is not None else "",
        f"--limit {settings.limit}" if settings.limit is not None else "",
        f"--prompt {', '.join(settings.prompts)}" if settings.prompts else "",
        f"--variant {', '.join(settings.variants)}" if settings.variants else "",
    ]
    selection = " ".join(one for one in chosen_by if one) or "these files"
    ids = list(dict.fromkeys(case.id for suite in suites for case, _ in zip(suite.cases, range(1000), strict=False)))
    hint = None
    if settings.filters and ids:
        shown = nearest_first(settings.filters[0], ids)[:_IDS]
        hint = f"ids of cases: {', '.join(shown)}" + (f" and {len(ids) - _IDS} more" if len(ids) > _IDS else "")
    elif settings.tags:
        tags = {tag for suite in suites for case, _ in zip(suite.cases, range(1000), strict=False) for tag in case.tags}
        hint = f"tags in use: {', '.join(sorted(tags)[:20])}" if tags else "no case has a tag"
    return UsageError(f"{selection} matches no case", hint)


def results_of(suites: tuple[Suite, ...], *, of_new_run: bool = False) -> Path:
    """Return the directory whose `.agentv/results` has the suites' runs, or with `of_new_run`, gets a new run."""
    directory = directory_of(suites)
    return project_of(directory) if of_new_run else project_with(RESULTS, directory)


def root_of(suites: tuple[Suite, ...]) -> str:
    """Return the repository root of the first suite with a file, else of the working directory."""
    return repository_root(directory_of(suites))


def directory_of(suites: tuple[Suite, ...]) -> str:
    """Return the directory of the first suite with a file, else the working directory."""
    paths = [suite.path for suite in suites if suite.path]
    return str(Path(paths[0]).parent) if paths else str(Path.cwd())


def workers_of(prepared: Prepared) -> int:
    """Return the number of concurrent trials."""
    if prepared.settings.debug or works_in_existing(prepared.suites):
        return 1
    requested = prepared.settings.workers
    of_suites = [suite.run.workers for suite in prepared.suites if suite.run.workers is not None]
    return requested or max(of_suites, default=DEFAULT_WORKERS)


def caches(settings: EvalSettings, suites: tuple[Suite, ...]) -> bool:
    """Whether answers of earlier runs are reused."""
    if settings.cache is not None or settings.regrade or settings.replay or settings.rerun:
        return bool(settings.cache)
    return any(suite.run.cache for suite in suites)


def budget_of(prepared: Prepared) -> tuple[float | None, int | None]:
    """Return the budget in US dollars and in tokens, None if unlimited; of several suites, the smallest applies."""
    settings, suites = prepared.settings, prepared.suites
    usd = [suite.run.budget_usd for suite in suites if suite.run.budget_usd is not None]
    tokens = [suite.run.budget_tokens for suite in suites if suite.run.budget_tokens is not None]
    return (
        settings.budget_usd if settings.budget_usd is not None else min(usd, default=None),
        settings.budget_tokens if settings.budget_tokens is not None else min(tokens, default=None),
    )


def max_errors_of(prepared: Prepared) -> int | None:
    """Return the number of errored trials after which the run stops, or None for no limit."""
    requested = prepared.settings.max_errors
    of_suites = [suite.run.max_errors for suite in prepared.suites if suite.run.max_errors is not None]
    return requested if requested is not None else min(of_suites, default=None)


def check_until(settings: EvalSettings, plan: Plan) -> None:
    """Raise for options that conflict with `--until decided`.

    Raises:
        UsageError: every case has one sample, the verdict is not based on the pass rate, or cases are not sampled
            independently.
    """
    if settings.against is not None:
        return  # then drawing cases ends early, not their samples
    early = [suite for suite in plan.suites if plan.alpha(suite) is not None]
    if not early:
        if settings.alpha is not None:
            raise UsageError("--alpha requires --until decided", "add --until decided")
        return
    if not any(plan.repeat(suite, case.repeat) > 1 for suite in early for case in suite.cases):
        hint = "set the maximum number of samples per case: --repeat 20"
        raise UsageError("--until decided requires several samples per case", hint)
    if settings.rerun == "failed":
        what = (
            "--rerun=failed repeats only failed samples, but --until decided needs the share of all samples that passed"
        )
        raise UsageError(what, "start a new run")
    for suite in early:
        where = f"the suite '{suite.name}'"
        if suite.run.aggregate not in (None, "mean"):
            what = f"{where} sets aggregate: {suite.run.aggregate}, but --until decided uses the share that passed"
            raise UsageError(what, "delete one of them")
        follows = next((case for case, link in suite.links.items() if link.follows is not None), None)
        if follows is not None:
            what = f"'{follows}' of {where} continues a conversation sample by sample"
            raise UsageError(what, "--until decided samples each case on its own: run this suite without it")
        comparing = next((case.id for case in suite.cases if compares(case)), None) if suite.compares else None
        if comparing is not None:
            what = f"'{comparing}' of {where} compares the answers of its targets and prompts sample by sample"
            raise UsageError(what, "--until decided samples each case on its own: run this suite without it")


def check_gates(suites: Iterable[Suite], *, ends_early: bool) -> None:
    """Raise for gates that cannot decide a run.

    Raises:
        UsageError: two suites with the same name have different gates; or a suite with `gate: corrected` is an exam,
            combines samples by another rule than the mean, or may end sampling early.
    """
    gates: dict[str, tuple[object, ...]] = {}
    for suite in suites:
        where = f"the suite '{suite.name}'"
        gate = (
            suite.run.gate and (suite.run.gate, suite.run.min_pass_rate),
            suite.judge_minimums,
            suite.skill_minimums,
        )
        if gates.setdefault(suite.name, gate) != gate:
            raise UsageError(f"two suites are named '{suite.name}', and their gates differ", "give each its own name")
        if suite.run.gate is None:
            continue
        if suite.exam is not None:
            what = "an exam is passed only if every case passes, so 'gate: corrected' cannot decide it"
            raise UsageError(what, "move 'gate' from the project's 'run' to the 'run' of eval files")
        if suite.run.aggregate not in (None, "mean"):
            what = f"{where} sets aggregate: {suite.run.aggregate}, but 'gate: corrected' uses the share of samples"
            raise UsageError(what, "delete one of them")
        if ends_early or suite.run.until is not None or suite.run.cost_limit_usd is not None:
            what = f"{where} has 'gate: corrected', which needs all samples, but results decide how many run"
            raise UsageError(what, "run it without --until, --against and a cost limit of its cases")


PER_CALL = 3
"""Open files of a trial that calls a server: a connection to its target, one to its judge, and one spare."""

PER_PROGRAM = 8
"""Open files of a trial that starts a program: both ends of its pipes during the start."""

RESERVE = 128
"""Open files of everything else: the run directory, imported modules and users' code."""

_HIGHEST = 10_240
"""Maximum that macOS allows if it reports no limit (OPEN_MAX)."""


def workers_within(workers: int, targets: Iterable[TargetSpec]) -> tuple[int, str | None]:
    """Raise the limit on open files if needed; return the number of workers that it allows, and a note if fewer.

    Args:
        workers: requested number.
        targets: the targets that they call.
    """
    programs = any(spec.calls == "program" for spec in targets)
    each = PER_PROGRAM if programs else PER_CALL
    allowed = _raise_file_limit(workers * each + RESERVE)
    fitting = max(1, (allowed - RESERVE) // each)
    if fitting >= workers:
        return workers, None
    return (
        fitting,
        f"{workers:,} workers need more than the {allowed:,} open files allowed here; using {fitting:,} workers",
    )


def _raise_file_limit(needed: int) -> int:
    """Raise this process's limit on open files as far as needed and allowed, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft in (unlimited, needed) or soft > needed:
        return max(soft, needed)
    with suppress(ValueError, OSError):
        wanted = min(needed, _HIGHEST if hard == unlimited else hard)
        if wanted > soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
