"""Labelling and rating answers through the API: labelling hides the judge's verdicts, and ratings decide nothing."""

import csv
import hashlib
import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from agentv.app.exports import Exported, rendered
from agentv.app.results.stored import open_run
from agentv.extensions.labels.checking import check_judges
from agentv.extensions.labels.labelled_runs import StoredLabels
from agentv.extensions.labels.labelling import LabelFiles, open_session
from agentv.extensions.labels.reporting import judge_check_json
from agentv.extensions.view.state import ViewOptions
from agentv.model.run.labels import Label, answer_sha256
from agentv.model.values.formatting import timestamp
from agentv.store.labels import label_in, label_line, labels_file, read_labels
from doubles.judged_runs import ASKED, judged_run
from doubles.trials import finished, trial
from doubles.viewed_project import add_run, viewed

RUN = "20261121T140322Z-aaaa"
ADA, BEN = (ViewOptions(label=True, person=name) for name in ("ada", "ben"))
VERDICTS = [True, False, True, True, False, True]
SECRETS = ("passed", "as I see it", "judge_pass", "probability", "drawn_from", "0.5", "strict", "openai:small", "score")


@pytest.fixture
def root(tmp_path):
    judged_run(tmp_path, VERDICTS)
    return tmp_path


@pytest.fixture
def client(root):
    with viewed(root, ADA) as found:
        yield found


def queue(client, **query):
    return client.get("/api/labels/queue", params={"run": RUN, **query})


def say(client, queued, verdict="pass", **said):
    answer = queued["answer"]
    replaces = answer["given"]["time"] if answer["given"] else ""
    body = {"run": RUN, "id": answer["id"], "verdict": verdict, "replaces": replaces, **said}
    return client.post("/api/labels", json=body)


def kept(root):
    return LabelFiles(root).read({"refunds"})


def test_answers_come_in_the_order_of_the_terminal_and_are_on_the_disk_at_once(client, root):
    wanted = [one.answer.case for one in open_session("last", None, 60, 0, "ada").distinct]
    found = queue(client).json()
    seen = []
    while found["answer"]:
        seen.append(found["answer"]["case"])
        assert (found["place"], found["left"], found["total"]) == (len(seen), 7 - len(seen), 6)
        saved = say(client, found, "pass" if len(seen) % 2 else "unsure", note=f" note {len(seen)} ").json()
        assert [(one.case, one.note, one.person) for one in kept(root)][-1] == (seen[-1], f"note {len(seen)}", "ada")
        found = saved["next"]
    assert seen == wanted
    assert queue(client).json()["left"] == 0
    assert {one.probability for one in kept(root)} == {1.0}, "what corrects the pass rate is kept with each label"


def test_nothing_tells_what_the_judge_said(root):
    """With all verdicts inverted, every response while labelling has the same bytes."""
    said = []
    for verdicts in (VERDICTS, [not one for one in VERDICTS]):
        shutil.rmtree(root / ".agentv")
        judged_run(root, verdicts)
        with viewed(root, ADA) as client:
            answers = [client.get("/api/project"), queue(client, sample=99)]
            texts = {}
            for at in range(6):
                one = queue(client, sample=99, **({"at": answers[-1].json()["after"]} if at else {}))
                answers.append(one)
                found = one.json()
                texts[found["answer"]["case"]] = json.dumps(found["answer"])
                made_of_content = hashlib.blake2b(one.content, digest_size=12).hexdigest()
                assert one.headers["etag"] == f'W/"{made_of_content}"', "not of the run's files, which hold verdicts"
                assert not [secret for secret in SECRETS if secret in one.text], one.text
            saved = say(client, answers[1].json())
            assert set(saved.json()["given"]) == {"verdict", "note", "time"}
            assert client.post("/api/labels/agreement", json={"run": RUN}).status_code == 409
            said.append((texts, {len(one.content) for one in answers[2:]}))
    assert said[0][0] == said[1][0]
    assert len(said[0][1] | said[1][1]) <= 3, "sizes differ by empty ids at the ends, not by verdicts"


