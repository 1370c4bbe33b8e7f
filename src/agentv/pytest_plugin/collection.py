"""Eval files and their cases as pytest collectors and items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentv.app.authored.validate import source_of
from agentv.app.labelled_runs import has_gate
from agentv.app.planning.preparation import Prepared, prepare
from agentv.app.settings import EvalSettings
from agentv.errors import AgentvError, LoadError, UsageError
from agentv.model.run.trial import Trial
from agentv.pytest_plugin.outcomes import CaseResults, Errored, lines_of
from agentv.pytest_plugin.running import Runs
from agentv.pytest_plugin.session import RUNS, is_reserved
from agentv.reports.diagnostics import render_diagnostics
from agentv.reports.text import one_line, safe


class EvalFileWarning(pytest.PytestWarning):
    """A probable mistake in an eval file; `agentv validate` reports it too."""


class EvalFile(pytest.File):
    """An eval file. It has a test for each case with each target, variant and prompt."""

    def collect(self) -> Iterator[EvalCase]:
        """Yield a test for each case.

        Raises:
            CollectError: the file is invalid, with the messages of `agentv validate`, or cannot run under pytest.
        """
        config = self.config
        try:
            prepared = prepare(settings_of(config, str(self.path)))
        except LoadError as error:
            raise self.CollectError(_with_pytest_flags(render_diagnostics(error.diagnostics, source_of))) from error
        except AgentvError as error:
            hint = f"\n  {error.hint}" if isinstance(error, UsageError) and error.hint else ""
            raise self.CollectError(_with_pytest_flags(safe(f"{error}{hint}"))) from error
        if any(suite.exam is not None for suite in prepared.suites):
            raise self.CollectError("an exam keeps a log: run it with 'agentv prompt eval'")
        if any(map(has_gate, prepared.suites)):  # pytest decides each case alone, and may run only some of them
            raise self.CollectError("labels decide the whole run of this suite: run it with 'agentv eval'")
        for found in prepared.diagnostics:
            if found.severity == "warning" and not config.option.collectonly:  # missing API keys would add more
                self.warn(EvalFileWarning(render_diagnostics([found], source_of, counted=False)))
        runs = config.stash.setdefault(RUNS, Runs(one_by_one=hasattr(config, "workerinput")))
        runs.add(prepared)
        for trials in _trials_by_case(prepared):
            name = _test_name(trials[0], several=len(prepared.suites) > 1)
            # a complete node id, so that pytest splits it at the bracket as it does when it reads an id back (--lf)
            item = EvalCase.from_parent(self, name=name, nodeid=f"{self.nodeid}::{name}", trials=trials)
            for tag in trials[0].case.tags:
                # a mark such as `xfail` has a meaning to pytest or a plugin, and must not make a failure pass
                if is_reserved(config, tag):
                    item.extra_keyword_matches.add(tag)  # so that -k still matches it
                else:
                    item.add_marker(tag)
            yield item


class EvalCase(pytest.Item):
    """The test of one case on one target, with all its samples.

    A case that could not be graded fails in the setup, which pytest reports as an error. A case that was graded and did
    not pass fails in the call.
    """

    def __init__(self, *, trials: Sequence[Trial], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.trials = trials
        self.outcome: CaseResults | None = None

    def setup(self) -> None:
        """Wait for the trials.

        Raises:
            Errored: the case has no verdict.
        """
        runs = self.config.stash[RUNS]
        first = self.trials[0]
        runs.begin(one.trials for one in self.session.items if isinstance(one, EvalCase))
        try:
            self.outcome = found = CaseResults(runs.results_of(self.trials), first)
        except AgentvError as error:
            raise Errored(safe(str(error)), pytrace=False) from error
        self.user_properties += [("target", first.target.name), ("status", found.status)]
        if found.score is not None:
            self.user_properties.append(("score", found.score))
        if found.status == "shown":
            raise Errored("the case checks nothing (show_only): its answer is shown by 'agentv eval'", pytrace=False)
        if found.status in ("errored", "skipped"):
            raise Errored("\n".join(lines_of(found, str(Path.cwd()))), pytrace=False)

    def runtest(self) -> None:
        """Fail unless the case passed."""
        found = self.outcome
        assert found is not None  # noqa: S101  # the setup assigned it
        lines = list(lines_of(found, str(Path.cwd())))
        if found.status != "passed":
            pytest.fail("\n".join(lines), pytrace=False)
        if lines:
            self.config.stash[RUNS].noted += 1
            self.add_report_section("call", "checks", "\n".join(lines))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the position of the case in its file."""
        span = self.trials[0].case.span
        place = Path(span.file) if span else self.path
        return place, span.line - 1 if span else None, self.name


def settings_of(config: pytest.Config, *paths: str) -> EvalSettings:
    """Return the settings of a run, from pytest's flags."""
    option = config.option
    return EvalSettings(
        paths=paths,
        targets=tuple(option.agentv_target),
        judge=option.agentv_judge,
        repeat=option.agentv_repeat,
        workers=option.agentv_workers,
        cache=option.agentv_cache,
        replay=option.agentv_replay,
        asks=not option.collectonly,
    )


def _with_pytest_flags(text: str) -> str:
    """Replace the flags of `agentv eval` in a message by those of the pytest plugin."""
    return text.replace("--target", "--agentv-target").replace("--judge", "--agentv-judge")


def _trials_by_case(prepared: Prepared) -> Iterator[list[Trial]]:
    """Yield the trials of each case on each target, in the order of the file."""
    found: dict[tuple[object, ...], list[Trial]] = defaultdict(list)
    for trial in prepared.plan:
        case = trial.case
        found[id(trial.suite), case.id, case.prompt_id, trial.target.name, trial.variant_name].append(trial)
    yield from found.values()


def _test_name(trial: Trial, *, several: bool) -> str:
    """Return the name of a test, such as `refund-request[gpt]`, or `[gpt-short]` with a prompt.

    It begins with the suite's name if the file has several.
    """
    case = trial.case
    where = "-".join(one for one in (trial.target.name, trial.variant_name, case.prompt_id) if one)
    name = f"{trial.suite.name}/{case.id}" if several else case.id
    return one_line(f"{name}[{where}]").replace("::", ":")
