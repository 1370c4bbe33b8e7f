"""The web application as its pages call it."""

import fcntl
import webbrowser
from pathlib import Path
from threading import Event
from urllib.parse import quote, urlsplit

import pytest

from agentv.errors import ExitStatus, UsageError
from agentv.extensions.view.api import endpoints
from agentv.extensions.view.app import listening_socket, opened_in_browser, static_files, static_version
from agentv.extensions.view.events import STREAMS
from agentv.extensions.view.state import ViewOptions
from doubles.stored_runs import scored_trials
from doubles.trials import finished, trial
from doubles.viewed_project import add_run, viewed

OLD, NEW = "20261121T140322Z-7f3a", "20261122T140322Z-7f3a"


@pytest.fixture
def root(tmp_path):
    scores = {f"case-{at}": 1.0 for at in range(30)}
    suites = [{"name": "refunds", "targets": [{"name": "gpt"}]}]
    planned = {"cases": 30, "trials": 30}
    add_run(
        tmp_path,
        OLD,
        scored_trials(scores),
        suites=suites,
        planned=planned,
        started="2026-11-21T14:03:22Z",
        name="first",
    )
    worse = {**scores, "case-1": 0.0, "case-2": 0.5}
    del worse["case-3"]
    add_run(tmp_path, NEW, scored_trials(worse), suites=suites, planned=planned)
    return tmp_path


def test_a_page_without_the_token_of_this_start_reads_and_changes_nothing(root):
    options = ViewOptions(edit=True, label=True, run=True, person="ada")
    with viewed(root, options) as client:
        token = client.headers["X-Agentv-Token"]
        found = client.get("/api/project").json()
        shown = (found["edit"], found["label"], found["run"], found["person"], found["locked"])
        assert shown == (*[True] * 3, "ada", False)
        assert client.get(f"/?token={token}").text.count(token) == 0, "nobody else gets it from a page"
        for given in ("", "wrong", token[:-1]):
            client.headers["X-Agentv-Token"] = given
            found = client.get("/api/project").json()
            assert (found["edit"], found["label"], found["run"], found["person"]) == (False, False, False, "")
            assert found["locked"]
            assert client.get("/api/runs").json()["total"] == 2
            asked = [
                client.get(f"/api/labels/queue?run={NEW}"),
                client.get("/api/rerun"),
                client.post(f"/api/runs/{OLD}/name", json={"name": "x"}),
                client.delete(f"/api/runs/{OLD}"),
            ]
            for answer in asked:
                assert (answer.status_code, answer.json()["error"]["code"]) == (403, "wrong-token")
                assert "agentv view' printed" in answer.json()["error"]["message"]
                assert token not in answer.text


def damaged(root):
    """Runs with one defect each."""
    ways = {
        "no-record": lambda run: (run / "run.json").unlink(),
        "no-json": lambda run: (run / "run.json").write_text("{"),
        "link": lambda run: ((run / "index.jsonl").unlink(), (run / "index.jsonl").symlink_to("/etc/passwd")),
        "directory": lambda run: ((run / "index.jsonl").unlink(), (run / "index.jsonl").mkdir()),
        "no-row": lambda run: (run / "index.jsonl").write_text('{"test_id": "a"}\n'),
        "binary": lambda run: (run / "index.jsonl").write_bytes(b"\xff\n"),
        "no-sums": lambda run: (run / "journal.jsonl").write_text(""),
        "totals": lambda run: (run / "summary.json").write_text('{"run_id": "totals", "trials": {"passed": 99}}'),
    }
    for name, damage in ways.items():
        damage(add_run(root, name, scored_trials({"a": 1.0, "b": 0.0}), suites=[{"name": "refunds"}]))
    return list(ways)


