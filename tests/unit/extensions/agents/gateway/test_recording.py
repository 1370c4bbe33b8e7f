"""Recorded trials of agents: matched by conversation, differences reported, complete or refused."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.extensions.agents.gateway.recording import CassetteExchanges
from agentv.model.redaction import Redactor
from agentv.model.values.message import Message
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.trace import ModelReply, ModelRequest
from agentv.ports import Call, TargetRequest
from agentv.store.cassettes.cassette import Cassette

CALL = Call("k1", "claude", TargetRequest("fix", "Fix it", (Message("user", "Fix it"),), suite="shop", variant="bare"))


def request(*texts: str, system="You are an agent.", tools=("edit",), model="m-1", **more) -> ModelRequest:
    """Return a request of Anthropic's protocol with alternating texts of the user and the model."""
    roles = ("user", "assistant")
    body = {
        "model": model,
        "system": system,
        "tools": [{"name": name} for name in tools],
        "messages": [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)],
        "max_tokens": 100,
        **more,
    }
    return ModelRequest("anthropic", "POST", "/v1/messages", json.dumps(body).encode())


def reply(text: str, status: int = 200, **more) -> ModelReply:
    return ModelReply(status, "text/event-stream", f'event: x\ndata: {{"text": "{text}"}}\n\n'.encode(), **more)