def test_the_agreement_is_said_once_all_are_labelled(client, root):
    found = queue(client).json()
    while found["answer"]:
        last, found = found, say(client, found).json()["next"]
    again = queue(client, at=last["answer"]["id"]).json()
    assert say(client, again, "fail").status_code == 200, "a slip of the hand can be corrected"
    assert client.post("/api/labels/agreement", json={"run": RUN}).json()["of"] == 6
    assert len(kept(root)) == 7


def test_a_label_of_a_page_that_is_out_of_date_is_refused(client, root):
    stale = queue(client).json()
    say(client, stale, "fail")
    refused = say(client, stale, "pass")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "labelled-meanwhile")
    assert "you labelled this answer elsewhere meanwhile: fail" in refused.json()["error"]["message"]
    fresh = queue(client, at=stale["answer"]["id"]).json()
    assert say(client, fresh, "pass").status_code == 200
    late = say(client, stale, "fail")
    assert late.status_code == 409, "the first request, if it arrives once more, does not undo what came after it"
    assert [one.verdict for one in kept(root)] == ["fail", "pass"]


def test_an_answer_of_a_run_that_was_done_again_is_not_labelled(client, root):
    stale = queue(client).json()
    shutil.rmtree(root / ".agentv/results")
    judged_run(root, VERDICTS, answer="another answer {}")
    for verdict in ("pass", "unsure"):
        refused = say(client, stale, verdict)
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "no-such-answer")
    assert "the run was changed" in refused.json()["error"]["message"]
    assert kept(root) == []
    other = ASKED.__class__("strict", "openai:small", "Is rude", "c" * 64, "b" * 64)
    stale = queue(client).json()
    shutil.rmtree(root / ".agentv/results")
    judged_run(root, VERDICTS, answer="another answer {}", asked=other)
    assert say(client, stale).status_code == 404, "graded again by another rubric"
    assert queue(client).json()["left"] == 6


def test_two_people_label_one_item_and_both_count(root):
    for person in ("ada", "bob"):
        with viewed(root, ViewOptions(label=True, person=person)) as client:
            found = queue(client).json()
            assert (found["person"], found["left"]) == (person, 6)
            say(client, found, "pass" if person == "ada" else "fail")
    assert {(one.person, one.verdict) for one in kept(root)} == {("ada", "pass"), ("bob", "fail")}


def test_what_is_wrong_is_said(client):
    for query, status in (
        ({"run": "none"}, 404),
        ({"assertion": "polit"}, 422),
        ({"sample": 0}, 400),
        ({"at": "x"}, 404),
        ({"verdict": "pass"}, 400),
    ):
        assert queue(client, **query).status_code == status, query
    found = queue(client).json()
    for said in ({"verdict": "good"}, {"note": "x" * 10_001}, {"judge_pass": True}, {"id": ""}):
        assert say(client, found, **said).status_code in (400, 404), said


def test_judges_say_what_the_command_says(client, root):
    found = queue(client).json()
    while found["answer"]:
        found = say(client, found, "fail").json()["next"]
    told = client.get(f"/api/judges?run={RUN}").json()
    assert told == json.loads(judge_check_json(check_judges("last")))
    (judge,) = told["judges"]
    assert judge["notes"][0].startswith("warning: only 6 labelled answers")
    assert {one["kind"] for one in judge["disagreements"]} == {"false-pass"}
    assert {(one["target"], one["run"]) for one in judge["disagreements"]} == {("gpt", RUN)}
    (alone,) = client.get("/api/judges").json()["judges"]
    assert alone["confusion_matrix"] == judge["confusion_matrix"]
    assert client.get("/api/judges?assertion=none").status_code == 404


RECORD = {"suites": [{"name": "refunds", "path": "evals/refund.eval.yaml"}]}
SAID = answer_sha256("You may, within 30 days.")
LAMP, TENT = (trial(name).key for name in ("lamp", "tent"))


@pytest.fixture
def rated_root(tmp_path):
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


