"""Installed plugins as the loader sees them, and plugin reports that fail half way."""

import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import astuple, replace

from agentv.app.plugins import list_plugins, render_report
from agentv.app.registries import registries
from agentv.errors import UsageError
from agentv.registry.plugins import PluginCode
from agentv.registry.types import ReportFormat, RunData
from doubles.loading import codes_and_lines, outcome, repository
from doubles.plugin_packages import ASSERTION, TARGET, install, install_acme


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A directory of packages on `sys.path`; modules imported from the test's directory are removed afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def entry(name: str) -> str:
    return json.dumps(
        {"target": "echo", "tests": [{"id": "a", "input": "a", "assert": [{"type": name, "value": "a"}]}]}
    )


def said(tmp_path: Path, text: str):
    return outcome(repository(tmp_path / "project", {"suite.eval.yaml": text}) / "suite.eval.yaml")[1]


BROKEN = {
    "missing module": ("acme_evals.nope:Twice", "", "No module named 'acme_evals.nope'", "entry_points.txt:2"),
    "missing name": ("acme_evals.bad:Twise", ASSERTION, "has no 'Twise'; did you mean 'Twice'?", "bad.py:1"),
    "syntax": ("acme_evals.bad:Twice", "a = 1\nb = (\n", "SyntaxError: '(' was never closed", "bad.py:2"),
    "exits": ("acme_evals.bad:Twice", "import sys\nsys.exit(0)", "it called sys.exit(0)", "bad.py:2"),
    "ends": ("acme_evals.bad:Twice", "class E(BaseException): pass\nraise E('x')", "E: x", "bad.py:2"),
    "older one": ("acme_evals.bad:Twice", "from agentv.plugins import Gone", "cannot import name 'Gone'", "bad.py:1"),
    "no name": ("acme evals : Twice!", ASSERTION, "must read NAME = module:Class", "entry_points.txt:2"),
    "wrong class": ("acme_evals.bad:Twice", "\nclass Twice: pass", "must derive from agentv.plugins.Dec", "bad.py:2"),
    "a module": ("acme_evals.bad", ASSERTION, "the module that it names must be a class", "bad.py:1"),
    "no grade": ("acme_evals.bad:Twice", ASSERTION.replace("def grade", "def grades"), "a method 'grade'", "bad.py:8"),
    "thawed": ("acme_evals.bad:Twice", ASSERTION.replace("frozen=True, ", ""), "a frozen dataclass", "bad.py:8"),
    "taken": (
        "acme_evals.bad:Twice",
        ASSERTION.replace("    def label", "    weight: Annotated[float, Doc('w')] = 1.0\n\n    def label"),
        "has an option 'weight', which every assertion takes already",
        "bad.py:8",
    ),
    "validate": (
        "acme_evals.bad:Twice",
        ASSERTION + "\n    def validate(self):\n        raise OSError('disk')\n",
        "raised OSError: disk (bad.py:24, in validate)",
        "",
    ),
    "label": ("acme_evals.bad:Twice", ASSERTION.replace("repr(self.value)", "3"), "must return text, returned int", ""),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_assertion_is_an_error_where_it_is_used(site, tmp_path, how):
    value, text, why, place = BROKEN[how]
    install(site, {"assertions": {"bad": value}}, {"acme_evals/__init__.py": "", "acme_evals/bad.py": text})
    (found,) = (one for one in said(tmp_path, entry("bad")) if one.severity == "error")
    assert found.code == "bad-plugin"
    assert found.span.file.endswith("suite.eval.yaml")
    assert "assertion type 'bad' of acme-evals 1.2" in found.message
    assert why in found.message
    assert place in found.message
    assert "'agentv plugins' lists what is installed" in found.notes


def test_a_class_may_extend_one_of_ours(site, tmp_path):
    text = "from agentv.assertions.text.matching import Contains\n\nclass Mine(Contains):\n    'Contains a text.'"
    install(
        site,
        {"assertions": {"mine": "acme_evals.good:Mine"}},
        {"acme_evals/__init__.py": "", "acme_evals/good.py": text},
    )
    assert said(tmp_path, entry("mine")) == ()


TARGETS = {
    "no connect": (TARGET.replace("def connect", "def connects"), "must have a method 'connect'"),
    "taken": (TARGET.replace("mark", "judge"), "has a setting 'judge', which every target takes already"),
    "not derived": (
        TARGET.replace("Capitals(ProviderSettings)", "Capitals"),
        "must derive from agentv.plugins.Provider",
    ),
    "endpoint": (TARGET + "\nCapitals.endpoint = lambda self: 3", "endpoint() must return text or None, returned int"),
    "endpoint raises": (TARGET + "\nCapitals.endpoint = lambda self: 1 / 0", "ZeroDivisionError"),
    "free": (TARGET.replace("bool] = True", "bool] = 1"), "free must be True or False, found 1"),
}


@pytest.mark.parametrize("how", TARGETS)
@pytest.mark.parametrize("text", ["target: capitals:a", "target: {provider: capitals, mark: a}"])
def test_a_broken_target_is_an_error_where_it_is_named(site, tmp_path, how, text):
    code, why = TARGETS[how]
    install(site, {"targets": {"capitals": "acme:Capitals"}}, {"acme.py": code})
    (found,) = said(tmp_path, f"{text}\ntests:\n- {{id: a, input: a, assert: [{{contains: a}}]}}\n")
    assert (found.code, found.severity, found.span and found.span.line) == ("bad-plugin", "error", 1)
    assert why in found.message


SHADOWS = {
    "contains": "'contains' is built in",
    "llm-judge": "'llm-judge' refers to the built-in 'llm-rubric'",
    "is_json": "'is_json' refers to the built-in 'is-json'",
    "meteor": "'meteor' is built in",
    "word-count": "'word-count' is built in",
}


@pytest.mark.parametrize("name", SHADOWS)
def test_a_name_that_is_built_in_loses_and_is_never_imported(site, tmp_path, name):
    install(site, {"assertions": {name: "acme:Twice"}}, {"acme.py": "raise ValueError('imported')\n"})
    (warning,) = [one for one in said(tmp_path, entry("contains")) if one.code == "shadowed-plugin"]
    assert warning.severity == "warning"
    assert warning.span.file.endswith("entry_points.txt")
    assert astuple(warning.span)[1:] == (2, 1, 2, len(name) + 1)
    assert warning.message.endswith(f"of acme-evals 1.2 is not used: {SHADOWS[name]}, which is used instead")
    assert [(one.status, one.code) for one in list_plugins()] == [("shadowed", "shadowed-plugin")]


@pytest.mark.parametrize(
    ("group", "name"),
    [("targets", "echo"), ("targets", "Open_AI"), ("targets", "codex"), ("reports", "html"), ("reports", "junit")],
)
def test_targets_and_reports_lose_likewise(site, group, name):
    install(site, {group: {name.replace("Open_AI", "OPENAI"): "acme:X"}}, {})
    assert [one.code for one in registries().warnings] == ["shadowed-plugin"]


RESERVED = ["not-nice", "Nice", "weight", "type", "п", "c\u043entains", "nice\u200b", "-nice", "a:b"]


@pytest.mark.parametrize("name", RESERVED)
def test_a_name_that_no_plugin_may_have_is_refused(site, tmp_path, name):
    install(site, {"assertions": {name: "acme:Twice"}}, {"acme.py": ASSERTION})
    found = said(tmp_path, entry(name if name != "not-contains" else "not-nice"))
    assert ("bad-plugin", "warning") in [(one.code, one.severity) for one in found]
    assert any(one.severity == "error" for one in found)
    assert [one.status for one in list_plugins()] == ["broken"]


def test_of_two_packages_with_one_name_neither_is_used(site, tmp_path):
    install_acme(site)
    install(site, {"assertions": {"twice": "other:Twice"}}, {"other.py": ASSERTION}, package="other", version="3")
    found = said(tmp_path, entry("twice"))
    shown = sorted((one.code, one.severity) for one in found)
    assert shown == [("bad-plugin", "error"), *[("bad-plugin", "warning")] * 2]
    assert {"is registered by acme-evals 1.2 and other 3, so neither is used" in one.message for one in found} == {True}


def test_of_one_package_that_is_found_twice_the_first_counts(site, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path / "first"))
    install_acme(site)
    install_acme(tmp_path / "first", version="2.0")
    assert [(one.name, one.version) for one in list_plugins()] == [
        ("twice", "2.0"),
        ("capitals", "2.0"),
        ("tap", "2.0"),
    ]
    assert registries().warnings == ()


