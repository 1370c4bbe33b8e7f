"""The passing answers of a stored run, to be graded again: as its eval files are now, and as its targets answered."""

from __future__ import annotations

from dataclasses import dataclass

from agentv.app.results.stored import StoredRun
from agentv.errors import UsageError
from agentv.model.run.trial import Trial
from agentv.model.suite.assertion import AssertionEntry

TrialName = tuple[str, str, str, str | None, str | None, int]


@dataclass(frozen=True, slots=True)
class Graders:
    """The assertions of a case that grade mutants, and how many are left out.

    Attributes:
        entries: those that grade.
        judged: number of those left out because a model is asked, which `--judge` allows.
        comparing: number of those left out because they compare answers with each other.
    """

    entries: tuple[AssertionEntry, ...]
    judged: int
    comparing: int

    @property
    def lacking(self) -> str | None:
        """What to call a case that no assertion is left for; None if one is."""
        if self.entries:
            return None
        if self.judged:
            return "cases that only a model grades (--judge includes them)"
        return "cases that only compare answers" if self.comparing else "cases without checks"


def passing_trials(run: StoredRun) -> frozenset[TrialName]:
    """The trials that passed in a run.

    Raises:
        UsageError: no trial passed.
        StoreError: a row cannot be read.
    """
    found = {name_of(one.trial): one for one in run.results()}
    passed = frozenset(name for name, one in found.items() if one.status == "passed")
    if not passed:
        why = "no case passed" if found else "it has no finished trials"
        raise UsageError(f"{nothing_in(run.run_id)}: {why}", "mutants are made of passing answers")
    return passed


def nothing_in(run_id: str) -> str:
    """How a message begins that says why a run has nothing to mutate."""
    return f"the run {run_id} has nothing to mutate"


def name_of(trial: Trial) -> TrialName:
    """What tells a trial from the others of its run, also when its assertions have changed since."""
    return (
        trial.suite.name,
        trial.case.id,
        trial.target.name,
        trial.case.prompt_id,
        trial.variant_name,
        trial.sample,
    )


def graders_of(trial: Trial, *, judge: bool) -> Graders:
    """The assertions of a trial that grade its mutants.

    Args:
        trial: of the run.
        judge: those that ask a model grade too.
    """
    kept, judged, comparing = [], 0, 0
    for entry in trial.case.assertions:
        if _any(entry, "compares"):
            comparing += 1
        elif not judge and calls_model(entry):
            judged += 1
        else:
            kept.append(entry)
    return Graders(tuple(kept), judged, comparing)


def calls_model(entry: AssertionEntry) -> bool:
    """Whether an entry, or one inside it, asks a judge or computes embeddings."""
    return _any(entry, "needs_judge") or _any(entry, "needs_embedder")


def _any(entry: AssertionEntry, trait: str) -> bool:
    return any(getattr(one.assertion, trait, False) for one in entry.nested())
