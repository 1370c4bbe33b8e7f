"""Answers are labelled through the API, and nothing tells what the judge said of them."""

import hashlib
import json
import shutil

import pytest

from agentv.extensions.labels.checking import check_judges
from agentv.extensions.labels.labelling import LabelFiles, open_session
from agentv.extensions.labels.reporting import judge_check_json
from agentv.extensions.view.state import ViewOptions
from doubles.judged_runs import ASKED, judged_run
from doubles.viewed_project import viewed

RUN = "20261121T140322Z-aaaa"
ADA = ViewOptions(label=True, person="ada")
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
    """The same run with all verdicts the other way round gives the same bytes, whatever is asked while labelling."""
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
