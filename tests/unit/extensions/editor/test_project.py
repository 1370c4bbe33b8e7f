"""Names in a project with unusual files."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from agentv.extensions.editor.documents import CheckEndedError, Checker, check_in_editor
from agentv.extensions.editor.index import MOST_BYTES, bytes_of
from agentv.extensions.editor.project import Project
from agentv.extensions.editor.server import create_server

TARGETS = "targets:\n- {name: bot, provider: echo}\n"


def project(root: Path) -> Project:
    (root / ".git").mkdir(parents=True)
    (root / ".agentv" / "templates").mkdir(parents=True)
    return Project.around(str(root / "a.eval.yaml"), {})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in directories here")
def test_devices_and_pipes_are_not_read(tmp_path: Path) -> None:
    found = project(tmp_path)
    os.mkfifo(tmp_path / ".agentv" / "targets.yml")
    os.mkfifo(tmp_path / ".agentv" / "templates" / "waits.yaml")
    (tmp_path / ".agentv" / "targets.yaml").symlink_to("/dev/zero")
    (tmp_path / ".agentv" / "templates" / "safe.yaml").write_text("assert: []\n")
    assert (list(found.targets()), list(found.templates())) == ([], ["safe"])
    for name in ("targets.yml", "targets.yaml"):
        with pytest.raises(OSError, match="a device or a pipe"):
            bytes_of(str(tmp_path / ".agentv" / name), {})


def test_what_a_link_names_outside_the_project_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "targets.yaml").write_text(TARGETS)
    found = project(tmp_path / "inside")
    folder = tmp_path / "inside" / ".agentv"
    (folder / "targets.yaml").symlink_to(tmp_path / "targets.yaml")
    (folder / "templates" / "tpl.yaml").symlink_to(tmp_path / "targets.yaml")
    assert (list(found.targets()), found.templates()) == ([], {})
    (folder / "targets.yaml").unlink()
    (folder / "targets.yaml").write_text(TARGETS)
    assert [one.text for one in found.targets()] == ["bot"]


def test_large_files_are_not_read(tmp_path: Path) -> None:
    found = project(tmp_path)
    (tmp_path / ".agentv" / "targets.yaml").write_text(f"{TARGETS}#{'x' * 600_000}\n")
    assert list(found.targets()) == []
    (tmp_path / "large.eval.yaml").write_text(f"tests: []\n#{'x' * MOST_BYTES}\n")
    with pytest.raises(OSError, match="too large"):
        bytes_of(str(tmp_path / "large.eval.yaml"), {})


@pytest.mark.skipif(os.name == "nt", reason="a working directory cannot be deleted here")
def test_a_working_directory_that_is_deleted_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    path = str(tmp_path / "a.eval.yaml")
    edits = {path: b"target: echo\ntests:\n- {id: a, input: hi, asert: [contains: hi]}\n"}
    for ask in (
        lambda: Project.around(path, edits).root == str(tmp_path),
        lambda: [one.code for one in check_in_editor(path, "eval", edits).diagnostics] != [],
    ):
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        folder.rmdir()
        assert ask()


async def test_a_check_that_takes_too_long_or_whose_file_is_closed_is_ended_and_hinders_no_other() -> None:
    checker = Checker()
    assert isinstance(await checker.run(os.getpid), int)
    checker.limit_s = 0.2
    slow = asyncio.ensure_future(checker.run(time.sleep, 60))
    await asyncio.sleep(0)  # lets its limit be set
    checker.limit_s = 20
    found = await asyncio.gather(slow, *(checker.run(os.getpid) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in found] == [CheckEndedError, int, int, int]
    closed = asyncio.ensure_future(checker.run(time.sleep, 60))
    await asyncio.sleep(0.1)
    closed.cancel()
    assert isinstance(await checker.run(os.getpid), int)
    checker.stop()


@pytest.mark.parametrize(
    ("limit_s", "hostile", "said"),
    [(0.1, time.sleep, "took longer than 0.1 seconds and was ended"), (20, os._exit, "ended with its process")],
)
async def test_the_editor_shows_that_a_check_gave_no_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit_s: float, hostile: Any, said: str
) -> None:
    server, shown = create_server(), asyncio.Queue[types.ShowMessageParams]()
    monkeypatch.setattr(server, "window_show_message", shown.put_nowait)
    checker = server.documents.checker
    run = checker.run
    await run(os.getpid)
    checker.limit_s = limit_s
    monkeypatch.setattr(checker, "run", lambda *_: run(hostile, 9))
    server.documents.put(str(tmp_path / "a.eval.yaml"), "tests: []\n", 1)
    message = await shown.get()
    checker.stop()
    assert (message.type, said in message.message) == (types.MessageType.Warning, True)
    assert "a.eval.yaml" in message.message
