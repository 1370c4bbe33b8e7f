"""Every folder of `tests/cases` is a test: an eval file and the expected result of loading or running it.

`invalid/NAME/expected.txt` is what loading prints; `AGENTV_UPDATE_CASES=1` rewrites it for review.
`valid/NAME/expected.yaml` has the result of each case of the run; only the facts that it lists are compared.
A folder may contain a `request.yaml` with the `path`, options of the command line and environment variables. Folders
in a folder `remote` are repositories on git hosts: `remote/github.com/acme/evals` is the branch `main`, and
`…/evals@v1` another branch. `tags` of the request are put on the last commit of `main`.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import asdict

from agentv import sdk
from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.errors import LoadError, UsageError
from agentv.model.run.trial import TrialResult
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Case
from agentv.model.values.message import prompt_text
from agentv.reports.diagnostics import render_diagnostics
from doubles.git_remotes import Hosts
from needs import needs

CASES = Path(__file__).parent / "cases"
UPDATE = os.environ.get("AGENTV_UPDATE_CASES") == "1"
NOT_LOADED = ("expected.txt", "expected.yaml", "request.yaml", "remote")


NEEDS = {
    "bad-dataset--tests": "pyarrow",
    "bad-value--mounts": "bwrap",
    "network-without-tools": "bwrap",
    "no-api-key-of-litellm": "litellm",
}
"""Folders whose mistakes are only found where a package is installed."""


def folders(kind: str) -> list[Any]:
    names = sorted(path.name for path in (CASES / kind).iterdir())
    return [pytest.param(name, id=name, marks=needs(*filter(None, [NEEDS.get(name)]))) for name in names]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """An empty repository as the working directory."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    with chdir(tmp_path / "project"):
        yield tmp_path / "project"


def opened(kind: str, name: str, project: Path) -> dict[str, Any]:
    """Copy a folder's files into the repository and return its request."""
    folder = CASES / kind / name
    shutil.copytree(folder, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*NOT_LOADED))
    asked = folder / "request.yaml"
    request = yaml.safe_load(asked.read_text(encoding="utf-8")) if asked.is_file() else {}
    remotes = hosted(folder / "remote", project, request.pop("tags", ()))
    first = next((one for one in ("suite.eval.yaml", "suite.jsonl") if (folder / one).is_file()), ".")
    return {"path": first, **request, "env": {**remotes, **request.get("env", {})}}


def hosted(remotes: Path, project: Path, tags: Iterable[str]) -> dict[str, str]:
    """Return the environment in which a folder's remote repositories are on their hosts; {} if it has none."""
    if not remotes.is_dir():
        return {}
    hosts, made = Hosts(project.parent), {}
    for one in sorted(remotes.glob("*/*/*")):
        files = {str(path.relative_to(one)): path.read_bytes() for path in sorted(one.rglob("*")) if path.is_file()}
        name, _, branch = str(one.relative_to(remotes)).partition("@")
        if branch:
            made[name].commit(files, branch=branch)
            continue
        made[name] = hosts.repository(name, files)
        for tag in tags:
            made[name].git("tag", tag)
    return hosts.env


@pytest.mark.parametrize("name", folders("invalid"))
def test_what_is_wrong_is_said_at_its_place(name: str, project: Path) -> None:
    found = said(opened("invalid", name, project), project)
    expected = CASES / "invalid" / name / "expected.txt"
    if UPDATE:
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


def said(request: dict[str, Any], project: Path) -> str:
    """Return what loading prints."""
    path, environment = request.pop("path"), request.pop("env", {})
    request = {key: tuple(value) if isinstance(value, list) else value for key, value in request.items()}
    try:
        found = load(LoadRequest((path,), process_env=environment, **request), registries()).diagnostics
    except LoadError as error:
        found = error.diagnostics
    except UsageError as error:
        return f"error: {error}\n" + (f"  {error.hint}\n" if error.hint else "")
    return render_diagnostics(found, source_of, here=str(project)) + "\n"


def source_of(path: str) -> str | None:
    try:
        return Path(path).read_bytes().decode("utf-8-sig", errors="replace")
    except OSError:
        return None


