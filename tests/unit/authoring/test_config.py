"""`.agentv/config.yaml` and its local twin (SPEC section 2)."""

from pathlib import Path

import pytest

from agentv.authoring.config import read_config
from doubles.loading import reading_of, repository


def config(folder: Path, files: dict[str, str], directory: str = ".", **more):
    reading = reading_of(repository(folder, files), **more)
    found = read_config(str(folder / directory) if directory != "." else str(folder), reading)
    return found, [(one.code, one.span.line) for one in reading.report.diagnostics]


def test_the_local_file_wins_key_by_key(tmp_path):
    found, told = config(
        tmp_path,
        {
            ".agentv/config.yaml": "target: a\njudge: j\nthreshold: 0.5\nrun: {workers: 2, repeat: 3}\n",
            ".agentv/config.local.yaml": "target: b\nrun: {workers: 4}\n",
        },
    )
    assert told == []
    assert (found.target, found.judge, found.threshold) == ("b", "j", 0.5)
    assert (found.run.workers, found.run.repeat) == (4, 3)
    assert Path(found.nodes["target"].at.start_mark.name).name == "config.local.yaml"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("---\n", []),
        ("run:\nx-free: 1\n", []),
        ("[a]\n", [("bad-value", 1)]),
        ("target: [a]\nrun: fast\n", [("bad-value", 1), ("bad-value", 2)]),
        ("prompts_dir: [a]\n", [("bad-value", 1)]),
        ("prompts_dir: ' '\n", [("missing-value", 1)]),
    ],
)
def test_what_is_wrong_with_a_config(tmp_path, text, told):
    assert sorted(config(tmp_path, {".agentv/config.yaml": text})[1]) == told
