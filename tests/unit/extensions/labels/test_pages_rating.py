"""Any answer can be rated, judged or not; a rating decides nothing that labels decide."""

import csv
import json
from datetime import UTC, datetime, timedelta

import pytest

from agentv.app.exports import Exported, rendered
from agentv.app.results.stored import open_run
from agentv.extensions.labels.labelling import LabelFiles
from agentv.extensions.labels.of_runs import OfRuns
from agentv.extensions.view.state import ViewOptions
from agentv.model.run.labels import Label, answer_sha256
from agentv.model.values.formatting import timestamp
from agentv.store.labels import label_in, label_line, labels_file, read_labels
from doubles.trials import finished, trial
from doubles.viewed_project import add_run, viewed

RUN = "20261121T140322Z-aaaa"
RECORD = {"suites": [{"name": "refunds", "path": "evals/refund.eval.yaml"}]}
ADA, BEN = (ViewOptions(label=True, person=name) for name in ("ada", "ben"))
SAID = answer_sha256("You may, within 30 days.")
LAMP, TENT = (trial(name).key for name in ("lamp", "tent"))


@pytest.fixture
def root(tmp_path):
    ended = [
        finished(trial=trial("lamp")),
        finished("failed", trial=trial("bike")),
        finished("errored", output=None, trial=trial("tent")),
    ]
    add_run(tmp_path, RUN, ended, **RECORD)
    return tmp_path


def rated(client):
    found = client.get(f"/api/runs/{RUN}/ratings").json()["ratings"]
    return {(one["case"], one["person"]): (one["thumb"], one["comment"], one["mine"]) for one in found}


def rate(client, **said):
    seen = {"key": LAMP, "output_sha256": SAID}
    return client.post(f"/api/runs/{RUN}/ratings", json={**seen, **said})


def test_the_latest_rating_of_each_person_counts_until_it_is_taken_back(root):
    with viewed(root, ADA) as client:
        assert rated(client) == {}
        (one,) = rate(client, thumb="down").json()["ratings"]
        assert (one["case"], one["output_sha256"]) == ("lamp", SAID)
        rate(client, thumb="up", comment=" well said ")
        assert rated(client) == {("lamp", "ada"): ("up", "well said", True)}
    with viewed(root, BEN) as client:
        rate(client, comment="too long")
        assert rated(client) == {("lamp", "ada"): ("up", "well said", False), ("lamp", "ben"): ("", "too long", True)}
        rate(client)
        assert list(rated(client)) == [("lamp", "ada")]


def test_the_latest_rating_counts_wherever_it_lies(root):
    """Git and `agentv pull` put lines together in any order, and the clock of another machine may be ahead."""

    def given(verdict, minutes, **changed):
        time = timestamp(datetime.now(UTC) + timedelta(minutes=minutes))
        return Label("lamp", SAID, "", verdict, "ada", time, "refunds", "", RUN, **changed)

    store = LabelFiles(root)
    store.add([given("fail", 60), given("pass", -60)])
    with viewed(root, ADA) as client:
        assert rated(client) == {("lamp", "ada"): ("down", "", True)}
        for thumb in ("up", "down", "up"):
            rate(client, thumb=thumb)
            assert rated(client) == {("lamp", "ada"): (thumb, "", True)}


def test_exports_have_ratings(root):
    run = open_run(root / ".agentv" / "results" / RUN, action="export")
    assert "thumbs_up" not in "".join(rendered(".csv", Exported(run)))
    assert '"ratings"' not in "".join(rendered(".json", Exported(run)))
    with viewed(root, ADA) as client:
        rate(client, thumb="up", comment="=fine")
    lines = {one["test_id"]: one for one in csv.DictReader("".join(rendered(".csv", Exported(run))).splitlines())}
    assert [lines["lamp"][name] for name in ("thumbs_up", "thumbs_down", "comments")] == ["1", "0", "ada: =fine"]
    assert lines["bike"]["thumbs_up"] == "0"
    (given,) = json.loads("".join(rendered(".json", Exported(run))))["ratings"]
    assert (given["test_id"], given["thumb"], given["comment"], given["by"]) == ("lamp", "up", "=fine", "ada")


def test_who_may_not_label_may_not_rate_but_sees_ratings(root):
    with viewed(root, ADA) as client:
        rate(client, thumb="up")
    with viewed(root) as client:
        assert rate(client, thumb="down").status_code == 403
        assert rated(client) == {("lamp", "ada"): ("up", "", False)}


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"key": TENT}, 404),
        ({"key": "another"}, 404),
        ({"output_sha256": "a" * 64}, 409),
        ({"thumb": "sideways"}, 400),
        ({"comment": "x" * 10_001}, 400),
    ],
)
def test_what_is_no_rating_of_an_answer_is_refused(root, said, status):
    with viewed(root, ADA) as client:
        assert rate(client, **said).status_code == status
    assert not labels_file(root, "refunds").exists()


def test_labels_are_the_same_with_ratings_and_without(root):
    """A run that is resumed must have the labels that it began with; ratings given meanwhile do not count."""
    hashes, at = ("a" * 64, "b" * 64), "2026-11-21T14:03:22.123Z"
    label = Label("lamp", *hashes, "pass", "ada", at, "refunds", "tone", RUN, "m", "c" * 64, True)
    store = LabelFiles(root)
    with viewed(root, ADA) as client:
        rate(client, thumb="up")
        assert OfRuns().of_suites(["refunds"], root).sha256 == ""
        store.add([label])
        before = OfRuns().of_suites(["refunds"], root)
        rate(client, thumb="down", comment='"rubric_sha256": none')
    assert OfRuns().of_suites(["refunds"], root) == before
    assert store.read({"refunds"}) == read_labels([labels_file(root, "refunds")]) == [label]
    assert [one.note for one in store.ratings({"refunds"})] == ["", '"rubric_sha256": none']
    for line in labels_file(root, "refunds").read_bytes().splitlines():
        assert label_line(label_in(line)) == line


def test_a_line_with_half_of_what_a_judge_says_is_neither_label_nor_rating(root):
    with viewed(root, ADA) as client:
        rate(client, thumb="up")
    file = labels_file(root, "refunds")
    line = file.read_bytes().rstrip()[:-1] + b',"judge_model":"m"}'
    with pytest.raises(ValueError, match="rubric_sha256"):
        label_in(line)
