"""Settings that a resumed run keeps from the original command, read from files alone: nothing runs here."""

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentv.app.planning.resume import (
    added_suites,
    flags_of,
    original_selection,
    previous_run,
    recorded_settings,
    selected_keys,
    with_recorded_settings,
)
from agentv.app.settings import EvalSettings
from agentv.engine.plan import Plan, PlanSettings
from agentv.errors import UsageError
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.values.message import Message
from agentv.store.files.directory import PreviousRun
from agentv.store.journal.answers import row_checksum_line
from doubles.stored_runs import write_summary

BLANK = EvalSettings(process_env={})
RECORDED = {
    "filter": ("a", "b"),
    "limit": (3, 4),
    "sample": (2, 3),
    "repeat": (4, 5),
    "against": ("old", "older"),
    "margin": (0.25, 1),
    "until": ("decided", "decided"),
    "alpha": (0.25, 1),
    "budget_usd": (1.5, 2),
    "budget_tokens": (100, 200),
    "threshold": (0.5, 1),
}
"""Setting → two values: the run's original one, and that of another command."""
LISTS = {"tags": ("smoke", "slow"), "exclude_tags": ("x",), "variants": ("plain", "skilled"), "filter": ("a", "b")}


def test_a_resumed_run_keeps_every_setting_that_the_command_does_not_give():
    wrong = []
    for name, (begun, own) in RECORDED.items():
        found = [getattr(with_recorded_settings(BLANK, {name: recorded}, "r"), name) for recorded in (begun, own)]
        if found != [begun, own]:  # integers are accepted as floats
            wrong.append(f"{name}: {begun} or {own} is lost")
        if getattr(with_recorded_settings(replace(BLANK, **{name: own}), {name: begun}, "r"), name) != own:
            wrong.append(f"{name}: the command's own {own} does not win")
        if getattr(with_recorded_settings(BLANK, {name: {"no": "such"}}, "r"), name) is not None:
            wrong.append(f"{name}: a value of another type is taken")
    for name, values in LISTS.items():
        if getattr(with_recorded_settings(BLANK, {name: [*values]}, "r"), name) != values:
            wrong.append(f"{name}: {values} is lost")
        if getattr(with_recorded_settings(replace(BLANK, **{name: ("own",)}), {name: [*values]}, "r"), name) != (
            "own",
        ):
            wrong.append(f"{name}: the command's own does not win")
        if name != "filter" and getattr(with_recorded_settings(BLANK, {name: "smoke"}, "r"), name) != ():
            wrong.append(f"{name}: a text is taken for a list")
    assert wrong == []
    assert with_recorded_settings(BLANK, {}, "r") == BLANK


def test_the_seed_is_restored_with_what_is_drawn_by_it_alone():
    assert with_recorded_settings(BLANK, {"seed": 5}, "r").seed is None
    assert with_recorded_settings(BLANK, {"seed": 5, "filter": "a"}, "r").seed is None
    for drawn in ({"sample": 2}, {"against": "old"}):
        assert with_recorded_settings(BLANK, {"seed": 5} | drawn, "r").seed == 5
        assert with_recorded_settings(replace(BLANK, **drawn), {"seed": 5}, "r").seed == 5
        assert with_recorded_settings(replace(BLANK, seed=7), {"seed": 5} | drawn, "r").seed == 7


@pytest.mark.parametrize(
    ("recorded", "begun"), [({"cluster": "a"}, "with --cluster a"), ({"repeat": 2}, "without --cluster")]
)
def test_another_cluster_is_refused(recorded, begun):
    with pytest.raises(UsageError, match=f"the run r started {begun}$"):
        with_recorded_settings(replace(BLANK, cluster="b"), recorded, "r")


def test_the_same_cluster_is_restored():
    assert with_recorded_settings(BLANK, {"cluster": "a"}, "r").cluster == "a"
    assert with_recorded_settings(replace(BLANK, cluster="a"), {"cluster": "a"}, "r").cluster == "a"
    assert with_recorded_settings(replace(BLANK, cluster="a"), {}, "r").cluster == "a"


@pytest.mark.parametrize(
    ("recorded", "words", "named"),
    [
        ({"targets": ["a", "b"]}, "--target a --target b", {"targets": ("c",)}),
        ({"targets": ["a"]}, "--target a", {"process_env": {"AGENTV_TARGET": "c"}}),
        ({"targets": ["a"]}, "--target a", {"given_target": {"provider": "echo"}}),
        ({"judge": "j"}, "--judge j", {"judge": "k"}),
        ({"judge": "j"}, "--judge j", {"given_judge": {"provider": "echo"}}),
        ({"tests_from": "d.csv"}, "--tests-from d.csv", {"tests_from": "d.csv"}),
    ],
)
def test_what_the_command_line_named_is_named_again(recorded, words, named):
    with pytest.raises(UsageError) as refused:
        with_recorded_settings(BLANK, recorded, "r")
    assert f"the run r started with {words}, but this command has none" in str(refused.value)
    settings = replace(BLANK, **named)
    assert with_recorded_settings(settings, recorded, "r") == settings
    assert with_recorded_settings(settings, {}, "r") == settings


