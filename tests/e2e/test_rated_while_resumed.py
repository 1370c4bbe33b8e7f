"""People rate answers while the run is resumed whose gate labels decide: it ends as if nobody had rated."""

import json
import signal

from agentv.extensions.labels.labelling import open_session
from agentv.extensions.view.state import ViewOptions
from doubles.viewed_project import viewed
from e2e.test_interrupted import when_rows

JUDGE = """
import json, time

def judge(prompt):
    time.sleep(0.2)
    return json.dumps({"score": 1.0, "reason": "Tone."})
"""
TARGETS = "targets: [{name: judge, provider: python, function: judge.py:judge}]\ndefaults: {judge: judge}\n"
CASES = "".join(f"  - {{id: c{number}, input: Please wait {number}}}\n" for number in range(8))
SUITE = f"""\
name: refunds
target: echo
run: {{gate: corrected, min_pass_rate: 0.1, workers: 1}}
default_test: {{assert: [{{name: polite, type: llm-rubric, value: Is polite}}]}}
tests:
{CASES}"""
RUN = "20261121T140322Z-aaaa"


def test_ratings_given_while_a_run_is_resumed_stay_and_change_nothing(project, monkeypatch):
    project.write("judge.py", JUDGE)
    project.write(".agentv/targets.yaml", TARGETS)
    project.write("a.eval.yaml", SUITE)
    project.run("eval", "a.eval.yaml", "--out", "labelled")
    monkeypatch.chdir(project.path)
    session = open_session("labelled", None, 8, 0, "ada")
    for drawn in session.drawn:
        session.label(drawn, "pass")
    out = project.path / ".agentv" / "results" / RUN
    words = ("eval", "a.eval.yaml", "--no-cache", "--out", str(out))
    process = project.start(*words)
    when_rows(out / "index.jsonl", 2)
    process.send_signal(signal.SIGINT)
    assert "interrupted" in process.communicate(timeout=120)[1]
    with viewed(project.path, ViewOptions(label=True, person="ada")) as client:

        def rate_last():
            row = client.get(f"/api/runs/{RUN}/grid").json()["rows"][-1]
            (cell,) = row["cells"]
            said = {name: cell[name] for name in ("key", "output_sha256")}
            rated = client.post(f"/api/runs/{RUN}/ratings", json={**said, "thumb": "down"})
            assert rated.status_code == 200, rated.text
            return row["id"]

        given = {rate_last()}
        process = project.start(*words, "--resume")
        for count in (4, 6):
            when_rows(out / "index.jsonl", count)
            given.add(rate_last())
        stderr = process.communicate(timeout=120)[1]
        assert (process.returncode, "gate passed" in stderr) == (0, True), stderr
        assert {row["id"] for row in client.get(f"/api/runs/{RUN}/grid?show=rated").json()["rows"]} == given
    shown = json.loads(project.run("results", "show", RUN, "--json").stdout)
    assert {one["test_id"] for one in shown["ratings"]} == given
    assert len(given) == 3