def test_no_answer_says_where_files_of_this_machine_lie(root):
    asked = [f"/api/{one}" for one in ("runs", "runs/none", "judges", "trend?suite=refunds", "prompts", "prompts/none")]
    runs = damaged(root)
    for run in runs:
        asked += [f"/api/runs/{run}{path}" for path in ("", "/cases", "/trials/1", "/cases/x/y/z", "/events")]
        asked += [f"/api/compare?run={OLD}&run={run}", f"/api/compare/moved?run={OLD}&run={run}"]
        asked += [f"/api/judges?run={run}", f"/api/labels/queue?run={run}"]
    changes = [("POST", "/name"), ("POST", "/trials/1/run"), ("POST", "/run"), ("DELETE", "")]
    with viewed(root, ViewOptions(edit=True, label=True, run=True)) as client:
        told = {path: client.get(path).text for path in asked if not path.endswith("/events")}
        for method, path in changes:
            body = {"name": "x"} if path == "/name" else None
            for run in runs:
                told[f"{method} {path} {run}"] = client.request(method, f"/api/runs/{run}{path}", json=body).text
    assert "cannot" in "".join(told.values())
    assert [(path, text) for path, text in told.items() if str(root) in text] == []


def test_runs_are_listed_newest_first_with_what_they_came_to(client):
    found = client.get("/api/runs").json()
    assert [one["run_id"] for one in found["runs"]] == [NEW, OLD]
    new, old = found["runs"]
    assert (old["name"], old["state"], old["cases"]["passed"], old["pass_rate"]) == ("first", "finished", 30, 1.0)
    assert (new["state"], new["done"], new["planned"], new["total"]) == ("interrupted", 29, 30, 30)
    assert found["names"] == {"tags": [], "suites": ["refunds"], "targets": ["gpt"]}
    assert [one["run_id"] for one in client.get("/api/runs?q=FIRST").json()["runs"]] == [OLD]
    assert [one["run_id"] for one in client.get("/api/runs?sort=pass_rate&order=asc").json()["runs"]] == [NEW, OLD]
    page = client.get("/api/runs?limit=1").json()
    assert (page["next"], page["total"]) == (NEW, 2)
    assert [one["run_id"] for one in client.get(f"/api/runs?limit=1&after={page['next']}").json()["runs"]] == [OLD]


def test_an_unreadable_run_is_listed_with_its_problem_and_the_rest_works(client, root):
    results = root / ".agentv" / "results"
    (results / "20261123T000000Z-0001").mkdir()
    (results / "20261123T000000Z-0001" / "run.json").write_text("{")
    add_run(root, "20261123T000000Z-0002", [])
    (results / "20261123T000000Z-0002" / "index.jsonl").write_text('{"test_id": "a"}\n')
    (results / "20261123T000000Z-0002" / "summary.json").unlink(missing_ok=True)
    add_run(root, "20261123T000000Z-0003", [])
    (results / "20261123T000000Z-0003" / "run.json").unlink()
    (results / "20261123T000000Z-0003" / "run.json").symlink_to("/etc/passwd")
    (results / "20261123T000000Z-0004").symlink_to(results / OLD)
    runs = {one["run_id"]: one for one in client.get("/api/runs").json()["runs"]}
    shown = {name for name, one in runs.items() if one["state"] == "unreadable"}
    assert shown == {f"20261123T000000Z-000{number}" for number in (1, 2, 3)}
    assert all(one["problem"] for one in runs.values() if one["state"] == "unreadable")
    assert "20261123T000000Z-0004" not in runs
    answer = client.get("/api/runs/20261123T000000Z-0003/cases")
    assert (answer.status_code, answer.json()["error"]["code"], "root:" in answer.text) == (422, "unreadable", False)
    assert client.get(f"/api/runs/{OLD}").status_code == 200


