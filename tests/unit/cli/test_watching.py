import os
import sys
from pathlib import Path

import pytest

from agentv.cli import main, watching
from agentv.cli.watching import WatchedFiles, differing, outputs, run_repeatedly


class Runs:
    """Runs with given results that record their commands."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.commands = []

    def __call__(self, words):
        self.commands.append(list(words))
        note = Path(words[words.index("--watched") + 1])
        return self.steps.pop(0)(note) if self.steps else 130


def began(directory):
    def step(note):
        directory.mkdir(exist_ok=True)
        note.write_text(str(directory))
        return 1

    return step


def followed(tmp_path, runs, *saves, words=("eval", "evals")):
    files = watched(tmp_path / "evals", *saves)
    (tmp_path / "evals").mkdir(exist_ok=True)
    return run_repeatedly(words, files, runs, str(tmp_path))


def test_a_log_that_every_run_writes_does_not_start_it_for_ever(tmp_path):
    lines = iter(range(100))
    begins = began(tmp_path / "r")

    def logging(note):
        with (tmp_path / "evals" / "run.log").open("a") as file:
            file.write(f"{next(lines)}\n")
        return begins(note)

    def stop():
        raise KeyboardInterrupt

    # the log triggers the second run but no third one; Ctrl-C ends the pauses after it
    assert followed(tmp_path, runs := Runs(*[logging] * 9), None, None, stop) == 130
    assert len(runs.commands) == 2


def test_options_of_the_next_run_stand_before_the_paths_behind_two_dashes(tmp_path):
    def stop():
        raise KeyboardInterrupt

    runs = Runs(began(tmp_path / "r"))
    assert followed(tmp_path, runs, stop, words=("eval", "--", "evals")) == 130
    assert [*runs.commands[0][:2], *runs.commands[0][3:]] == ["eval", "--watched", "--", "evals"]


def test_ctrl_c_while_waiting_ends_with_130(tmp_path, capsys):
    def stop():
        raise KeyboardInterrupt

    assert followed(tmp_path, Runs(began(tmp_path / "r")), stop) == 130
    assert capsys.readouterr().err.endswith("stopped watching\n")


def test_a_mistake_that_no_save_mends_is_refused_before_anything_is_watched(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    started = []
    monkeypatch.setattr(watching, "run_agentv", lambda words: started.append(words) or 130)
    mistakes = {
        ("--replay", "no-such-file"): "no cassette at no-such-file",
        ("--margin", "0.1"): "--margin requires --against",
        ("--last-failed", "--sample", "3"): "--last-failed conflicts with --sample",
    }
    for words, message in mistakes.items():
        monkeypatch.setattr(sys, "argv", ["agentv", "eval", "evals", "--watch", *words])
        assert main.run(sys.argv[1:]) == 2, words
        assert message in capsys.readouterr().err
    assert started == []
    monkeypatch.setattr(sys, "argv", ["agentv", "eval", "evals", "--watch", "--replay", "x", "--replay-mode", "new"])
    assert main.run(sys.argv[1:]) == 130
    assert len(started) == 1  # the cassette of a started run may be missing


@pytest.fixture
def saved_files_project(tmp_path):
    for name in ("evals/a.eval.yaml", ".agentv/targets.yaml", ".env", "src/agent.py"):
        write(tmp_path / name, "1")
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, ns=(0, next(TIMES)))


TIMES = iter(range(1, 10_000))


def watched(directory, *saves):
    """Return watched files; each pause performs the next save."""
    ahead = iter(saves)

    def sleep(_seconds):
        save = next(ahead, None)
        if save is not None:
            save()

    return WatchedFiles((str(directory),), frozenset({str(directory / "out.md")}), sleep, lambda: 0.0)


def changed(saved_files_project, *saves):
    files = watched(saved_files_project, *saves)
    paths, _ = files.changed(files.snapshot())
    return [os.path.relpath(path, saved_files_project) for path in paths]


def test_new_deleted_renamed_and_replaced_files_are_changes(saved_files_project):
    evals = saved_files_project / "evals"
    assert changed(saved_files_project, lambda: write(evals / "b.eval.yaml", "1")) == ["evals/b.eval.yaml"]
    assert changed(saved_files_project, (evals / "b.eval.yaml").unlink) == ["evals/b.eval.yaml"]
    shown = changed(saved_files_project, lambda: (evals / "a.eval.yaml").rename(evals / "c.eval.yaml"))
    assert shown == ["evals/a.eval.yaml", "evals/c.eval.yaml"]
    write(saved_files_project / ".env.new", "2")
    assert changed(
        saved_files_project, lambda: (saved_files_project / ".env.new").rename(saved_files_project / ".env")
    ) == [".env", ".env.new"]
    shown = changed(saved_files_project, lambda: write(saved_files_project / ".agentv/targets.yaml", "2"))
    assert shown == [".agentv/targets.yaml"]


def test_what_runs_and_editors_write_is_no_change(saved_files_project):
    own = [".agentv/results/r/index.jsonl", ".git/index", "out.md", "evals/.a.swp", "evals/a.eval.yaml~", "4913"]
    own += ["__pycache__/a.pyc", "node_modules/x/index.js", ".venv/x.py", "#a#"]
    saves = [lambda name=name: write(saved_files_project / name, "2") for name in own]
    shown = changed(saved_files_project, *saves, lambda: write(saved_files_project / "src/agent.py", "2"))
    assert shown == ["src/agent.py"]


def test_a_file_that_was_restored_is_no_change(saved_files_project):
    path = saved_files_project / "evals/a.eval.yaml"
    hidden = saved_files_project / "evals/.hidden"
    steps = [
        lambda: path.rename(hidden),
        lambda: hidden.rename(path),
        None,
        lambda: write(saved_files_project / "b.yaml", ""),
    ]
    assert changed(saved_files_project, *steps) == ["b.yaml"]


def test_the_files_that_the_output_goes_to_are_not_looked_at(saved_files_project):
    with (saved_files_project / "evals/run.log").open("w") as log:
        assert outputs([log.fileno(), 10_000]) == outputs([log.fileno()])
        files = WatchedFiles(
            (str(saved_files_project),), frozenset(), lambda _: None, lambda: 0.0, outputs([log.fileno()])
        )
        before = files.snapshot()
        print("a line", file=log, flush=True)
        write(saved_files_project / "evals/other.log", "a line")
        assert differing(before, files.snapshot()) == [str(saved_files_project / "evals/other.log")]
