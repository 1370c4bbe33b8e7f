"""`agentv init`: a small project that runs at once, offline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentv.app.authored.schema import schema_text
from agentv.authoring.source.files import is_file
from agentv.user_code.os_errors import store_error

_PROJECT = Path(__file__).parent / "project"

FILES: Mapping[str, str] = {
    "evals/first.eval.yaml": "first.eval.yaml",
    "agent.py": "agent.py",
    ".agentv/targets.yaml": "targets.yaml",
    ".agentv/templates/house-style.yaml": "house-style.yaml",
    ".agentv/assertions/max_sentences.py": "max_sentences.py",
}
"""Path in the new project → the file that is shipped for it."""

SCHEMA = ".agentv/eval.schema.json"
"""Editors complete and check eval files with it; the first line of the eval file names it."""


@dataclass(frozen=True, slots=True)
class Started:
    """Paths in the project: files that were written, and existing files that were left unchanged."""

    written: tuple[str, ...]
    kept: tuple[str, ...]


def start_project(directory: Path) -> Started:
    """Write the files that do not exist yet. Existing files are not changed.

    Raises:
        StoreError: a file cannot be written.
    """
    texts = {path: (_PROJECT / shipped).read_text(encoding="utf-8") for path, shipped in FILES.items()}
    written, existing = list[str](), list[str]()
    for path, text in {**texts, SCHEMA: schema_text("eval")}.items():
        place = directory / path
        (written if _written(place, text) else existing).append(path)
    return Started(tuple(written), tuple(existing))


def _written(place: Path, text: str) -> bool:
    """Whether the file was written, and does not stand there already."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        if is_file(str(place)):
            return False
        raise store_error("write", place, error) from error
    return True