def test_a_run_has_its_facts_failures_and_rates(client):
    found = client.get(f"/api/runs/{NEW}").json()
    assert (found["state"], found["indexed"], found["problem"]) == ("interrupted", 1.0, "")
    assert found["facts"]["summary"]["cases"]["failed"] == 2
    assert found["counts"]["rows"] == {"passed": 27, "failed": 2, "errored": 0, "skipped": 0, "shown": 0}
    (listed,) = (one for one in client.get("/api/runs").json()["runs"] if one["run_id"] == NEW)
    assert found["counts"]["cases"] == listed["cases"], "the list and the page say the same, also of what did not run"
    assert listed["cases"]["skipped"] == 1
    assert found["rates"]["run"]["rate"] == found["facts"]["summary"]["pass_rate"]
    assert found["rates"]["run"]["interval"] == pytest.approx(found["facts"]["summary"]["pass_rate_interval"])
    members = [one for group in found["failures"]["groups"] for one in group["members"]]
    assert {one["test_id"] for one in members} == {"case-1", "case-2"}
    for member in members:
        case = client.get(f"/api/runs/{NEW}/cases/{quote(member['route'], safe='')}").json()
        assert case["id"] == member["test_id"]
        assert member["trial"] in [one["trial"] for one in case["trials"]]
        whole = client.get(f"/api/runs/{NEW}/trials/{member['trial']}").json()
        assert whole["output"].startswith(member["test_id"])
        assert whole["rerun"].startswith("agentv eval evals/refund.eval.yaml --filter case-")


def test_ids_are_names_and_no_paths(client, root):
    (root / "secret").write_text("secret")
    for run in ("..%2f..", "%2e%2e%2f%2e%2e%2fsecret", "a%00b", "x" * 5000, "%ff", quote("<b>")):
        for path in ("", "/cases", "/events"):
            answer = client.get(f"/api/runs/{run}{path}")
            assert (answer.status_code, "secret" in answer.text.replace("%", "")) == (404, False), run
    for trial_name in ("-1", "0", "31", "9" * 30, "1.0", "١"):
        assert client.get(f"/api/runs/{OLD}/trials/{trial_name}").status_code == 404, trial_name
    for path in ("../page.py", "..%2f..%2fpage.py", "%2e%2e/page.py", "/etc/passwd", "style.css%00.js"):
        assert client.get(f"/static/{static_version()}/{path}").status_code == 404, path


def test_static_files_may_be_kept_and_the_document_may_not(client):
    name, content = next(iter(static_files().items()))
    answer = client.get(f"/static/{static_version()}/{name}")
    assert (answer.content, "immutable" in answer.headers["Cache-Control"]) == (content, True)
    assert client.get(f"/static/other/{name}").status_code == 404
    tag = answer.headers["ETag"]
    assert client.get(f"/static/{static_version()}/{name}", headers={"If-None-Match": tag}).status_code == 304
    plain = client.get(f"/static/{static_version()}/{name}", headers={"Accept-Encoding": "br, gzip;q=0"})
    assert (plain.content, "Content-Encoding" in plain.headers) == (content, False)
    assert (answer.headers["Content-Encoding"], plain.headers["ETag"] == tag) == ("gzip", False)
    document = client.get("/")
    assert document.headers["Content-Type"] == "text/html; charset=utf-8"
    assert f'src="static/{static_version()}/app.js"' in document.text
    assert document.headers["Cache-Control"] == "no-store"


def test_an_answer_is_sent_again_only_if_something_changed(client):
    for path in (f"/api/runs/{OLD}/cases", f"/api/runs/{OLD}", "/api/runs", f"/api/compare?run={OLD}&run={NEW}"):
        tag = client.get(path).headers["ETag"]
        assert tag.startswith('W/"')
        assert client.get(path, headers={"If-None-Match": f'"x", {tag}'}).status_code == 304
        assert client.get(path, headers={"If-None-Match": 'W/"x"'}).status_code == 200
    cases = f"/api/runs/{OLD}/cases"
    assert client.get(f"{cases}?q=x").headers["ETag"] != client.get(cases).headers["ETag"]


