"""Paths in, suites out (SPEC section 2)."""

import os
from pathlib import Path

import pytest

from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, eval_files, load
from agentv.errors import LoadError, UsageError
from doubles.loading import repository

SUITE = "target: echo\ntests: [{id: a, input: x, assert: [{contains: x}]}]\n"


def names(root, *paths: str) -> list[str]:
    return [os.path.relpath(path, root) for path in eval_files(tuple(str(root / path) for path in paths))]


def test_a_directory_is_searched_for_eval_files(tmp_path):
    found = ["b.eval.yaml", "a.eval.yml", "EVAL.yaml", "deep/er/c.eval.yaml"]
    others = ["cases.yaml", "deep/eval.yml", ".agentv/x.eval.yaml", "node_modules/x.eval.yaml", "a.eval.yaml.bak"]
    root = repository(tmp_path, dict.fromkeys([*found, *others], SUITE))
    assert names(root, ".") == ["EVAL.yaml", "a.eval.yml", "b.eval.yaml", "deep/er/c.eval.yaml"]


@pytest.mark.parametrize(
    ("files", "path", "message", "hint"),
    [
        (["a.py"], "a.py", "is not an eval file", "or .eval.py"),
        ([], "no/where/at/all", "does not exist", None),
        ([], "x" * 300, "does not exist", None),
    ],
)
def test_what_names_nothing_that_can_be_run(tmp_path, files, path, message, hint):
    root = repository(tmp_path, dict.fromkeys(files, "x"))
    with pytest.raises(UsageError, match=message) as caught:
        names(root, path)
    assert (hint.format(root=root) in caught.value.hint) if hint else caught.value.hint is None


def test_all_mistakes_of_all_files_are_told_at_once_and_right_files_do_not_run(tmp_path):
    root = repository(tmp_path, {"a.eval.yaml": SUITE.replace("id", "idd"), "b.eval.yaml": SUITE, "c.eval.yaml": "x"})
    with pytest.raises(LoadError) as caught:
        load(LoadRequest((str(root),)), registries())
    shown = [(Path(one.span.file).name, one.code) for one in caught.value.diagnostics]
    assert shown == [("a.eval.yaml", "unknown-key"), ("c.eval.yaml", "bad-eval-file")]
