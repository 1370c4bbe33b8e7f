"""Which answers a person may not label otherwise: the agreement with the judge was shown, which tells its verdicts.

A line for each time, in `.agentv/labels/shown/RUN.jsonl`, beside the labels, so that both are committed together.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from agentv.errors import StoreError
from agentv.model.run.labelled.labels import person_key
from agentv.store.files.encoding import to_json
from agentv.store.files.lines import read_lines
from agentv.store.labels.label_files import append_line, labels_directory

_SHOWN = "shown"


class _AgreementLine(Struct, forbid_unknown_fields=True):
    run: str
    person: str
    time: str
    answers: list[str]


_decode = msgspec.json.Decoder(_AgreementLine).decode


def agreements_file(root: Path, run: str) -> Path:
    """The file of a run's agreements that were shown."""
    name = re.sub(r"[^\w.-]+", "-", run).strip("-.") or "run"
    return labels_directory(root) / _SHOWN / f"{name}.jsonl"


def append_agreement(root: Path, run: str, person: str, answers: list[str]) -> None:
    """Add that a person was shown how often they and the judge agree on these answers; the disk has it on return.

    Raises:
        StoreError: the system refuses.
    """
    line = _AgreementLine(run, person, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), answers)
    append_line(agreements_file(root, run), to_json(line))


def read_shown_answers(root: Path, run: str, person: str) -> set[str]:
    """The answers of a run on which a person was shown the agreement.

    Raises:
        StoreError: the file cannot be read, or has a line that is none of them; the text names it.
    """
    path, wanted = agreements_file(root, run), person_key(person)
    found: set[str] = set()
    for number, line in read_lines(path) if path.exists() else ():
        if not line.strip():
            continue
        try:
            read = _decode(line)
        except ValueError as error:
            raise StoreError(f"{path}:{number}: not a shown agreement: {error}") from error
        if read.run == run and person_key(read.person) == wanted:
            found.update(read.answers)
    return found
