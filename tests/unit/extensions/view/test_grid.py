"""The grid of a run: every answer by case and column, filtered, sorted, and next to another run's."""

import pytest

from doubles.trials import finished, trial
from doubles.viewed_project import add_run, viewed
from doubles.waiting import until

BASE, RUN = "20261120T140322Z-aaaa", "20261121T140322Z-bbbb"
RAN_WITH = {"prompts": [{"id": "brief"}, {"id": "polite"}], "targets": [{"name": "small"}, {"name": "large"}]}
RECORD = {"suites": [{"name": "refunds", "path": "evals/refund.eval.yaml", **RAN_WITH}]}
COLUMNS = [("brief", "small"), ("brief", "large"), ("polite", "small"), ("polite", "large")]
STATUSES = {  # by case, in the order of the columns; rows are written from the last case to the first
    "lamp": ("passed", "passed", "passed", "passed"),
    "bike": ("failed", "passed", "passed", "failed"),
    "tent": ("errored", "failed", "failed", "failed"),
    "sofa": ("failed", "failed", "failed", "failed"),
}


def results(statuses):
    cases = list(statuses)
    for case in reversed(cases):
        for (prompt, target), status in zip(reversed(COLUMNS), reversed(statuses[case]), strict=True):
            given = {"prompt_id": prompt, "target": target, "position": cases.index(case) + 1}
            given |= {"metadata": {"of": [case]}, "tags": ("big",) if case == "sofa" else ()}
            asked = trial(case, vars={"thing": case.title(), "count": 2, "long": "x" * 2500}, **given)
            output = None if status == "errored" else f"{case} {prompt} {target} {status}"
            yield finished(status, trial=asked, output=output, cost_usd=0.25)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    root = tmp_path_factory.mktemp("grid")
    before = {**STATUSES, "lamp": ("passed", "failed", "passed", "passed")}
    add_run(root, BASE, results(before), **RECORD)
    add_run(root, RUN, results(STATUSES), **RECORD)
    with viewed(root) as found:
        for run in (BASE, RUN):  # on a busy machine the first response covers only some rows
            until(lambda run=run: found.get(f"/api/runs/{run}/grid").json()["indexed"] == 1)
        yield found


def page(client, query=""):
    answer = client.get(f"/api/runs/{RUN}/grid?{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_row_is_a_case_and_a_cell_an_answer(client):
    found = page(client)
    assert [(one["prompt"], one["target"]) for one in found["columns"]] == COLUMNS
    assert [row["id"] for row in found["rows"]] == list(STATUSES), "in the order of the file"
    assert found["counts"] == {"passed": 1, "failed": 2, "errored": 1, "skipped": 0, "shown": 0}
    assert (found["total"], found["different"], found["changed"]) == (4, 2, None)
    bike = found["rows"][1]
    assert [cell["status"] for cell in bike["cells"]] == list(STATUSES["bike"])
    assert bike["vars"]["thing"] == {"text": "Bike", "length": 4}
    assert bike["vars"]["metadata.of"]["text"] == '["bike"]'
    assert bike["vars"]["count"]["text"] == "2"
    assert (len(bike["vars"]["long"]["text"]), bike["input"]["text"]) == (2000, "May I return it?")
    first, second, *_ = bike["cells"]
    assert (first["answer"]["text"], first["why"]) == ("bike brief small failed", "output lacks '30 days'")
    shown = (second["why"], second["cost"], second["score"], second["samples"], second["passed"])
    assert shown == ("", 0.25, 1.0, 1, 1)
    assert found["rows"][2]["cells"][0]["answer"] is None
    for row in found["rows"]:
        for cell in row["cells"]:
            case = client.get(f"/api/runs/{RUN}/cases/{cell['route']}").json()
            shown = (case["id"], case["status"], case["trials"][0]["trial"])
            assert shown == (row["id"], cell["status"], cell["trial"])


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("show=different", ["bike", "tent"]),
        ("status=failed", ["bike", "sofa"]),
        ("status=errored passed", ["lamp", "tent"]),
        ("target=large", ["lamp", "bike", "tent", "sofa"]),
        ("target=large&show=different", ["bike"]),
        ("target=large&prompt=brief&status=passed", ["lamp", "bike"]),
        ("tag=big", ["sofa"]),
        ("q=polite tent", ["tent"]),
        ("where=thing=K", ["bike"]),
        ("where=count=2&where=metadata.of=t", ["tent"]),
        ("where=count=2&status=failed", ["bike", "sofa"]),
        ("id=sofa&id=lamp", ["lamp", "sofa"]),
        ("order=name&from=1&limit=2", ["lamp", "sofa"]),
        (f"against={BASE}&show=changed", ["lamp"]),
    ],
)
def test_rows_are_chosen_and_ordered(client, query, ids):
    assert [row["id"] for row in page(client, query)["rows"]] == ids


@pytest.mark.parametrize(
    ("query", "status"),
    [("limit=201", 400), ("from=-1", 400), ("status=well", 400), ("show=all", 400), ("against=none", 404)],
)
def test_what_it_does_not_know_is_refused(client, query, status):
    assert client.get(f"/api/runs/{RUN}/grid?{query}").status_code == status


def test_the_cell_of_several_samples_is_the_one_that_ended_as_the_case(tmp_path):
    given = {"repeat": 3, "position": 1}
    statuses = ("passed", "failed", "failed")
    samples = [finished(status, trial=trial("lamp", sample=n, **given)) for n, status in enumerate(statuses, 1)]
    add_run(tmp_path, RUN, samples, **RECORD)
    with viewed(tmp_path) as client:
        (cell,) = client.get(f"/api/runs/{RUN}/grid").json()["rows"][0]["cells"]
        flaky = client.get(f"/api/runs/{RUN}/grid?status=flaky").json()
    assert (cell["status"], cell["answer"]["text"], cell["samples"], cell["passed"]) == ("failed", "No.", 3, 1)
    assert ([row["id"] for row in flaky["rows"]], flaky["flaky"], flaky["counts"]["failed"]) == (["lamp"], 1, 1)
