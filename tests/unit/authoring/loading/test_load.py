"""Loading suites from paths (SPEC section 2); every file is checked by its kind."""

import os
from pathlib import Path

import pytest

from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, check_file, eval_files
from agentv.errors import UsageError
from doubles.loading import repository


def names(root, *paths: str) -> list[str]:
    return [os.path.relpath(path, root) for path in eval_files(tuple(str(root / path) for path in paths))]


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


def checked(folder: Path, name: str, files: dict[str, str]) -> list[tuple[str, str, int]]:
    found = check_file(str(repository(folder, files) / name), LoadRequest((), for_run=False), registries())
    return [(one.code, Path(one.span.file).name, one.span.line) for one in found.diagnostics]


def test_a_template_is_one_by_its_place_even_where_its_only_key_is_misspelt(tmp_path):
    files = {".agentv/templates/t.yaml": "asert:\n  - contains: x\n"}
    assert checked(tmp_path, ".agentv/templates/t.yaml", files) == [("unknown-key", "t.yaml", 1)]


def test_a_mistake_in_a_file_that_a_config_names_shows_there(tmp_path):
    files = {
        ".agentv/config.yaml": "providers: file://p.yaml\n",
        ".agentv/targets.yaml": "targets:\n  - {name: a, provider: ecko}\n",
        "p.yaml": "- file://q.yaml\n",
        "q.yaml": "- file://p.yaml\n",
    }
    assert checked(tmp_path, ".agentv/config.yaml", files) == [("target-cycle", "q.yaml", 1)]


def test_a_sidecar_is_checked_with_its_cases(tmp_path):
    files = {"s.yaml": "nmae: x\n", "s.jsonl": '{"id": "a", "input": "x", "asert": [], "criteria": "c"}\n'}
    assert checked(tmp_path, "s.yaml", files) == [("unknown-key", "s.jsonl", 1), ("unknown-key", "s.yaml", 1)]