def test_the_choice_of_cases_that_a_run_began_with_is_taken_in_place_of_another():
    assert original_selection(BLANK, {}) is None
    assert original_selection(BLANK, {"filter": None, "tags": [], "limit": None, "threshold": 0.5}) is None
    begun: dict[str, Any] = {"limit": 3, "sample": 2, "seed": 5, "filter": "a"} | LISTS
    for name, value in begun.items():
        recorded = {name: [*value] if isinstance(value, tuple) else value}
        found = original_selection(BLANK, recorded)
        assert found is not None, name
        assert found == replace(BLANK, **{name: value})
        assert original_selection(found, recorded) is None
        assert original_selection(found, {}) == BLANK


def test_the_flags_that_choose_cases_are_named():
    assert flags_of(BLANK) == flags_of(replace(BLANK, repeat=5, targets=("t",))) == ""
    settings = replace(BLANK, sample=2, seed=5, limit=3, **LISTS)
    flags = "--filter a, b --tag smoke, slow --exclude-tag x --sample 2 --seed 5 --limit 3 --variant plain, skilled"
    assert flags_of(settings) == flags
    assert flags_of(replace(BLANK, filter="a*")) == "--filter a*"


ALL = Suite(
    "s",
    tuple(Case(one, (Message("user", one),), (), sha256=one) for one in "abcd"),
    targets=(TargetSpec("m", "mock", None),),
)


def planned(*ids: str, shard: tuple[int, int] | None = None) -> Plan:
    """Return the plan of a command that selects these cases."""
    plan = Plan([ALL], PlanSettings(chosen=lambda case: case.id in ids))
    return plan if shard is None else plan.sharded(*shard)


def test_a_part_of_a_run_is_chosen_among_its_own_trials():
    a, b, *_ = (trial.key for trial in planned(*"abcd"))
    assert selected_keys(planned(*"ab"), planned(*"abc"), "r", "--filter x") == {a, b}
    with pytest.raises(UsageError, match=r"^--filter x selects 1 trial that is not part of the run r$"):
        selected_keys(planned(*"ad"), planned(*"abc"), "r", "--filter x")
    with pytest.raises(UsageError, match=r"^--filter x selects 2 trials that are not part of the run r$"):
        selected_keys(planned(*"acd"), planned(*"ab"), "r", "--filter x")


def test_a_part_of_a_shard_is_chosen_among_its_own_trials_and_not_cut_again():
    first, second = planned(*"abc", shard=(1, 2)), planned(*"abc", shard=(2, 2))
    _, b, c = (trial.key for trial in planned(*"abc"))
    assert selected_keys(planned(*"bc"), first, "r", "--filter x") == {c}
    assert selected_keys(planned(*"bc"), second, "r", "--filter x") == {b}
    with pytest.raises(UsageError, match=r"^--filter x selects no trial of the run r, which is one shard$"):
        selected_keys(planned("b"), first, "r", "--filter x")
    with pytest.raises(UsageError, match=r"^--filter x selects 1 trial that is not part of the run r$"):
        selected_keys(planned(*"ad"), first, "r", "--filter x")
    with pytest.raises(UsageError, match=r"^--shard 2/2 selects 1 trial that is not part of the run r$"):
        selected_keys(second, first, "r", "--shard 2/2")


def begun_with(*suites: tuple[str, str], paths: Any = None, **record: Any) -> Path:
    """Write a run of these suites, each a name and a path, in the working directory; return its directory."""
    run = Path("r")
    run.mkdir(exist_ok=True)
    whole = {"suites": [{"name": name, "path": path} for name, path in suites], "settings": {"paths": paths}} | record
    (run / "run.json").write_text(json.dumps(whole))
    return run


def added(run: Path, *suites: tuple[str, str]) -> list[str]:
    root = str(Path.cwd())
    now = tuple(Suite(name, (), path=f"{root}/{path}" if path else "") for name, path in suites)
    return added_suites(run, now, root)


def refused(run: Path, *suites: tuple[str, str]) -> tuple[str, str | None]:
    """Return the message and the hint of the refusal."""
    with pytest.raises(UsageError) as raised:
        added(run, *suites)
    return str(raised.value), raised.value.hint


@pytest.fixture
def project(tmp_path):
    with chdir(tmp_path):
        for name in "abc":
            Path(f"{name}.eval.yaml").touch()
        yield tmp_path


