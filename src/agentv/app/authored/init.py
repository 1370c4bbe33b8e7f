"""`agentv init`: a small project from a template, or skills for coding agents. Each runs offline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agentv.authoring.source.files import is_file
from agentv.user_code.files import store_error

_FILES = Path(__file__).parent

TEMPLATES = ("chatbot", "rag", "agent", "prompt", "skill", "promptfoo")
"""Folders of `templates/`; the first one is the default."""

SKILLS = "skills"
"""The folder of skills for coding agents, which belong in `.claude/skills`."""


@dataclass(frozen=True, slots=True)
class Started:
    """Paths in the project: files that were written, and existing files that were left unchanged."""

    written: tuple[str, ...]
    kept: tuple[str, ...]

    @property
    def eval_file(self) -> str:
        """The file that `agentv eval` takes; only of a template."""
        return next(path for path in (*self.written, *self.kept) if path.endswith((".eval.yaml", "config.yaml")))


def start_project(directory: Path, template: str) -> Started:
    """Write the files of a template that do not exist yet. Existing files are not changed.

    Raises:
        StoreError: a file cannot be written.
    """
    return _copied(_FILES / "templates" / template, directory)


def write_skills(directory: Path) -> Started:
    """Write the skills for coding agents that do not exist yet, as `start_project` does."""
    return _copied(_FILES / SKILLS, directory, ".claude/skills")


def _copied(source: Path, directory: Path, below: str = "") -> Started:
    written, kept = list[str](), list[str]()
    for file in sorted(source.rglob("*")):
        if file.is_file() and file.suffix != ".pyc":
            path = str(Path(below) / file.relative_to(source))
            place = directory / path
            (written if _written(place, file.read_text(encoding="utf-8")) else kept).append(path)
    return Started(tuple(written), tuple(kept))


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
