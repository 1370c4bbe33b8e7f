from __future__ import annotations

import shlex
import subprocess
from fnmatch import fnmatchcase

from agentv.model.suite.workspace import Variant
from agentv.reports.run.failures import FailureGroups
from agentv.reports.run.rerun import RerunOptions
from doubles.trials import finished, trial

ROOT = "/repo"


def options(*, targets=("gpt",), here=ROOT, **settings):
    suite = {"name": "refunds", "path": "evals/refund.eval.yaml", "targets": [{"name": name} for name in targets]}
    return RerunOptions.of({"settings": settings, "suites": [suite]}, here=here, root=ROOT)


def command(given, *trials):
    found = FailureGroups()
    for one in trials:
        found.add(finished("failed", trial=one))
    (group,) = found.groups()
    rerun = given.rerun(group)
    return None if rerun is None else (shlex.split(rerun.command)[2:], rerun.cases)


def test_a_trial_is_named_by_its_case_target_prompt_and_variant_where_there_are_others():
    suite = {
        "name": "refunds",
        "path": "evals/refund.eval.yaml",
        "targets": [{"name": "gpt"}, {"name": "claude"}],
        "prompts": [{"id": "brief", "label": None}, {"id": "long", "label": None}],
        "variants": [{"name": "bare"}, {"name": "skill"}],
    }
    given = RerunOptions.of({"settings": {}, "suites": [suite]}, here=ROOT, root=ROOT)
    one = trial("a", prompt_id="brief", variant=Variant("skill", None, None, "x"))
    named = ["--target", "gpt", "--prompt", "brief", "--variant", "skill"]
    assert command(given, one)[0] == ["evals/refund.eval.yaml", "--filter", "a", *named]
    both = trial("a", prompt_id="long", variant=Variant("skill", None, None, "x"))
    assert command(given, one, both)[0][3:] == ["--target", "gpt", "--variant", "skill"]


def test_what_shapes_answers_and_grades_is_repeated_and_what_chose_cases_is_not():
    given = options(
        targets=("gpt",), judge="openai:gpt-5", threshold=0.75, repeat=3, variables={"lang": "de ch"},
        env_file=".env.ci", trust_data=True, filter="x*", limit=3, workers=9,
    )  # fmt: skip
    words, _ = command(given, trial("a"))
    assert words[3:] == [
        *("--var", "lang=de ch", "--judge", "openai:gpt-5", "--env-file", ".env.ci"),
        *("--repeat", "3", "--threshold", "0.75", "--trust-data"),
    ]
    on_the_command_line = RerunOptions.of(
        {"settings": {"targets": ["a", "b"]}, "suites": [{"name": "s", "path": "evals/refund.eval.yaml"}]},
        here=ROOT,
        root=ROOT,
    )
    assert command(on_the_command_line, trial("x", target="b"))[0][3:] == ["--target", "b"]


def test_a_shell_gives_back_every_id_and_no_pattern_selects_another():
    ids = ["it's", "a b", "$(rm -rf x)", "\x1b[2J", "back\\slash'\n", "\u202eevil", "x*", "a[b]*", "-x", "`id`", "ü"]
    for identity in ids:
        found = FailureGroups()
        found.add(finished("failed", trial=trial(identity)))
        line = options().rerun(found.groups()[0]).command
        assert line.isprintable()
        script = f"agentv() {{ printf '%s\\0' \"$@\"; }}; {line}"
        words = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout.decode().split("\0")
        pattern = words[words.index("--filter") + 1]
        assert pattern == identity or fnmatchcase(identity, pattern)
        assert not fnmatchcase("xyz", pattern)


def test_an_id_with_brackets_selects_no_other_case():
    for identity, other in {"[ab]": "a", "a [lang=de]": "a l", "[[]": "["}.items():
        pattern = command(options(), trial(identity))[0][2]
        assert fnmatchcase(identity, pattern)
        assert not fnmatchcase(other, pattern)
    assert command(options(), trial("a[0"))[0][2] == "a[0"
