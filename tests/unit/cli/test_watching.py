import sys
from pathlib import Path

from agentv.cli import main, watching
from agentv.cli.watching import Watch, WatchedFiles


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
    ahead = iter(saves)

    def sleep(_seconds):
        save = next(ahead, None)
        if save is not None:
            save()

    files = WatchedFiles((str(tmp_path / "evals"),), frozenset(), sleep, lambda: 0.0)
    (tmp_path / "evals").mkdir(exist_ok=True)
    return Watch(words, files, runs, str(tmp_path)).follow()


def test_a_log_that_every_run_writes_does_not_start_it_for_ever(tmp_path):
    lines = iter(range(100))
    begins = began(tmp_path / "r")

    def logging(note):
        with (tmp_path / "evals" / "run.log").open("a") as file:
            file.write(f"{next(lines)}\n")
        return begins(note)

    def stop():
        raise KeyboardInterrupt

    # the log starts the second run, and no third one: the pauses after it end by Ctrl-C
    assert followed(tmp_path, runs := Runs(*[logging] * 9), None, None, stop) == 130
    assert len(runs.commands) == 2


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
    assert len(started) == 1  # a cassette that is begun need not be there
