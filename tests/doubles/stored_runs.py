"""Runs on disk, made of finished trials that were made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentv.model.trial import TrialResult
from agentv.model.values import EMPTY, Json
from agentv.store.encoding import to_document, to_json
from agentv.store.rows import Places, row_of
from doubles.trials import ROOT, finished, trial


def write_run(path: Path, results: Iterable[TrialResult], record: Mapping[str, Json] = EMPTY) -> str:
    """The directory of a run, as a person would name it; its id is the directory's name."""
    path.mkdir(parents=True)
    (path / "journal.jsonl").touch()
    (path / "run.json").write_bytes(to_document({"schema_version": 1, "run_id": path.name, **record}))
    (path / "index.jsonl").write_bytes(b"".join(to_json(row_of(one, Places(ROOT))) + b"\n" for one in results))
    return str(path)


def scoring(scores: Mapping[str, float], *, sha256: str = "c" * 64, **given: object) -> Sequence[TrialResult]:
    """One trial a case, which passes at 0.8: case id → score; further keywords are the trial's own."""
    return [_scored(case_id, score, sha256, given) for case_id, score in scores.items()]


def _scored(case_id: str, score: float, sha256: str, given: Mapping[str, object]) -> TrialResult:
    subject = trial(case_id, **given)
    subject = replace(subject, case=replace(subject.case, sha256=sha256))
    return finished("passed" if score >= 0.8 else "failed", trial=subject, score=score, output=f"{case_id}: {score}")
