"""Test the scripts of the GitHub Action and the release workflow as the runner starts them, against a local GitHub."""

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import post_comment
import pytest
import run_eval
import yaml

from agentv.version import __version__
from doubles.http_server import HttpServer, Reply, Request

ROOT = Path(__file__).parents[2]
HOSTILE = '### agentv\n\n`::set-env name=A::b` ${{ secrets.KEY }} "; rm -rf / #\n--> <!-- ü'


class GitHub(HttpServer):
    """A fake of GitHub's REST API for the comments of pull request 7 of acme/evals."""

    def __init__(self) -> None:
        super().__init__(self.respond)
        self.comments: list[dict[str, Any]] = []
        self.status = 200
        self.broken: tuple[int, bytes] | None = None  # Content-Length and body to send instead

    @property
    def calls(self) -> list[str]:
        return [f"{one.method} {urlsplit(one.path).path}" for one in self.requests]

    def add(self, body: str, kind: str) -> dict[str, Any]:
        self.comments.append({"id": 100 + len(self.comments), "body": body, "user": {"type": kind}})
        return self.comments[-1]

    def said(self, request: Request) -> Any:
        address = urlsplit(request.path)
        asked = parse_qs(address.query)
        match request.method, address.path.removeprefix("/repos/acme/evals/issues/").split("/"):
            case "GET", ["7", "comments"]:
                size, page = int(asked["per_page"][0]), int(asked["page"][0])
                return self.comments[size * (page - 1) : size * page]
            case "POST", ["7", "comments"]:
                return self.add(json.loads(request.body)["body"], "Bot")
            case "PATCH", ["comments", number]:
                found = next(one for one in self.comments if one["id"] == int(number))
                found["body"] = json.loads(request.body)["body"]
                return found
        raise AssertionError(request.path)

    def respond(self, request: Request) -> Reply:
        answer = json.dumps(self.said(request)).encode()
        length, answer = self.broken or (len(answer), answer)
        return self.status if length else 0, {"Content-Length": str(length)}, [answer]


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub() as server:
        yield server


def environment(github: GitHub, folder: Path, event: dict[str, Any], report: str = HOSTILE) -> dict[str, str]:
    (folder / "event.json").write_text(json.dumps(event))
    (folder / "report.md").write_text(report)
    return {
        "GITHUB_API_URL": github.url,
        "GITHUB_REPOSITORY": "acme/evals",
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "AGENTV_ACTION_REPORT": str(folder / "report.md"),
        "AGENTV_ACTION_COMMENT_ID": "evals -->/nightly",
        "AGENTV_ACTION_TOKEN": "secret",
    }


PULL_REQUEST = {"pull_request": {"number": 7}}


def test_the_comment_is_created_then_updated(github: GitHub, tmp_path: Path) -> None:
    marker = post_comment.marker_of("evals -->/nightly")
    for number in range(150):  # more than one page; some look like the Action's comments but are not
        github.add(f"{marker}\nmine {number}" if number % 50 == 0 else f"see {marker}", "User")
    before = [dict(one) for one in github.comments]

    assert post_comment.main(environment(github, tmp_path, PULL_REQUEST)) == 0
    assert github.calls[-1] == "POST /repos/acme/evals/issues/7/comments"
    assert github.comments[-1]["body"] == f"{marker}\n{HOSTILE}"
    assert marker.count("-->") == 1
    names = ("日本", "中国", "gpt-5-mini", "gpt_5/mini", "a", "a ")
    assert len({post_comment.marker_of(name) for name in names}) == len(names)

    assert post_comment.main(environment(github, tmp_path, PULL_REQUEST, "### now it passes")) == 0
    assert github.calls[-1] == "PATCH /repos/acme/evals/issues/comments/250"
    assert github.comments == [*before, {"id": 250, "body": f"{marker}\n### now it passes", "user": {"type": "Bot"}}]
    assert {one.headers["Authorization"] for one in github.requests} == {"Bearer secret"}


def test_a_comment_that_cannot_be_written_is_a_warning(github: GitHub, tmp_path: Path, capsys) -> None:
    github.status = 403
    assert post_comment.main(environment(github, tmp_path, PULL_REQUEST)) == 0
    assert capsys.readouterr().out.startswith("::warning title=agentv::no comment: the token may not write comments")
    github.status = 500
    assert post_comment.main(environment(github, tmp_path, PULL_REQUEST)) == 0
    assert capsys.readouterr().out == "::warning title=agentv::no comment: GitHub responded with 500\n"
    github.requests.clear()
    assert post_comment.main(environment(github, tmp_path, {"ref": "refs/heads/main"})) == 0
    assert github.calls == []