def test_two_runs_are_compared_verdict_first(client):
    found = client.get(f"/api/compare?run={OLD}&run={NEW}").json()
    assert found["base"]["run_id"] == OLD
    assert found["comparison"]["verdict"]
    assert (found["counts"]["worse"], found["counts"]["gone"], found["counts"]["same"]) == (2, 1, 27)
    shown = [(one["change"], one["case"]["id"], one["base"]["status"]) for one in found["moved"]]
    assert shown == [("worse", "case-1", "passed"), ("worse", "case-2", "passed")]
    assert [one["id"] for one in found["gone"]] == ["case-3"]
    same = client.get(f"/api/compare?run={OLD}&run={OLD}").json()
    assert (same["moved"], same["comparison"]["finding"] != "") == ([], True)


def test_cases_that_moved_in_any_of_several_runs_stand_together(client, root):
    third, elsewhere = "20261123T140322Z-7f3a", "20261124T140322Z-7f3a"
    scores = {f"case-{at}": 1.0 for at in range(30) if at != 2}
    add_run(root, third, scored_trials({**scores, "case-1": 0.5, "case-3": 0.0}))
    add_run(root, elsewhere, [finished(trial=trial("other", suite="elsewhere"))])
    found = client.get(f"/api/compare/moved?run={NEW}&run={OLD}&run={third}&run={elsewhere}").json()
    assert [one["comparison"]["verdict"] != "" for one in found["comparisons"]] == [True, True, False]
    shown = [(one["direction"], one["base"]["id"]) for one in found["moved"]]
    assert shown == [("better", "case-1"), ("better", "case-2")]
    cells = [
        [(each["change"], each["case"] and each["case"]["score"]) for each in one["runs"]] for one in found["moved"]
    ]
    assert cells == [
        [("better", 1.0), ("higher", 0.5), ("left out", None)],
        [("better", 1.0), ("gone", None), ("left out", None)],
    ]
    back = client.get(f"/api/compare/moved?run={OLD}&run={NEW}&run={third}").json()
    shown = [(one["direction"], one["base"]["id"]) for one in back["moved"]]
    assert shown == [("worse", "case-1"), ("worse", "case-3"), ("worse", "case-2")]
    assert (back["worse"], back["better"]) == (3, 0)
    for runs in ([], [OLD], [OLD] * 10):
        asked = "&".join(f"run={one}" for one in runs)
        assert client.get(f"/api/compare/moved?{asked}").status_code == 400


