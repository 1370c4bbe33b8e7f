"""List entries of the HTML report, and the fields that they are filtered by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentv.model.run.cases import Sample, TrialCluster, cluster_of, key_of_cluster, sample_of
from agentv.model.run.trial import Score, Trial, TrialResult
from agentv.model.values.values import JsonObject, objects_in
from agentv.reports.run.formatting import check
from agentv.reports.run.trial_view import cut_words, trial_view
from agentv.reports.text.escaping import one_line
from agentv.stats.samples.deciding import Rule, rule_of, stopped_by, verdict_over
from agentv.store.totals.tally import STATUSES

TEASER = 140
"""Characters that the list shows of what a trial came to."""

NAMES = 500
"""Assertions that the filters distinguish by name; later ones by their type alone, so that memory is bounded."""

PASSED, FAILED, ERRORED = range(3)


@dataclass(slots=True)
class TextNumbers:
    """Texts that repeat, each written once and meant by its number."""

    numbers: dict[Any, int] = field(default_factory=dict)

    def of(self, value: object) -> int:
        """Its number: that of the first time, or the next."""
        return self.numbers.setdefault(value, len(self.numbers))


@dataclass(slots=True)
class _SampledCase:
    """The samples of one case so far, and what makes them a verdict."""

    number: int
    rule: Rule
    samples: list[Sample] = field(default_factory=list)

    def verdict(self) -> int:
        return STATUSES.index(verdict_over(self.samples, self.rule))

    def early(self) -> dict[str, Any] | None:
        """Of a case whose samples may end early how they did; None: of any other case."""
        return early_facts(self.samples, self.rule)


@dataclass(slots=True)
class Entries:
    """Entries of the trials of one run in a page. Only scores and gates of samples are held in memory.

    Attributes:
        root: absolute path of the repository root, which files are shown from.
        files: (suite, eval file): two files may have suites of one name.
        assertions: (type, name) of those that were seen; no name where there are too many.
    """

    root: str = ""
    files: TextNumbers = field(default_factory=TextNumbers)
    targets: TextNumbers = field(default_factory=TextNumbers)
    prompts: TextNumbers = field(default_factory=TextNumbers)
    tags: TextNumbers = field(default_factory=TextNumbers)
    variants: TextNumbers = field(default_factory=TextNumbers)
    assertions: TextNumbers = field(default_factory=TextNumbers)
    clusters: TextNumbers = field(default_factory=TextNumbers)
    _groups: dict[tuple[object, ...], _SampledCase] = field(default_factory=dict)

    @classmethod
    def of_run(cls, record: JsonObject, root: str) -> Entries:
        """Those of a run, with what its suites name numbered in their order: what the page sorts by."""
        entries = cls(root)
        for suite in objects_in(record.get("suites")):
            entries.files.of((suite.get("name"), suite.get("path")))
            for table, kind, name in (
                (entries.targets, "targets", "name"),
                (entries.prompts, "prompts", "id"),
                (entries.variants, "variants", "name"),
            ):
                for one in objects_in(suite.get(kind)):
                    table.of(one.get(name))
        return entries

    def short(self, result: TrialResult) -> list[Any]:
        """Fields for the list and its filters; `browser/data/file_run.js` names their positions."""
        trial, case = result.trial, result.trial.case
        return [
            case.id,
            self.files.of((trial.suite.name, from_root(self.root, trial.suite.path))),
            self.targets.of(trial.target.name),
            -1 if case.prompt_id is None else self.prompts.of(case.prompt_id),
            trial.sample,
            trial.repeat,
            STATUSES.index(result.status),
            result.score,
            trial.threshold,
            round(result.duration_ms, 1),
            result.spent_usd,
            [self.tags.of(tag) for tag in case.tags],
            [number for score in result.scores for number in (self._assertion(score), state(score))],
            teaser(result),
            self._group(result),
            case.sha256[:12],
            self._cluster(trial),
            -1 if trial.variant is None else self.variants.of(trial.variant.name),
            case.position,
        ]

    def tables(self) -> dict[str, Any]:
        """Tables of the entries' numbers, and the verdicts and results of cases with several samples."""
        tables = {"files": self.files, "targets": self.targets, "prompts": self.prompts, "variants": self.variants}
        tables["tags"] = self.tags
        return {
            **{name: list(table.numbers) for name, table in tables.items()},
            "assertions": list(self.assertions.numbers),
            "clusters": [by for by, _ in self.clusters.numbers],
            "verdicts": [group.verdict() for group in self._groups.values()],
            "early": [group.early() for group in self._groups.values()],
        }

    def _cluster(self, trial: Trial) -> int:
        """The number of its cluster; −1 where that is its case."""
        row = TrialCluster.of(trial)
        by = key_of_cluster(row)
        return -1 if by is None else self.clusters.of((by, cluster_of(row)))

    def _assertion(self, score: Score) -> int:
        entry = score.entry
        named = (entry.shown_type, entry.name)
        if named in self.assertions.numbers or len(self.assertions.numbers) < NAMES:
            return self.assertions.of(named)
        return self.assertions.of((entry.shown_type, None))

    def _group(self, result: TrialResult) -> int:
        """The number of the case that a sample is of; -1 for a case with one sample, whose verdict is its own."""
        trial = result.trial
        if trial.repeat == 1:
            return -1
        key = (trial.suite.path, trial.suite.name, trial.case.id, trial.case.prompt_id, trial.target.name)
        key = key if trial.variant is None else (*key, trial.variant.name)  # type: ignore[assignment]  # one more
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _SampledCase(len(self._groups), rule_of(trial))
        group.samples.append(sample_of(result))
        return group.number


def from_root(root: str, path: str) -> str:
    """A path as it is shown, from the root of its repository."""
    return path.removeprefix(root.rstrip("/") + "/") if root else path


def teaser(result: TrialResult) -> str:
    """Why a trial ended as it did, or how its answer begins: one line."""
    return one_line(" ".join(next(_reasons(result), "").split()), TEASER)


def _reasons(result: TrialResult) -> Iterator[str]:
    if result.error is not None:
        yield f"{result.error.code}: {result.error.message[:TEASER]}"
    if result.status == "failed":
        yield from map(check, trial_view("failed", result).findings[:1])
    cut = cut_words(result)
    if cut is not None:
        yield cut
    yield (result.output or "")[: TEASER + 1].strip()


def state(score: Score) -> int:
    """Status of an assertion, as an index of `STATUSES`."""
    if score.grade.error is not None:
        return ERRORED
    return PASSED if score.grade.passed else FAILED


def early_facts(samples: Sequence[Sample], rule: Rule) -> dict[str, Any] | None:
    """How the samples of a case ended, and what its pass rate is without the bias of that.

    No bounds and no rate where some are to come. None: of a case whose samples do not end early.
    """
    if rule.alpha is None:
        return None
    stopped = stopped_by(samples, rule)
    if stopped is None:
        return {"alpha": rule.alpha, "why": None, "bounds": None, "rate": None}
    from agentv.stats.samples.deciding import unbiased_rate  # few runs end samples early

    rate = unbiased_rate(stopped, threshold=rule.threshold, alpha=rule.alpha, repeat=rule.repeat)
    bounds = [stopped.low, stopped.high] if stopped.samples else None
    return {"alpha": rule.alpha, "why": stopped.why, "bounds": bounds, "rate": rate}