def test_a_response_that_is_none_is_a_warning(github: GitHub, tmp_path: Path, capsys) -> None:
    env = environment(github, tmp_path, PULL_REQUEST)
    for body in (b"<html>down for maintenance</html>", b'{"message": "moved"}', b'["a"]', b"\xff", b""):
        for length in {len(body), 1000}:
            github.broken = (length, body)
            assert post_comment.main(env) == 0, body
            assert capsys.readouterr().out.startswith("::warning title=agentv::no comment: "), (length, body)
    github.broken = None
    github.comments += [
        {"id": 1, "body": None, "user": None},
        {"id": 2, "body": post_comment.marker_of("evals -->/nightly"), "user": None},
    ]
    assert post_comment.main(env) == 0
    assert (github.calls[-1], capsys.readouterr().out) == ("POST /repos/acme/evals/issues/7/comments", "")


def test_inputs_become_arguments(tmp_path: Path) -> None:
    env = {
        "AGENTV_ACTION_PATHS": "evals 'more evals'",
        "AGENTV_ACTION_TARGETS": "openai:gpt-5-mini\n  cli:./agent {PROMPT} $(id)\n",
        "AGENTV_ACTION_JUDGE": " echo ",
        "AGENTV_ACTION_ARGUMENTS": "--repeat 3 --filter 'a b'",
        "AGENTV_ACTION_CACHE": "true",
    }
    found = run_eval.arguments(env, tmp_path)
    assert found[:3] == ["eval", "evals", "more evals"]
    assert found[3:7] == ["--target", "openai:gpt-5-mini", "--target", "cli:./agent {PROMPT} $(id)"]
    assert found[7:10] == ["--judge", "echo", "--cache"]
    assert found[-4:] == ["--repeat", "3", "--filter", "a b"]
    assert f"{tmp_path}/report.md" in found
    assert run_eval.arguments({}, tmp_path)[1] == "--format"


def test_the_runner_gets_status_reports_and_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    suite = tmp_path / "a.eval.yaml"
    env = {
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agentv.py").write_text("")  # a shadowing module that would pass everything

    monkeypatch.setenv("GITHUB_ENV", str(tmp_path / "env"))
    code = 'os.system("echo ::error::PWN && echo ::stop-commands::x") or "GITHUB_ENV" in os.environ'
    code = f'(os := __import__("os")) and {code}'
    suite.write_text(f"target: mock:a\ntests:\n- {{id: a, input: x, assert: [python: '{code}']}}\n")
    assert run_eval.main({**env, "AGENTV_ACTION_PATHS": "a.eval.yaml"}) == 1
    out, err = capfd.readouterr()
    assert "::error file=a.eval.yaml,line=3" in out
    assert err.splitlines()[:2] == [r":\u003aerror::PWN", r":\u003astop-commands::x"]
    output = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert output["exit-status"] == "1"
    assert {one.name for one in Path(output["directory"]).iterdir()} == {"report.html", "report.md", "junit.xml"}
    assert (tmp_path / "summary").read_text().startswith("### agentv: 1 case: 0 passed, 1 failed")

    suite.write_text("tests: 3\n")
    (tmp_path / "summary").unlink()
    assert run_eval.main({**env, "AGENTV_ACTION_PATHS": "a.eval.yaml"}) == 2
    assert (tmp_path / "summary").read_text() == run_eval.NOTHING_RAN.format(status=2)

    (tmp_path / "summary").unlink()
    assert run_eval.main({**env, "AGENTV_ACTION_ARGUMENTS": "--help"}) == 3
    assert (tmp_path / "summary").read_text() == run_eval.NOTHING_RAN.format(status=3)

    for name in ("paths", "arguments"):
        (tmp_path / "summary").unlink()
        capfd.readouterr()
        assert run_eval.main({**env, f"AGENTV_ACTION_{name.upper()}": "evals 'more"}) == 2
        assert capfd.readouterr().out == f"::error title=agentv::input `{name}`: no closing quotation\n"
        assert (tmp_path / "summary").read_text() == run_eval.NOTHING_RAN.format(status=2)


def action() -> Any:
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def workflow() -> Any:
    return yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))