def test_what_is_asked_wrongly_is_told(client):
    for path, status, code in (
        ("/api/nothing", 404, "no-such-address"),
        ("/api/runs/nothing", 404, "no-such-run"),
        (f"/api/runs/{OLD}/cases/nothing", 404, "no-such-case"),
        ("/api/runs?limit=0", 400, "bad-request"),
        ("/api/runs?state=bogus", 400, "bad-request"),
        ("/api/runs?order=up", 400, "bad-request"),
        ("/api/runs?limit=x", 400, "bad-request"),
        ("/api/runs?nothing=1", 400, "bad-request"),
        ("/api/runs?q=a&q=b", 400, "bad-request"),
        (f"/api/runs/{OLD}/cases?order=up", 400, "bad-request"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), path
        assert answer.json()["error"]["message"]
    assert client.post("/api/runs").json()["error"]["code"] == "read-only"


def test_a_run_that_is_deleted_while_it_is_open_is_told(client, root):
    assert client.get(f"/api/runs/{OLD}/cases").json()["total"] == 30
    (root / ".agentv" / "results" / OLD).rename(root / "gone")  # at once, because a new index may be written there
    for path in ("", "/cases", "/cases/x", "/trials/1"):
        answer = client.get(f"/api/runs/{OLD}{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no-such-run")
    assert [one["run_id"] for one in client.get("/api/runs").json()["runs"]] == [NEW]


def test_runs_are_named_and_deleted_only_where_that_is_allowed(root):
    with viewed(root) as client:
        for asked in (client.delete(f"/api/runs/{OLD}"), client.post(f"/api/runs/{OLD}/name", json={"name": "x"})):
            assert (asked.status_code, asked.json()["error"]["code"]) == (403, "read-only")
    with viewed(root, ViewOptions(edit=True)) as client:
        shown = client.post(f"/api/runs/{OLD}/name", json={"name": " before\n<b>the</b> change "}).json()
        assert shown == {"run_id": OLD, "name": "before <b>the</b> change"}
        assert client.get("/api/runs?q=change").json()["runs"][0]["run_id"] == OLD
        for wrong in ({"name": "x" * 201}, {"name": 1}, {}, {"name": "x", "other": 1}, {"name": "x\x00\u202e"}):
            assert client.post(f"/api/runs/{OLD}/name", json=wrong).status_code in (400, 422)
        assert client.delete("/api/runs/nothing").status_code == 404
        assert client.get(f"/api/runs/{OLD}/cases").status_code == 200
        with (root / ".agentv" / "results" / OLD / "journal.jsonl").open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert "still being written" in client.delete(f"/api/runs/{OLD}").json()["error"]["message"]
            assert client.post(f"/api/runs/{OLD}/name", json={"name": "x"}).status_code == 422
        assert client.delete(f"/api/runs/{OLD}").json() == {"run_id": OLD, "left": []}
        assert not (root / ".agentv" / "results" / OLD).exists()
        assert [one["run_id"] for one in client.get("/api/runs").json()["runs"]] == [NEW]


def test_the_description_has_every_route_and_its_types(client):
    found = client.get("/api/openapi.json").json()
    described = {(path, method) for path, one in found["paths"].items() for method in one}
    assert described == {(one.path, one.method.lower()) for one in endpoints()} | {(one.path, "get") for one in STREAMS}
    schemas = found["components"]["schemas"]
    for path, method in described:
        operation = found["paths"][path][method]
        assert operation["summary"].endswith(".")
        for parameter in operation["parameters"]:
            assert parameter["in"] == "path" or parameter["schema"], (path, parameter)
    references = {one.split('"')[0] for one in client.get("/api/openapi.json").text.split("#/components/schemas/")[1:]}
    assert references <= schemas.keys()
    case = schemas["ViewedCase"]["properties"]
    answer = client.get(f"/api/runs/{OLD}/cases?limit=1").json()
    assert answer["cases"][0].keys() == case.keys()
    assert answer.keys() == schemas["CasePage"]["properties"].keys()


def test_a_port_in_use_is_told_and_without_one_the_next_is_taken():
    with listening_socket(None) as first, listening_socket(None) as second:
        assert first.getsockname()[0] == "127.0.0.1"
        assert first.getsockname()[1] != second.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {first.getsockname()[1]}: Address already in use") as refused:
            listening_socket(first.getsockname()[1])
        assert "--port" in (refused.value.hint or "")
        assert refused.value.status == ExitStatus.WRONG


@pytest.fixture
def opened(monkeypatch):
    """Addresses passed to the browser, and a flag that one is available."""
    found, ready = [], Event()

    class Recorded(webbrowser.BaseBrowser):
        def open(self, url, new=0, autoraise=True):
            found.append(url)
            ready.set()
            return True

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "_tryorder", ["recorded"])
    monkeypatch.setattr(webbrowser, "_browsers", {"recorded": [None, Recorded()]})
    return found, ready


def test_the_command_line_of_a_browser_names_no_token(opened):
    found, ready = opened
    address = "http://127.0.0.1:4280/?token=secret"
    with opened_in_browser(address, secret=True):
        assert ready.wait(10)
        page = Path(urlsplit(found[0]).path)
        assert "secret" not in found[0]
        assert f'content="0;url={address}"' in page.read_text()
        assert page.parent.stat().st_mode & 0o077 == 0
    assert not page.exists()


def test_an_address_without_a_token_is_opened_as_it_is(opened):
    found, ready = opened
    with opened_in_browser("http://127.0.0.1:4280/", secret=False):
        assert ready.wait(10)
    assert found == ["http://127.0.0.1:4280/"]