TITLE = {"system": "Write a title.", "tools": ()}
RUN = [
    (request("Fix it"), reply("one")),
    (request("Fix it", **TITLE), reply("a title")),
    (request("Fix it", "one", "ok"), reply("two")),
    (request("Fix it", "one", "ok", "two", "done"), reply("three")),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


def recorded(path, run, call=CALL, *, complete=True, redactor=None):
    """Record a run of one trial, and return the cassette."""
    cassette = Cassette(path, redactor or Redactor())
    record(cassette, run, call, complete=complete)
    return cassette


def record(cassette, run, call=CALL, *, complete=True):
    trial = CassetteExchanges(cassette, records=True, adds=False).open(call)
    assert not trial.replays
    keeping = [trial.begin(asked) for asked, _ in run]
    for keep, (_, given) in reversed(list(zip(keeping, run, strict=True))):  # replies end in a different order
        if given is not None:
            keep(given)
    trial.finish(complete=complete)


def replay(path, call=CALL):
    return CassetteExchanges(Cassette.load(path, Redactor()), records=False, adds=False).open(call)


@pytest.fixture
def cassette(path):
    recorded(path, RUN).write()
    return path


def test_the_file_is_read_by_people_and_by_git(cassette):
    header, trial, *exchanges = [json.loads(line) for line in cassette.read_text().splitlines()]
    assert header == {"format": "agentv-cassette", "version": 3}
    assert (trial["case"], trial["target"], trial["variant"], trial["exchanges"]) == ("fix", "claude", "bare", 4)
    assert [one["exchange"] for one in exchanges] == [1, 2, 3, 4]
    assert [one["request"]["conversation"] for one in exchanges] == [1, 2, 1, 1]
    assert [one["asked"] for one in exchanges] == [
        [{"role": "user", "text": "Fix it"}],
        [{"role": "user", "text": "Fix it"}],
        [{"role": "user", "text": "ok"}],
        [{"role": "user", "text": "done"}],
    ]
    assert exchanges[0]["reply"]["body"] == 'event: x\ndata: {"text": "one"}\n\n'
    before = cassette.read_bytes()
    recorded(cassette, RUN).write()
    assert cassette.read_bytes() == before


def test_what_is_new_for_each_run_is_no_difference(path):
    def run(workspace, date, session):
        system = f"You work in {workspace}. Today is {date}."
        return request("Fix it", system=system, metadata={"user_id": session})

    cassette = Cassette(path, Redactor())
    trial = CassetteExchanges(cassette, records=True, adds=False).open(CALL)
    trial.set_placeholders({"/w/1": "[workspace]"})
    trial.begin(run("/w/1", "2026-11-23", "s1"))(reply("one"))
    trial.finish(complete=True)
    cassette.write()
    assert "/w/1" not in path.read_text()
    again = replay(path)
    again.set_placeholders({"/w/2": "[workspace]"})
    assert again.recorded(run("/w/2", "2027-01-01", "s2")) == reply("one")
    assert again.notes() == ()


@pytest.mark.parametrize(
    ("number", "asked", "told"),
    [
        (0, request("Fix it", system="You are a duck."), "call 1: the system prompt says 'You are a duck.' instead of"),
        (0, request("Fix it", tools=("edit", "bash")), "call 1: the tools (+bash)"),
        (0, request("Fix it", model="m-2"), "call 1: model 'm-2' instead of 'm-1'"),
        (0, request("Fix it", max_tokens=1), "call 1: the parameters of the request"),
        (0, request("Mend it"), "call 1: the message of role 'user' says 'Mend it' instead of 'Fix it'"),
        (2, request("Fix it", "one", "no"), "call 3: the message of role 'user' says 'no' instead of 'ok'"),
        (2, request("Fix it", "one", "ok", "two", "x"), "call 3: 2 new messages instead of 1"),
    ],
)
def test_a_prompt_that_differs_gets_the_reply_of_its_place_and_is_reported(cassette, number, asked, told):
    trial = replay(cassette)
    for place in range(3):
        given = asked if place == number else RUN[place][0]
        assert trial.recorded(given) == RUN[place][1]
    (first, rest) = trial.notes()
    assert first.startswith("replayed from run.jsonl with different prompts: ")
    assert told in first
    assert rest == "replayed from run.jsonl: 1 of 4 recorded model calls was not made"
    assert trial.finish(complete=True) is None


def test_a_text_that_differs_far_behind_is_found_by_its_digest(path):
    long = "x" * 5000
    recorded(path, [(request(f"{long}1"), reply("one"))]).write()
    trial = replay(path)
    assert trial.recorded(request(f"{long}2")) == reply("one")
    assert "call 1: the messages" in trial.notes()[0]
    assert "x" * 2000 not in path.read_text()


def test_more_calls_than_were_recorded_are_an_error(cassette):
    trial = replay(cassette)
    for asked, _ in RUN:
        trial.recorded(asked)
    found = trial.recorded(request("Fix it", "one", "ok", "two", "done", "three", "more"))
    assert trial.finish(complete=True) == found
    assert found.code == "not-recorded"
    assert "run.jsonl: the agent made a model call that is not recorded (POST anthropic/v1/messages)" in found.message
    assert "4 of 4 recorded calls made" in found.message


def test_a_call_of_another_kind_is_not_answered_by_what_is_left(cassette):
    other = ModelRequest("anthropic", "POST", "/v1/messages/count_tokens", RUN[0][0].body)
    assert isinstance(replay(cassette).recorded(other), Failure)


def test_an_agent_that_calls_no_model_was_not_replayed(cassette):
    trial = replay(cassette)
    failure = trial.finish(complete=True)
    assert failure == Failure("not-replayed", "the agent made none of the 4 recorded model calls of run.jsonl")


def test_an_agent_that_lists_models_or_counts_tokens_was_not_replayed(path):
    listed = ModelRequest("anthropic", "GET", "/v1/models", b"")
    counted = ModelRequest("anthropic", "POST", "/v1/messages/count_tokens", RUN[0][0].body)
    recorded(path, [(listed, reply("m")), (counted, reply("5")), *RUN]).write()
    trial = replay(path)
    assert isinstance(trial.recorded(listed), ModelReply)
    assert isinstance(trial.recorded(counted), ModelReply)
    failure = trial.finish(complete=True)
    assert failure == Failure("not-replayed", "the agent made none of the 4 recorded model calls of run.jsonl")


def test_an_error_that_a_retry_got_over_is_not_kept_and_one_that_stayed_is(path):
    run = [
        (request("Fix it"), reply("slow down", 429)),
        (request("Fix it"), None),
        (request("Fix it"), reply("one")),
        (request("Fix it", "one", "too long"), reply("prompt is too long", 400)),
        (request("Fix it", "one", "short"), reply("two")),
        (request("a title", **TITLE), reply("overloaded", 529)),
    ]
    recorded(path, run).write()
    lines = [json.loads(line) for line in path.read_text().splitlines()[2:]]
    assert [one["reply"]["status"] for one in lines] == [200, 400, 200, 529]
    trial = replay(path)
    assert [trial.recorded(asked) for asked, _ in run[2:]] == [given for _, given in run[2:]]
    assert trial.notes() == ()


def test_a_reply_that_was_never_whole_breaks_off_again_as_often_as_it_is_asked_for(path):
    run = [
        (request("Fix it"), reply("one")),
        (request("Fix it", **TITLE), reply("a ti", complete=False)),
        (request("x", **TITLE), None),
    ]
    recorded(path, run).write()
    trial = replay(path)
    assert trial.recorded(run[0][0]) == reply("one")
    for _ in range(3):
        assert trial.recorded(run[1][0]) == reply("a ti", complete=False)
    assert trial.recorded(run[2][0]) == ModelReply(0, "", b"", complete=False)
    assert trial.finish(complete=True) is None


@pytest.mark.parametrize("run", [RUN, []])
def test_a_trial_that_is_not_whole_is_not_recorded(path, run):
    cassette = recorded(path, run, complete=not run)
    assert cassette.empty
    cassette.write()
    assert isinstance(replay(path), Failure)


def test_an_agent_that_called_no_model_is_named(path):
    exchanges = CassetteExchanges(Cassette(path, Redactor()), records=True, adds=False)
    exchanges.open(CALL).finish(complete=True)
    (note,) = exchanges.notes()
    assert note == "not recorded, because the agent made no model call through the gateway: fix"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sample": 2}, ""),
        ({"variant": "with-skill"}, ""),
        ({"case_id": "other"}, ""),
        ({"messages": (Message("user", "Mend it"),)}, "it has one, but the input changed since"),
        ({"workspace_key": "w2"}, "it has one, but the workspace, the variant or the tools changed since"),
        ({}, "it has one, but a turn, a variable, the environment or the target's settings changed since"),
    ],
)
def test_a_recording_of_something_else_is_not_replayed(cassette, change, why):
    call = Call("k2", "claude", replace(CALL.request, **change))
    failure = replay(cassette, call)
    assert failure.code == "not-recorded"
    assert failure.message.endswith(why or f"at the case '{call.request.case_id}'")


