"""Objects sent to a worker only once, and references in its results."""

from dataclasses import dataclass

from msgspec.structs import replace

from agentv.extensions.ray.messages import SharedObjects, packed_results, unpacked, unpacked_results
from agentv.model.suite.suite import Rate, TargetSpec
from doubles.trials import entry, finished, scored, trial
from needs import needs

pytestmark = needs("ray")


def arrived(shared: SharedObjects, numbers: tuple[int, ...], things=None):
    """Return the objects that a worker unpacks from these pieces and those that they need."""
    things = {} if things is None else things
    for number in (one for one in numbers if one not in things):
        piece = shared.piece(number)
        arrived(shared, piece.needs, things)
        things[number] = unpacked(piece.body, things.__getitem__)
    return things


def test_a_suite_travels_without_its_cases_and_with_its_environment():
    sent = trial("a")
    sent = replace(sent, suite=replace(sent.suite, env={"KEY": "secret"}, targets=(sent.target,)))
    shared = SharedObjects(1)
    packed = shared.pack(sent)
    assert b"secret" not in packed.body
    things = arrived(shared, packed.needs)
    there = unpacked(packed.body, things.__getitem__)
    assert there.suite.env == {"KEY": "secret"}
    assert there.suite.cases == ()
    assert there.suite.targets[0] is there.target


def test_a_target_that_limits_its_rate_is_shared_out_among_the_workers():
    spec = TargetSpec("gpt", "echo", None, rate=Rate(requests_per_minute=60))
    (number,) = SharedObjects(3).pack((spec,)).needs
    shared = SharedObjects(3)
    shared.number(spec)
    assert arrived(shared, (number,))[number].rate == Rate(requests_per_minute=20)
    assert spec.rate == Rate(requests_per_minute=60)


@dataclass(frozen=True)
class Holding:
    assert_: tuple

    def label(self) -> str:
        return ""


def test_a_result_comes_back_with_the_trial_and_the_entries_that_were_sent():
    inner = entry("contains", "'deep'")
    outer = replace(entry("assert-set"), assertion=Holding((inner,)))
    sent = trial("a")
    sent = replace(sent, case=replace(sent.case, assertions=(outer,)))
    there = replace(sent)  # an equal copy, as on another machine
    result = finished("failed", trial=there, scores=(replace(scored(False), entry=outer),))
    body = packed_results([result], [there])
    (back,) = unpacked_results(body, [sent])
    assert back.trial is sent
    assert back.scores[0].entry is outer
    assert replace(back, trial=there) == result