def test_the_latest_rating_of_each_person_counts_until_it_is_taken_back(rated_root):
    with viewed(rated_root, ADA) as client:
        assert rated(client) == {}
        (one,) = rate(client, thumb="down").json()["ratings"]
        assert (one["case"], one["output_sha256"]) == ("lamp", SAID)
        rate(client, thumb="up", comment=" well said ")
        assert rated(client) == {("lamp", "ada"): ("up", "well said", True)}
    with viewed(rated_root, BEN) as client:
        rate(client, comment="too long")
        assert rated(client) == {("lamp", "ada"): ("up", "well said", False), ("lamp", "ben"): ("", "too long", True)}
        rate(client)
        assert list(rated(client)) == [("lamp", "ada")]


def test_the_latest_rating_counts_wherever_it_lies(rated_root):
    """Git and `agentv pull` combine lines in any order, and another machine's clock may be ahead."""

    def given(verdict, minutes, **changed):
        time = timestamp(datetime.now(UTC) + timedelta(minutes=minutes))
        return Label("lamp", SAID, "", verdict, "ada", time, "refunds", "", RUN, **changed)

    store = LabelFiles(rated_root)
    store.add([given("fail", 60), given("pass", -60)])
    with viewed(rated_root, ADA) as client:
        assert rated(client) == {("lamp", "ada"): ("down", "", True)}
        for thumb in ("up", "down", "up"):
            rate(client, thumb=thumb)
            assert rated(client) == {("lamp", "ada"): (thumb, "", True)}


def test_exports_have_ratings(rated_root):
    run = open_run(rated_root / ".agentv" / "results" / RUN, action="export")
    assert "thumbs_up" not in "".join(rendered(".csv", Exported(run)))
    assert '"ratings"' not in "".join(rendered(".json", Exported(run)))
    with viewed(rated_root, ADA) as client:
        rate(client, thumb="up", comment="=fine")
    lines = {one["test_id"]: one for one in csv.DictReader("".join(rendered(".csv", Exported(run))).splitlines())}
    assert [lines["lamp"][name] for name in ("thumbs_up", "thumbs_down", "comments")] == ["1", "0", "ada: =fine"]
    assert lines["bike"]["thumbs_up"] == "0"
    (given,) = json.loads("".join(rendered(".json", Exported(run))))["ratings"]
    assert (given["test_id"], given["thumb"], given["comment"], given["by"]) == ("lamp", "up", "=fine", "ada")


def test_who_may_not_label_may_not_rate_but_sees_ratings(rated_root):
    with viewed(rated_root, ADA) as client:
        rate(client, thumb="up")
    with viewed(rated_root) as client:
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
def test_what_is_no_rating_of_an_answer_is_refused(rated_root, said, status):
    with viewed(rated_root, ADA) as client:
        assert rate(client, **said).status_code == status
    assert not labels_file(rated_root, "refunds").exists()


def test_labels_are_the_same_with_ratings_and_without(rated_root):
    """A resumed run must use the labels from its start; ratings given later do not count."""
    hashes, at = ("a" * 64, "b" * 64), "2026-11-21T14:03:22.123Z"
    label = Label("lamp", *hashes, "pass", "ada", at, "refunds", "tone", RUN, "m", "c" * 64, True)
    store = LabelFiles(rated_root)
    with viewed(rated_root, ADA) as client:
        rate(client, thumb="up")
        assert StoredLabels().of_suites(["refunds"], rated_root).sha256 == ""
        store.add([label])
        before = StoredLabels().of_suites(["refunds"], rated_root)
        rate(client, thumb="down", comment='"rubric_sha256": none')
    assert StoredLabels().of_suites(["refunds"], rated_root) == before
    assert store.read({"refunds"}) == read_labels([labels_file(rated_root, "refunds")]) == [label]
    assert [one.note for one in store.ratings({"refunds"})] == ["", '"rubric_sha256": none']
    for line in labels_file(rated_root, "refunds").read_bytes().splitlines():
        assert label_line(label_in(line)) == line


def test_a_line_with_half_of_what_a_judge_says_is_neither_label_nor_rating(rated_root):
    with viewed(rated_root, ADA) as client:
        rate(client, thumb="up")
    file = labels_file(rated_root, "refunds")
    line = file.read_bytes().rstrip()[:-1] + b',"judge_model":"m"}'
    with pytest.raises(ValueError, match="rubric_sha256"):
        label_in(line)