def test_samples_and_variants_are_not_mixed_up(path):
    cassette = Cassette(path, Redactor())
    calls = {
        (variant, sample): Call(f"k{variant}{sample}", "claude", replace(CALL.request, variant=variant, sample=sample))
        for variant in ("a", "b")
        for sample in (1, 2, 3)
    }
    for name, call in calls.items():
        record(cassette, [(request("Fix it"), reply(f"{name[0]}{name[1]}"))], call)
    cassette.write()
    places = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert [one.get("sample", 1) for one in places if "exchanges" in one] == [1, 1, 2, 2, 3, 3]
    exchanges = CassetteExchanges(Cassette.load(path, Redactor()), records=False, adds=False)
    trials = {name: exchanges.open(call) for name, call in calls.items()}
    for name, trial in reversed(trials.items()):
        assert trial.recorded(request("Fix it")) == reply(f"{name[0]}{name[1]}")


def test_a_new_recording_of_a_trial_takes_the_place_of_the_whole_old_one(cassette):
    recorded(cassette, [(request("Fix it"), reply("other"))]).add()
    trial = replay(cassette)
    assert trial.recorded(RUN[0][0]) == reply("other")
    assert len(cassette.read_text().splitlines()) == 3


def test_two_recordings_of_one_trial_at_once_are_never_mixed(cassette):
    runs = [[(asked, reply(f"{number}")) for asked, _ in RUN[: number % 4 + 1]] for number in range(6)]
    both = [recorded(cassette, run) for run in runs]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(Cassette.add, both))
    lines = [json.loads(line) for line in cassette.read_text().splitlines()[1:]]
    assert len({one["recording"] for one in lines}) == 1
    assert lines[0]["exchanges"] == len(lines) - 1


