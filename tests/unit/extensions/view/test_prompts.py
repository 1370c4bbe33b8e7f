"""The prompts of a project, as the pages get them."""

import json

import pytest

from agentv.app.prompt_exams import Examiner, listed, shown_prompt
from agentv.app.prompt_library import Library
from agentv.prompts.gates import digests, prompt_sha256
from agentv.reports.prompts import listed_data, prompt_data
from doubles.stored_runs import scored_trials
from doubles.viewed_project import add_run, viewed

RUN = "20261121T140322Z-7f3a"
EXAM = "cases:\n  - name: greets\n    inputs: {name: Ann}\n    assert: [contains: Ann]\n"
BEFORE = {"prompt.md": b"Greet {{ name }}.\n", "meta.yaml#description": b"Greets.", "eval.yml": EXAM.encode()}


@pytest.fixture
def root(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".agentv").mkdir()
    (tmp_path / ".agentv" / "targets.yaml").write_text(
        "targets:\n  - {name: pupil, provider: mock, response: Hello Ann}\ndefaults: {target: pupil}\n"
    )
    directory = tmp_path / "prompts" / "greeter"
    directory.mkdir(parents=True)
    (directory / "prompt.md").write_text("Warmly greet {{ name }}.\n")
    (directory / "meta.yaml").write_text("description: Greets.\nowner: jane\nstatus: ready\n")
    (directory / "eval.yml").write_text(EXAM)
    files = digests(BEFORE)
    row = {"ts": "2026-11-21T14:03:22Z", "all_passed": True, "total": 1, "passed": 1, "run_id": RUN, "model": "pupil"}
    row |= {"files": files, "prompt_sha256": prompt_sha256(files), "failed_cases": []}
    gone = {**row, "ts": "2026-11-22T14:03:22Z", "all_passed": False, "passed": 0, "failed_cases": ["greets"]}
    gone["run_id"] = "gone"
    (directory / ".eval.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(gone)}\n")
    kept = tmp_path / ".agentv" / "exams"
    kept.mkdir()
    (kept / files["prompt.md"]).write_bytes(BEFORE["prompt.md"])
    twin = tmp_path / "prompts" / "twin"
    twin.mkdir()
    (twin / "meta.yaml").write_text("id: greeter\ndescription: Another.\n")
    add_run(tmp_path, RUN, scored_trials({"greets": 1.0}))
    return tmp_path


def test_the_list_is_that_of_the_command(root, client):
    found = client.get("/api/prompts").json()
    library = Library(str(root), {})
    shown = [one["facts"] for one in found["prompts"]]
    assert shown == json.loads(json.dumps([listed_data(listed(one), str(root)) for one in library.all()]))
    shown = [(one["name"], one["words"], one["result"]) for one in found["prompts"]]
    assert shown == [("greeter", "ready (edited)", "0/1"), ("greeter~2", "draft", "never")]
    assert found["totals"] == "2 prompts: 1 ready (1 edited), 1 draft"
    assert "prompts" in client.get("/api/project").json()["offers"]


def test_a_prompt_has_the_facts_of_the_command_its_gates_attempts_and_versions(root, client):
    found = client.get("/api/prompts/greeter").json()
    library = Library(str(root), {})
    prompt = library.read(str(root / "prompts" / "greeter"))
    told = json.loads(json.dumps(prompt_data(shown_prompt(Examiner(library).examine(prompt)), str(root)), default=str))
    attempts = told.pop("sittings")
    assert (found["facts"], found["total_attempts"]) == (told, len(attempts))
    shown = [(one["status"], one["reached"], one["passed"]) for one in found["gates"]]
    assert shown == [("tested", True, False), ("ready", True, False)]
    reasons = [reason["message"] for reason in found["gates"][1]["reasons"]]
    assert any("changed after its exam" in one for one in reasons), reasons
    assert any("did not pass" in one for one in reasons)
    shown = [(one["run_id"], one["has_run"], one["outcome"], one["version"]) for one in found["attempts"]]
    assert shown == [("gone", False, "failed", 1), (RUN, True, "passed", 1)]
    now, before = found["versions"]
    assert (now["current"], now["attempts"], before["current"], before["attempts"]) == (True, 0, False, 2)
    texts = [{one["path"]: found["texts"].get(one["sha256"]) for one in version["texts"]} for version in (now, before)]
    assert (texts[0]["prompt.md"], texts[1]["prompt.md"]) == ("Warmly greet {{ name }}.\n", "Greet {{ name }}.\n")


def test_names_are_no_paths_and_answers_have_tags(root, client):
    (root / "secret").mkdir()
    (root / "secret" / "prompt.md").write_text("secret")
    for name in ("..", "%2e%2e%2fsecret", "secret", "nobody", "a%00b", "prompts%2fgreeter"):
        answer = client.get(f"/api/prompts/{name}")
        assert (answer.status_code, "secret" in answer.text) == (404, False), name
    for path in ("/api/prompts", "/api/prompts/greeter", "/api/project"):
        tag = client.get(path).headers["ETag"]
        assert client.get(path, headers={"If-None-Match": tag}).status_code == 304
    (root / "prompts" / "greeter" / "prompt.md").write_text("Other {{ name }}.\n")
    assert client.get("/api/prompts/greeter", headers={"If-None-Match": tag}).status_code == 200


def test_a_project_without_prompts_offers_none_and_a_broken_exam_is_shown(tmp_path, root, client):
    (root / "prompts" / "greeter" / "eval.yml").write_text("cases: [")
    found = client.get("/api/prompts/greeter").json()
    assert (found["facts"]["files"], [one["current"] for one in found["versions"]]) == ({}, [False])
    assert "cannot be read" in found["gates"][0]["reasons"][-1]["message"]
    bare = tmp_path / "bare"
    (bare / ".git").mkdir(parents=True)
    with viewed(bare) as other:
        assert "prompts" not in other.get("/api/project").json()["offers"]
