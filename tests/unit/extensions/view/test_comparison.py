"""The trend of a suite for the pages equals that of the command."""

import json

from agentv.app.trend import trend
from agentv.reports.trend import render_trend, trend_data
from doubles.stored_runs import scored_trials
from doubles.viewed_project import add_run, viewed


def test_a_trend_is_what_the_command_says(tmp_path):
    for day in range(4):
        scores = {f"case-{at}": 1.0 if at < 3 + day else 0.0 for at in range(10)}
        suites = [{"name": "refunds", "targets": [{"name": "gpt"}]}]
        given = {"suites": suites, "planned": {"cases": 10, "trials": 10}}
        path = add_run(tmp_path, f"2026112{day}T140322Z-7f3a", scored_trials(scores), **given)
    with viewed(tmp_path) as client:
        assert "trend" in client.get("/api/project").json()["offers"]
        found = client.get("/api/trend?last=3").json()
        told = trend("refunds", 3, "pass rate", tmp_path)
        shown = [found[name] for name in ("suites", "suite", "targets", "target")]
        assert shown == [*(["refunds"], "refunds", ["gpt"], "gpt")]
        assert found["data"] == json.loads(json.dumps(trend_data(told)))
        text = render_trend(told, width=80)
        assert all(line in text for line in [*found["findings"], *found["notes"]])
        assert len(found["data"]["runs"]) == 3
        tag = client.get("/api/trend").headers["ETag"]
        assert client.get("/api/trend", headers={"If-None-Match": tag}).status_code == 304
        assert "did you mean" in client.get("/api/trend?suite=refund").json()["problem"]
        assert "did you mean 'gpt'" in client.get("/api/trend?target=gtp").json()["problem"]
        for query in ("last=0", "last=x", "measure=rate", "suites=refunds"):
            assert client.get(f"/api/trend?{query}").status_code == 400, query
    with viewed(tmp_path, named=(path,)) as client:
        assert "trend" not in client.get("/api/project").json()["offers"]
    empty = tmp_path / "empty"
    empty.mkdir()
    with viewed(empty) as client:
        assert client.get("/api/trend").json()["problem"] == "no run has ended yet"


def test_the_first_target_of_the_newest_run_is_shown(tmp_path):
    for day, targets in enumerate(("a", "ba")):
        results = [one for name in targets for one in scored_trials({"x": 1.0}, target=name)]
        suites = [{"name": "refunds", "targets": [{"name": name} for name in targets]}]
        planned = {"cases": len(results), "trials": len(results)}
        add_run(tmp_path, f"2026112{day}T140322Z-7f3a", results, suites=suites, planned=planned)
    with viewed(tmp_path) as client:
        found = client.get("/api/trend").json()
        assert (found["targets"], found["target"]) == (["b", "a"], "b")
        assert len(found["data"]["runs"]) == 1
        assert len(client.get("/api/trend?target=a").json()["data"]["runs"]) == 2