def test_an_answer_of_an_agent_that_went_through_the_gateway_is_not_recorded(path):
    cassette = Cassette(path, Redactor())
    cassette.keep(Call("k", "claude", replace(CALL.request, gateway=object())), TargetResponse("hi"))
    assert cassette.empty


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda lines: lines[:4] + lines[5:], "run.jsonl:2: the recording of 'claude' for the case 'fix' is not whole (3 of 4"),
        (lambda lines: lines[:1] + lines[2:], "run.jsonl:2: an exchange of the recording"),
        (lambda lines: [*lines, lines[3]], "run.jsonl:7: duplicate of line 4, as after a merge"),
        (lambda lines: [*lines, lines[1]], "run.jsonl:7: duplicate of line 2, as after a merge"),
        (lambda lines: [*lines, lines[1].replace('"recording":"', '"recording":"0')], "is not whole (0 of 4 exchanges)"),
        (lambda lines: [*lines[:3], lines[3].replace('"status":200', '"status":"good"'), *lines[4:]], "run.jsonl:4: not a cassette call"),
        (lambda lines: [*lines[:3], lines[3].replace('"exchange":2', '"exchange":2,"xyz":1'), *lines[4:]], "run.jsonl:4: not a cassette call"),
    ],
)  # fmt: skip
def test_lines_of_a_recording_that_do_not_fit_together_are_refused(cassette, edit, told):
    lines = edit(cassette.read_text().splitlines())
    cassette.write_text("\n".join(lines) + "\n")
    with pytest.raises(StoreError) as refused:
        Cassette.load(cassette, Redactor())
    assert told in str(refused.value)


def test_two_recordings_of_one_trial_in_a_merged_file_are_refused(cassette):
    text = cassette.read_text()
    recorded(cassette, [(request("Fix it"), reply("other"))]).write()
    cassette.write_text(text + "".join(cassette.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(StoreError, match=r"run.jsonl:7: duplicate of the call in line 2"):
        Cassette.load(cassette, Redactor())


@pytest.mark.parametrize(
    "given",
    [
        [(request("Fix it", "one", "key hunter2222secret"), reply("one"))],
        [(request("Fix it"), reply("the key is hunter2222secret"))],
        [(request("Fix it", system="use hunter2222secret"), reply("one"))],
        [(request("Fix it"), ModelReply(200, "text/event-stream", b'data: {"d": "hunt"}\n\ndata: {"d": "er2222se"}\n\ndata: {"d": "cret"}\n\n'))],
        [(request("Fix it"), ModelReply(200, "application/json", b'[{"d": "hunter"}, {"d": "2222secret"}]'))],
    ],
)  # fmt: skip
def test_a_trial_that_holds_a_secret_is_refused_as_a_whole(path, given):
    cassette = recorded(path, [*given, *RUN], redactor=Redactor(["hunter2222secret"]))
    assert cassette.refused == [("claude", "fix")]
    assert cassette.empty


def test_a_body_that_is_no_text_and_a_request_that_is_no_json_come_back(path):
    odd = ModelRequest("gemini", "GET", "/v1beta/models?key=x", b"\xff\x00")
    chat = ModelRequest("openai", "POST", "/chat/completions", b'{"messages": [{"role": "user", "content": "Fix it"}]}')
    run = [(odd, ModelReply(200, "application/octet-stream", b"\xff\xfe\x00")), (chat, reply("one"))]
    recorded(path, run).write()
    trial = replay(path)
    assert [trial.recorded(asked) for asked, _ in run] == [given for _, given in run]
    assert trial.notes() == ()


def test_a_new_recording_takes_the_place_of_a_damaged_one(cassette):
    cassette.write_bytes(b"".join(cassette.read_bytes().splitlines(keepends=True)[:3]))
    assert recorded(cassette, RUN).write() == (1, 1)
    assert not isinstance(replay(cassette), Failure)


def test_trials_that_are_added_are_on_the_disk_at_once(path):
    cassette = Cassette(path, Redactor())
    exchanges = CassetteExchanges(cassette, records=True, adds=True)
    for sample in (1, 2):
        trial = exchanges.open(Call(f"k{sample}", "claude", replace(CALL.request, sample=sample)))
        trial.begin(RUN[0][0])(RUN[0][1])
        trial.finish(complete=True)
        assert len(path.read_text().splitlines()) == 1 + 2 * sample
    path.write_text("nonsense")
    trial = exchanges.open(Call("k3", "claude", replace(CALL.request, sample=3)))
    trial.begin(RUN[0][0])(RUN[0][1])
    trial.finish(complete=True)
    with pytest.raises(StoreError):
        cassette.add()