def test_a_secret_of_the_environment_is_not_in_the_message(site, tmp_path, monkeypatch):
    monkeypatch.setenv("TEAM_API_KEY", "sk-1234567890abcdef")
    install(
        site,
        {"assertions": {"leak": "acme:X"}},
        {"acme.py": "import os\nraise ValueError(os.environ['TEAM_API_KEY'])\n"},
    )
    (found,) = said(tmp_path, entry("leak"))
    assert "ValueError" in found.message
    assert "sk-1234567890abcdef" not in found.message


def test_every_form_of_an_entry_knows_a_plugin(site, tmp_path):
    install_acme(site)
    text = (
        "target: capitals\ntests:\n- id: a\n  input: a\n  assert:\n  - twice: a\n  - {type: twice, value: b}\n"
        "  - not-twice: c\n  - not_twice: d\n  - {type: assert-set, assert: [{twice: e}]}\n  - {include: t}\n"
    )
    template = "assert:\n- twice: f\n"
    path = (
        repository(tmp_path / "p", {"suite.eval.yaml": text, ".agentv/templates/t.yaml": template}) / "suite.eval.yaml"
    )
    suites, found = outcome(path)
    assert found == ()
    (case,) = suites[0].cases
    shown = [one.shown_type for one in case.assertions]
    assert shown == ["twice", "twice", "not-twice", "not-twice", "assert-set", "twice"]
    assert codes_and_lines(tmp_path / "q", text.replace("  - {include: t}\n", "  - twice\n")) == [("bare-type", 11)]
    assert codes_and_lines(
        tmp_path / "r", text.replace("{twice: e}", "{twice: e, vlaue: e}").replace("  - {include: t}\n", "")
    ) == [("unknown-key", 10)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tap = 3", "must be a function that takes an agentv.plugins.RunData"),
        ("class tap: pass", "must be a function that takes an agentv.plugins.RunData"),
        ("def tap(a, b): pass", "can be called with one argument"),
        ("async def tap(run): pass", "must be a plain function, not async"),
    ],
)
def test_a_report_must_be_a_function(site, text, why):
    install(site, {"reports": {"tap": "acme:tap"}}, {"acme.py": text})
    (one,) = list_plugins()
    assert one.status == "broken"
    assert why in (one.problem or "")


RUN = RunData("run", {"run_id": "run"}, {"schema_version": 1}, iter(()))


def text_of(render) -> str:
    report = ReportFormat("tap", render, PluginCode("report format 'tap' of acme-evals 1.2", "acme-evals 1.2", "x"))
    return "".join(render_report(report, replace(RUN, rows=iter([{"test_id": "a"}, {"test_id": "b"}]))))


def later(run):
    yield "a"
    raise ValueError("no")


@pytest.mark.parametrize(
    ("render", "why"),
    [
        (lambda run: 1 / 0, "raised ZeroDivisionError"),
        (lambda run: None, "raised TypeError"),
        (lambda run: b"bytes", "must give text, and gave int"),
        (lambda run: [None, "a"], "must give text, and gave NoneType"),
        (lambda run: ["a", 3], "must give text, and gave int"),
        (later, "raised ValueError: no (test_registries_sources.py:"),
    ],
)
def test_what_is_no_text_names_the_plugin(render, why):
    with pytest.raises(UsageError, match=r"\[bad-plugin\] report format 'tap' of acme-evals 1.2") as raised:
        text_of(render)
    assert why in str(raised.value)