@pytest.mark.parametrize("name", folders("valid"))
def test_what_a_run_comes_to(name: str, project: Path, tmp_path: Path) -> None:
    request = opened("valid", name, project)
    expected = yaml.safe_load((CASES / "valid" / name / "expected.yaml").read_text(encoding="utf-8"))
    path, environment = request.pop("path"), request.pop("env", {})
    given = {**request, "process_env": {"PATH": os.environ["PATH"], **environment}}
    evaluation = sdk.evaluate(path, out=str(tmp_path / "out"), **given)
    found = {
        "status": evaluation.status.name.lower(),
        "ids": list(dict.fromkeys(named(result.trial.case) for result in in_order(evaluation.results))),
        "warnings": [f"{found.span.line}: {found.code}" for found in evaluation.diagnostics if found.span],
        "suite": suite_facts(evaluation.results[0]),
        "cases": {named(result.trial.case): facts(result) for result in evaluation.results},
    }
    errors = [result.error for result in evaluation.results if result.error]
    errors += [one.grade.error for result in evaluation.results for one in result.scores if one.grade.error]
    assert shown_like(found, expected) == expected, errors


def in_order(results: tuple[TrialResult, ...]) -> list[TrialResult]:
    """Return the results in the order of the file; cases finish in any order."""
    suite = results[0].trial.suite
    places = {named(case): place for place, case in enumerate(suite.cases)}
    return sorted(results, key=lambda result: places[named(result.trial.case)])


def named(case: Case) -> str:
    return case.id if case.prompt_id is None else f"{case.id} with {case.prompt_id}"


def facts(result: TrialResult) -> dict[str, Any]:
    """Return all facts about a case that an `expected.yaml` may contain."""
    trial, case = result.trial, result.trial.case
    return {
        "status": result.status,
        "score": None if result.score is None else round(result.score, 4),
        "error": result.error and result.error.code,
        "output": result.output,
        "thoughts": result.thoughts,
        "finish_reason": result.finish_reason,
        "target": trial.target.name,
        "judge": trial.judge and trial.judge.name,
        "threshold": trial.threshold,
        "timeout_s": trial.timeout_s,
        "repeat": trial.repeat,
        "types": [entry_type(entry) for entry in case.assertions],
        "names": [entry.name for entry in case.assertions],
        "weights": [entry.settings.weight for entry in case.assertions],
        "required": [entry.settings.required for entry in case.assertions],
        "values": [plain(getattr(entry.assertion, "value", None)) for entry in case.assertions],
        "places": [f"{Path(entry.span.file).name}:{entry.span.line}" for entry in case.assertions if entry.span],
        "scored": [score.entry.name for score in result.scores],
        "asked": [{message.role: message.text} for message in result.input],
        "attempts": result.attempts,
        "user_done": result.user_done,
        "notes": list(result.notes),
        "passes": [score.grade.passed for score in result.scores],
        "scores": [round(score.grade.score, 4) for score in result.scores],
        "prompt": prompt_text(case.input),
        "input": [portable(message.as_json()) for message in case.input],
        "expected_output": [portable(message.as_json()) for message in case.expected_output],
        "criteria": case.criteria,
        "description": case.description,
        "vars": plain(case.vars),
        "metadata": plain(case.metadata),
        "tags": list(case.tags),
    }


def entry_type(entry: AssertionEntry) -> Any:
    inner = getattr(entry.assertion, "assert_", None)
    return entry.shown_type if inner is None else {entry.shown_type: [entry_type(child) for child in inner]}


def suite_facts(result: TrialResult) -> dict[str, Any]:
    suite = result.trial.suite
    run = suite.run
    return {
        "name": suite.name,
        "description": suite.description,
        "tags": list(suite.tags),
        "metadata": plain(suite.metadata),
        "targets": [target.name for target in suite.targets],
        "prompts": dict(suite.prompts),
        "run": asdict(run),
        "env": dict(suite.env),
        "files": sorted(os.path.relpath(path) for path in suite.files),
        "secrets": sorted(suite.secrets),
    }


def plain(value: Any) -> Any:
    """Convert tuples to lists, and options to mappings of the given values."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "outcome"):
        return value.outcome
    return getattr(value, "value", getattr(value, "text", value))


def portable(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message without absolute paths."""
    content = message["content"]
    if not isinstance(content, list):
        return message
    return {**message, "content": [{key: one for key, one in block.items() if key != "path"} for block in content]}


def shown_like(found: Any, expected: Any) -> Any:
    """Return the part of the result that the expectation covers."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return {key: shown_like(found.get(key, "MISSING"), value) for key, value in expected.items()}
    return found