A, B, C = ((name, f"{name}.eval.yaml") for name in "abc")


def test_suites_that_are_new_to_a_run_are_named(project):
    run = begun_with(A)
    assert added(run, A) == []
    new = "now included in its totals: 'b' in b.eval.yaml"
    assert added(run, A, B) == [f"1 suite is new to the run, {new}"]
    assert added(run, C, A, B) == [f"2 suites are new to the run, {new}, 'c' in c.eval.yaml"]
    assert added(run, A, ("made", "")) == ["1 suite is new to the run, now included in its totals: 'made'"]
    assert added(run, A, *((f"s{n:02}", "") for n in range(11)))[0].endswith(", 's08', 's09' and 1 more")
    assert added(begun_with(A, ("a2", "a.eval.yaml")), A, ("a2", "a.eval.yaml")) == []


@pytest.mark.parametrize(
    ("began", "now", "lacks"),
    [
        ([A], [("z", "a.eval.yaml")], "lacks 'a' in a.eval.yaml, with which the run r started; this command has 'z' in a.eval.yaml"),
        ([A, B], [A, ("b", "c.eval.yaml")], "lacks 'b' in b.eval.yaml, with which the run r started; this command has 'b' in c.eval.yaml"),
        ([("made", "")], [("built", "")], "lacks 'made', with which the run r started; this command has 'built'"),
        ([A, B], [A], "lacks 'b' in b.eval.yaml, with which the run r started"),
        ([A, B], [C], "lacks 'a' in a.eval.yaml, 'b' in b.eval.yaml, with which the run r started; this command has 'c' in c.eval.yaml"),
    ],
)  # fmt: skip
def test_a_command_that_lacks_a_suite_of_the_run_is_refused(project, began, now, lacks):
    named, rest = (
        "give every path of the run",
        ", with suites under their old names and in their old files; or start a new run",
    )
    assert refused(begun_with(*began, paths=["a b.yaml"]), *now) == (
        f"this command {lacks}",
        f"{named} ('a b.yaml'){rest}",
    )
    for paths in ([1], "b.eval.yaml", None, []):
        assert refused(begun_with(*began, paths=paths), *now) == (f"this command {lacks}", f"{named}{rest}"), paths


def test_settings_of_a_run_without_a_readable_record_are_none(project):
    assert recorded_settings(begun_with(settings={"repeat": 2})) == {"repeat": 2}
    assert recorded_settings(begun_with(settings=[1])) == {}
    Path("r", "run.json").write_text("{")
    assert recorded_settings(Path("r")) == {}


def test_a_new_run_has_no_earlier_processes(project):
    assert (PreviousRun().processes, PreviousRun().duration_ms, PreviousRun().started) == (0, 0.0, None)
    assert previous_run(begun_with(processes=3)) == PreviousRun("r")
    assert previous_run(begun_with(processes=3, started=5)) == PreviousRun("r")


STARTED = "2026-11-21T10:00:00Z"


def test_an_earlier_run_is_known_by_its_record_and_its_summary(project):
    run = begun_with(
        started=STARTED, processes=2, settings={"repeat": 2}, agent_versions={"t": ["1"]}, labels_sha256="abc"
    )
    write_summary(run, {"processes": 2, "duration_ms": 5000})
    assert previous_run(run) == PreviousRun("r", {"repeat": 2}, 2, 5000.0, STARTED, {"t": ["1"]}, "abc")
    run = begun_with(started=STARTED, processes="2", settings=[], agent_versions=[], labels_sha256=1)
    assert previous_run(run) == PreviousRun("r", {}, 1, 0.0, STARTED, {}, None)
    run = begun_with(started=STARTED)
    write_summary(run, {"duration_ms": 7000.0})
    assert (previous_run(run).processes, previous_run(run).duration_ms) == (1, 7000.0)


def test_a_run_that_was_killed_lasted_until_its_last_row_or_as_long_as_the_processes_before(project):
    run = begun_with(started=STARTED, processes=2, duration_before_ms=4000)
    write_summary(run, {"processes": 1, "duration_ms": 9e9})  # written by the previous process
    assert previous_run(run).duration_ms == 4000
    for at_ms, lasted in ((3000, 4000), (6000, 6000)):
        with Path("r", "journal.jsonl").open("ab") as journal:
            journal.write(row_checksum_line("k", b"{}", at_ms) + b'{"crc32":"00000000","key":"an answer"}\n')
        assert previous_run(run).duration_ms == lasted
    begun_with(started=STARTED, duration_before_ms=True)
    Path("r", "journal.jsonl").unlink()
    Path("r", "summary.json").write_text('{"duration_ms": ')
    assert previous_run(run).duration_ms == 0.0
