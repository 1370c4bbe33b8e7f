import re
from pathlib import Path

import pytest

from agentv.app.settings import EvalSettings, declared_settings, environment_variables, flag_names
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.schema import AuthoredRun
from agentv.cli.eval import command
from agentv.errors import UsageError
from agentv.registry.settings import Flag, RunKeys

SETTINGS = declared_settings()


def test_one_field_gives_the_flag_the_keyword_the_key_and_the_variable():
    options = {spelled: one for one in command.params for spelled in (*one.opts, *one.secondary_opts)}
    for name, setting in SETTINGS.items():
        flag = setting.marked(Flag)
        if flag is not None:
            spelled = flag.spelled.replace("/", " ").split()
            assert {options[one].name for one in spelled} == {flag.parameter or name}, name
    assert flag_names("timeout_s", "tags", "cache") == {"timeout_s": "--timeout", "tags": "--tag", "cache": "--cache"}
    assert shape_of(RunKeys).rules.keys() <= shape_of(AuthoredRun).rules.keys() & {*SETTINGS}
    assert environment_variables() == {"targets": "AGENTV_TARGET", "judge": "AGENTV_JUDGE"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, "workers must be a whole number of at least 1, found 0"),
        ({"limit": 1.5}, "limit must be a whole number of at least 1, found 1.5"),
        ({"threshold": 1.5}, "threshold must be a number from 0 to 1, found 1.5"),
        ({"timeout_s": 0}, "timeout_s must be a number of at least 0.001, found 0"),
        ({"alpha": 0.6, "until": "decided"}, "alpha must be a number from 0.0001 to 0.5, found 0.6"),
        ({"margin": 1, "until": "decided", "against": "r1"}, "margin must be a number from 0.0001 to 0.9999, found 1"),
        ({"filter": ()}, "filter has no pattern, so it selects no case"),
        ({"filter": 3}, "filter must be a text or a list of texts, found 3"),
        ({"tags": ("a", 1)}, "tags must be a list of texts, found ('a', 1)"),
        ({"variables": "a=b"}, "variables must be a mapping, found 'a=b'"),
        ({"rerun": "passed"}, "rerun must be 'failed' or 'errored', found 'passed'"),
        ({"margin": 0.1}, "--margin requires --against and --until decided"),
        ({"seed": 1}, "--seed requires --sample or --shuffle"),
        ({"shard": "1/2", "sample": 2}, "--shard with --sample requires --seed"),
        ({"shard": "1/2", "last_failed": True}, "--last-failed conflicts with --shard"),
        ({"shard": "1/2", "against": "last", "until": "decided"}, "--shard conflicts with --against"),
        ({"seed": "x", "sample": 1}, "seed must be a whole number, found 'x'"),
        ({"executor": "moon"}, "executor must be one of "),
        ({"debug": True, "workers": 2}, "--debug runs one trial at a time on this machine, so omit --workers"),
        ({"last_failed": True, "sample": 3}, "--last-failed conflicts with --sample"),
        ({"against": "last", "until": "decided", "limit": 3}, "--limit conflicts with --against"),
        ({"cache": True, "replay": "a"}, "--cache and --replay conflict"),
        ({"record": "a", "rerun": "failed"}, "--record requires a complete run, but --rerun runs a part of one"),
        ({"replay_mode": "new"}, "--replay-mode requires --replay"),
    ],
)
def test_what_no_run_can_have_is_refused(given, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        EvalSettings(**given).check()


def test_the_bounds_themselves_are_within():
    EvalSettings(threshold=0.0, alpha=0.5, until="decided", workers=1, budget_usd=0.01, timeout_s=0.001).check()
    EvalSettings(threshold=1.0, sample=2, seed=-1, against="last", margin=0.05, until="decided").check()


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [
        ("tags", "a", ("a",)),
        ("tags", ["a", "b"], ("a", "b")),
        ("filter", ["a", "b"], ("a", "b")),
        ("exports", [Path("a.csv")], ("a.csv",)),
        ("out", Path("run"), "run"),
        ("variables", {"a": 1}, {"a": 1}),
    ],
)
def test_python_gives_lists_and_paths_too(name, given, taken):
    assert SETTINGS[name].given(given) == taken
