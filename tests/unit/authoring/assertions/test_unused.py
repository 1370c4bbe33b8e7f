from __future__ import annotations

from pathlib import Path

from agentv.authoring.assertions.unused import unused_templates


def templates(home: Path, *names: str) -> list[str]:
    folder = home / ".agentv" / "templates"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch()
    return [str(folder / name) for name in names]


def test_other_files_and_other_peoples_directories_are_left_alone(tmp_path: Path) -> None:
    templates(tmp_path, "README.md", "notes.txt")
    templates(tmp_path / "node_modules" / "some-package", "theirs.yaml")
    templates(tmp_path / ".venv" / "lib", "theirs.yaml")
    assert list(unused_templates([str(tmp_path)], ())) == []
