"""Runs on disk made of hand-made finished trials."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from agentv.model.run.trial import TrialResult
from agentv.model.values.values import EMPTY, Json
from agentv.store.files.encoding import to_document, to_json
from agentv.store.journal.answers import HEADER, row_checksum_line, summary_checksum_line
from agentv.store.rows.reading import key_of_row
from agentv.store.rows.rows import row_of
from doubles.trials import ROOT, finished, trial


def write_run(path: Path, results: Iterable[TrialResult], record: Mapping[str, Json] = EMPTY) -> str:
    """Write a run and return its directory as a user would name it; the directory's name is the run's id."""
    path.mkdir(parents=True)
    (path / "run.json").write_bytes(to_document({"schema_version": 1, "run_id": path.name, **record}))
    write_rows(path, [to_json(row_of(one, ROOT)) for one in results])
    return str(path)


def write_rows(path: Path, rows: Iterable[bytes]) -> None:
    """Replace the rows of a run, and write a journal with their checksums."""
    lines = list(rows)
    (path / "index.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    seals = (row_checksum_line(key_of_row(line) or "", line) for line in lines)
    (path / "journal.jsonl").write_bytes(b"".join((HEADER, *seals)))
    if (path / "summary.json").exists():
        write_summary(path, (path / "summary.json").read_bytes())


def write_summary(path: Path, summary: Mapping[str, Json] | bytes) -> None:
    """Write the `summary.json` of a run with its checksum in the journal, as agentv does."""
    index = path / "index.jsonl"
    content = summary if isinstance(summary, bytes) else to_document(dict(summary))
    with (path / "journal.jsonl").open("ab") as journal:
        journal.write(summary_checksum_line(content, index.stat().st_size if index.exists() else 0))
    (path / "summary.json").write_bytes(content)


def update_checksums(path: Path) -> None:
    """Write the checksums of a run's current rows to its journal."""
    write_rows(path, (path / "index.jsonl").read_bytes().splitlines())


def scored_trials(scores: Mapping[str, float], *, sha256: str = "c" * 64, **given: object) -> Sequence[TrialResult]:
    """Return one trial per case of case id → score, passing at 0.8; keywords set fields of the trials."""
    return [_scored(case_id, score, sha256, given) for case_id, score in scores.items()]


def _scored(case_id: str, score: float, sha256: str, given: Mapping[str, object]) -> TrialResult:
    subject = trial(case_id, **given)
    subject = replace(subject, case=replace(subject.case, sha256=sha256))
    return finished("passed" if score >= 0.8 else "failed", trial=subject, score=score, output=f"{case_id}: {score}")
