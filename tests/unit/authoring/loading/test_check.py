"""Every file is checked as what it is."""

from __future__ import annotations

from pathlib import Path

from agentv.app.authored.validate import Validation
from agentv.app.registries import registries
from agentv.authoring.loading.check import check_file
from agentv.authoring.loading.load import LoadRequest
from doubles.loading import repository


def checked(folder: Path, name: str, files: dict[str, str]) -> list[tuple[str, str, int]]:
    path = repository(folder, files) / name
    found = check_file(str(path), LoadRequest((), for_run=False), registries())
    return [(one.code, Path(one.span.file).name, one.span.line) for one in found.diagnostics]


def test_a_template_is_one_by_its_place_even_where_its_only_key_is_misspelt(tmp_path):
    files = {".agentv/templates/t.yaml": "asert:\n  - contains: x\n"}
    assert checked(tmp_path, ".agentv/templates/t.yaml", files) == [("unknown-key", "t.yaml", 1)]


def test_targets_are_read_one_and_all(tmp_path):
    text = (
        "targets:\n  - {name: a, provider: ecko}\n  - {name: b, provider: echo, naem: c}\ndefaults: {judge: nobody}\n"
    )
    found = checked(tmp_path, ".agentv/targets.yaml", {".agentv/targets.yaml": text})
    assert found == [
        ("unknown-provider", "targets.yaml", 2),
        ("unknown-key", "targets.yaml", 3),
        ("unknown-target", "targets.yaml", 4),
    ]


def test_targets_that_are_right_are_no_eval_file_without_tests(tmp_path):
    text = "targets:\n  - {name: a, provider: echo}\n"
    assert checked(tmp_path, ".agentv/targets.yml", {".agentv/targets.yml": text}) == []


def test_a_config_is_checked_by_itself(tmp_path):
    files = {".agentv/config.yaml": "thresold: 1\n", ".agentv/config.local.yaml": "run: {wokers: 1}\n"}
    assert checked(tmp_path, ".agentv/config.yaml", files) == [("unknown-key", "config.yaml", 1)]
    assert checked(tmp_path, ".agentv/config.local.yaml", files) == [("unknown-key", "config.local.yaml", 1)]


def test_providers_are_checked_as_targets_are(tmp_path):
    text = "providers:\n  - {name: a, provider: ecko}\n"
    files = {".agentv/providers.yml": text, ".agentv/config.yaml": "thresold: 1\n"}
    assert checked(tmp_path, ".agentv/providers.yml", files) == [("unknown-provider", "providers.yml", 2)]


def test_a_mistake_in_a_file_that_a_config_names_shows_there(tmp_path):
    files = {
        ".agentv/config.yaml": "providers: file://p.yaml\n",
        ".agentv/targets.yaml": "targets:\n  - {name: a, provider: ecko}\n",
        "p.yaml": "- file://q.yaml\n",
        "q.yaml": "- file://p.yaml\n",
    }
    assert checked(tmp_path, ".agentv/config.yaml", files) == [("target-cycle", "q.yaml", 1)]


def test_of_two_configurations_the_second_is_wrong(tmp_path):
    files = {".agentv/config.yaml": "threshold: 1\n", ".agentv/config.yml": "threshold: 1\n"}
    assert checked(tmp_path, ".agentv/config.yml", files) == [("ambiguous-config", "config.yml", 1)]


def test_a_file_of_that_name_elsewhere_is_an_eval_file(tmp_path):
    assert checked(tmp_path, "targets.yaml", {"targets.yaml": "targets: []\n"}) == [("missing-key", "targets.yaml", 1)]


def test_a_sidecar_is_checked_with_its_cases(tmp_path):
    files = {"s.yaml": "nmae: x\n", "s.jsonl": '{"id": "a", "input": "x", "asert": [], "criteria": "c"}\n'}
    found = checked(tmp_path, "s.yaml", files)
    assert found == [("unknown-key", "s.jsonl", 1), ("unknown-key", "s.yaml", 1)]


def test_an_eval_file_may_name_the_cases_beside_it(tmp_path):
    files = {"s.yaml": "target: echo\ntests: s.jsonl\njudge: mock:good\n"}
    files |= {"s.jsonl": '{"id": "a", "input": "x", "criteria": "c"}\n'}
    assert checked(tmp_path, "s.yaml", files) == []


def test_what_files_share_is_told_with_the_first_of_them(tmp_path):
    suite = "target: echo\ntests:\n  - {id: a, input: x, assert: [include: t]}\n"
    files = {"a.eval.yaml": suite, "b.eval.yaml": suite, ".agentv/templates/t.yaml": "assert:\n  - contians: x\n"}
    told = list(Validation((str(repository(tmp_path, files)),), {}))
    assert [[one.code for one in file.diagnostics] for file in told] == [["unknown-assertion"], []]


def test_the_first_mistake_is_told_before_the_second_file_is_read(tmp_path):
    bad = "target: echo\ntests: []\n"
    files = {"a.eval.yaml": bad, "b.eval.yaml": bad}
    telling = iter(Validation((str(repository(tmp_path, files)),), {}))
    assert [one.code for one in next(telling).diagnostics] == ["no-tests"]
    (tmp_path / "b.eval.yaml").write_text("target: echo\ntests: [{}]\n")
    assert [one.code for one in next(telling).diagnostics] != ["no-tests"]


def test_a_template_that_is_not_used_may_say_so(tmp_path):
    files = {
        "a.eval.yaml": "target: echo\ntests:\n  - {id: a, input: x, assert: [contains: x]}\n",
        ".agentv/templates/left.yaml": "assert:\n  - contains: x\n",
        ".agentv/templates/kept.yaml": "# agentv: ignore[unused-template]\nassert:\n  - contains: x\n",
    }
    told = [one for file in Validation((str(repository(tmp_path, files)),), {}) for one in file.diagnostics]
    assert [(one.code, Path(one.span.file).name) for one in told] == [("unused-template", "left.yaml")]


def test_nothing_is_called_unused_where_a_file_is_wrong(tmp_path):
    files = {"a.eval.yaml": "target: echo\ntests: []\n", ".agentv/templates/left.yaml": "assert:\n  - contains: x\n"}
    told = [one for file in Validation((str(repository(tmp_path, files)),), {}) for one in file.diagnostics]
    assert [one.code for one in told] == ["no-tests"]


def test_a_file_given_twice_is_checked_once(tmp_path):
    files = {"a.eval.yaml": "target: echo\ntests: []\n"}
    root = repository(tmp_path, files)
    assert len(list(Validation((str(root), str(root / "a.eval.yaml")), {}))) == 1


def test_a_judge_that_a_run_would_lack_is_a_warning(tmp_path):
    judged = "tests:\n  - {id: a, input: hello, assert: [Is polite]}\n"
    files = {
        "suite.eval.yaml": f"target: echo\n{judged}",
        "with.eval.yaml": f"target: echo\njudge: mock:good\n{judged}",
    }
    path = str(repository(tmp_path, files))

    def found(env):
        return [(one.code, one.severity) for file in Validation((path,), env) for one in file.diagnostics]

    assert found({}).count(("no-judge", "warning")) == 1
    assert "no-judge" not in {code for code, _ in found({"AGENTV_JUDGE": "echo"})}
