"""Every file is checked as what it is."""

from pathlib import Path

from agentv.app.authored.validate import Validation
from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, check_file
from doubles.loading import repository


def checked(folder: Path, name: str, files: dict[str, str]) -> list[tuple[str, str, int]]:
    path = repository(folder, files) / name
    found = check_file(str(path), LoadRequest((), for_run=False), registries())
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
    found = checked(tmp_path, "s.yaml", files)
    assert found == [("unknown-key", "s.jsonl", 1), ("unknown-key", "s.yaml", 1)]


def test_a_template_that_is_not_used_may_say_so(tmp_path):
    files = {
        "a.eval.yaml": "target: echo\ntests:\n  - {id: a, input: x, assert: [contains: x]}\n",
        ".agentv/templates/left.yaml": "assert:\n  - contains: x\n",
        ".agentv/templates/kept.yaml": "# agentv: ignore[unused-template]\nassert:\n  - contains: x\n",
    }
    told = [one for file in Validation((str(repository(tmp_path, files)),), {}) for one in file.diagnostics]
    assert [(one.code, Path(one.span.file).name) for one in told] == [("unused-template", "left.yaml")]