def steps() -> list[dict[str, Any]]:
    return [*action()["runs"]["steps"], *(step for job in workflow()["jobs"].values() for step in job["steps"])]


def test_no_script_contains_an_expression() -> None:
    """The runner pastes an expression's value into the script, so a hostile value would run as code."""
    scripts = [step["run"] for step in steps() if "run" in step]
    assert len(scripts) > 5
    assert [script for script in scripts if "${{" in script] == []


def test_inputs_are_passed_and_documented() -> None:
    page = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    found = action()
    assert [name for name in found["inputs"] if f"inputs.{name}" not in text] == []
    assert [name for name in {**found["inputs"], **found["outputs"]} if f"`{name}`" not in page] == []
    used = set(re.findall(r"\binputs\.([\w-]+)", text))
    assert used == set(found["inputs"])
    assert [name for name in re.findall(r"\$GITHUB_ACTION_PATH/(\S+?)\"", text) if not (ROOT / name).is_file()] == []
    read = set(re.findall(r"AGENTV_ACTION_\w+", "".join(p.read_text() for p in sorted((ROOT / "action").glob("*.py")))))
    assert read == {name for step in found["runs"]["steps"] for name in step.get("env", {}) if "ACTION" in name}


def test_what_is_installed_has_a_version() -> None:
    (install,) = [step["run"] for step in action()["runs"]["steps"] if step.get("name") == "Install agentv"]
    script = f'python() {{ printf "%s\\n" "$@"; }}\n{install}'
    for version, constrained in (("3.12", ["--constraint", "/a b/constraints.txt"]), ("", [])):
        env = {"PATH": os.environ["PATH"], "GITHUB_ACTION_PATH": "/a b", "PYTHON_VERSION": version, "EXTRAS": "metrics"}
        words = subprocess.run(["bash", "-e", "-c", script], env=env, capture_output=True, check=True, text=True).stdout
        assert words.splitlines()[5:] == [*constrained, "/a b[metrics]"]
    jobs = workflow()["jobs"]
    build = "".join(step.get("run", "") for step in jobs["build"]["steps"])
    (packages,) = re.findall(r"pip install --quiet ([a-z].*)", build)
    assert all(re.fullmatch(r"\w+==[\d.]+", one) for one in packages.split()), packages
    others = [step["uses"] for step in steps() if not step.get("uses", "actions/").startswith("actions/")]
    assert others
    assert [one for one in others if not re.search(r"@[0-9a-f]{40}$", one)] == []


def test_hooks_run_at_every_commit() -> None:
    """Without `always_run`, pre-commit skips a hook when no file is left to check, as after a deletion."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["always_run"], hook["pass_filenames"]) == (True, False)
    assert not {"files", "types", "types_or", "exclude"} & set(hook)


def test_only_the_last_job_can_publish_and_only_a_tag_of_the_version() -> None:
    jobs = workflow()["jobs"]
    rights = {name: job["permissions"] for name, job in jobs.items()}
    reading = {name: {"contents": "read"} for name in ("build", "wheel", "test")}
    assert rights == {**reading, "publish": {"id-token": "write"}}
    assert (jobs["wheel"]["needs"], jobs["publish"]["needs"]) == ("build", ["wheel", "test"])
    (script,) = [step["run"] for step in jobs["build"]["steps"] if step.get("name") == "The tag is the version"]
    for tag, status in ((f"v{__version__}", 0), ("v99.0.0", 1), (__version__, 1)):
        env = {"PATH": os.environ["PATH"], "GITHUB_REF_NAME": tag}
        ended = subprocess.run(["bash", "-e", "-c", script], cwd=ROOT, env=env, capture_output=True, check=False)
        assert (tag, ended.returncode) == (tag, status)


def test_the_wheel_is_checked_with_each_python_that_the_package_names() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    named = [one.rpartition(" ")[2] for one in classifiers if "Python :: 3." in one]
    assert workflow()["jobs"]["wheel"]["strategy"]["matrix"]["python"] == named


def test_the_image_is_built_from_files_that_its_context_has() -> None:
    kept = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert sorted(" ".join(copied).split()) == sorted(kept)
    assert [name for name in kept if not (ROOT / name).exists()] == []
