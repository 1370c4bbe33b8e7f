"""The trend of a suite as the pages ask for it: that of the command."""

from __future__ import annotations

import json

from agentv.app.trend import trend
from agentv.reports.commands.trend import render_trend, trend_json
from doubles.stored_runs import scoring, write_summary
from doubles.viewed_project import add_run, viewed


def test_a_trend_is_what_the_command_says(tmp_path):
    for day in range(4):
        scores = {f"case-{at}": 1.0 if at < 3 + day else 0.0 for at in range(10)}
        suites = [{"name": "refunds", "targets": [{"name": "gpt"}]}]
        path = add_run(tmp_path, f"2026112{day}T140322Z-7f3a", scoring(scores), suites=suites)
        counts = {"passed": 3 + day, "failed": 7 - day, "errored": 0, "skipped": 0, "shown": 0, "total": 10}
        group = {"cases": counts, "pass_rate": (3 + day) / 10, "mean_score": (3 + day) / 10}
        write_summary(path, {"by_suite": {"refunds": group}})
    with viewed(tmp_path) as client:
        assert "trend" in client.get("/api/project").json()["offers"]
        found = client.get("/api/trend?last=3").json()
        told = trend("refunds", 3, "pass rate", tmp_path)
        assert (found["suites"], found["suite"]) == (["refunds"], "refunds")
        assert found["data"] == json.loads(trend_json(told))
        text = render_trend(told, width=80)
        assert all(line in text for line in [*found["findings"], *found["notes"]])
        assert len(found["data"]["runs"]) == 3
        tag = client.get("/api/trend").headers["ETag"]
        assert client.get("/api/trend", headers={"If-None-Match": tag}).status_code == 304
        assert "did you mean" in client.get("/api/trend?suite=refund").json()["problem"]
        for query in ("last=0", "last=x", "measure=rate", "suites=refunds"):
            assert client.get(f"/api/trend?{query}").status_code == 400, query
    with viewed(tmp_path, named=(path,)) as client:
        assert "trend" not in client.get("/api/project").json()["offers"]
    empty = tmp_path / "empty"
    empty.mkdir()
    with viewed(empty) as client:
        assert client.get("/api/trend").json()["problem"] == "no run has ended yet"


def test_each_target_has_a_line_and_can_be_followed_alone(tmp_path):
    def group(passed, **more):
        counts = {"passed": passed, "failed": 10 - passed, "errored": 0, "skipped": 0, "shown": 0, "total": 10}
        return {"cases": counts, "pass_rate": passed / 10, "mean_score": passed / 10, **more}

    for day, targets in enumerate(({"a": 2}, {"a": 3, "b": 8}, {"a": 4, "b": 6}, {"a": 5, "b": 5})):
        path = add_run(tmp_path, f"2026112{day}T140322Z-7f3a", [])
        suites = {"refunds": group(5), **({"other": group(1)} if day == 3 else {})}
        by_target = {name: group(passed, pass_rate_interval=[0.1, 0.9]) for name, passed in targets.items()}
        write_summary(path, {"by_suite": suites, "by_target": by_target})
    with viewed(tmp_path) as client:
        both = client.get("/api/trend?suite=refunds").json()
        assert both["targets"] == [
            {"target": "a", "values": [0.2, 0.3, 0.4, None]},
            {"target": "b", "values": [None, 0.8, 0.6, None]},
        ]
        found = client.get("/api/trend?suite=refunds&target=b").json()
        assert [(one["value"], one["interval"]) for one in found["data"]["runs"]] == [
            (0.8, [0.1, 0.9]),
            (0.6, [0.1, 0.9]),
        ]
        assert any("1 run excluded: had several suites" in note for note in found["notes"])
        assert [one["target"] for one in found["targets"]] == ["a", "b"]
        assert "no run of suite" in client.get("/api/trend?suite=refunds&target=c").json()["problem"]
