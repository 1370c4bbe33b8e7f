"""Evidence that an agent used a skill, from each agent's calls in its trace."""

import json

import pytest
from msgspec.structs import replace

from agentv.extensions.agents.assertions.skills import Activation, skill_at, skills_of
from agentv.extensions.agents.assertions.trajectory import SkillUsed
from agentv.model.values.message import ToolCall
from agentv.model.values.tool_names import canonical_name
from agentv.model.values.trace import MessageStep, ToolCallStep, Trace
from agentv.model.values.trace_summary import messages_of
from doubles.nested_grading import answer, graded

AT = "/work/.claude/skills/refund/SKILL.md"


def steps(native, arguments, **given):
    return (
        MessageStep("user", "refund it"),
        ToolCallStep(canonical_name(native), arguments, native, "call-1", **{"status": "completed", **given}),
        MessageStep("assistant", "I used the skill 'refund' of skills/refund/SKILL.md."),
    )


def used(native, arguments, **given):
    """Whether an agent with this one call in its trace used the skill `refund` and no other."""
    trace = Trace(steps(native, arguments, **given), source="test")
    context = answer("done", messages=messages_of(trace), agent_trace=trace)
    assert not graded(SkillUsed("other"), context).passed
    found = graded(SkillUsed("refund"), context)
    assert found.error is None
    return found.passed


@pytest.mark.parametrize(
    ("native", "arguments"),
    [
        ("Skill", {"skill": "refund"}),  # Claude Code
        ("activate_skill", {"name": "refund"}),  # Gemini CLI
        ("Read", {"file_path": AT}),
        ("view", {"path": "/w/.github/skills/refund/SKILL.md"}),
        ("read_many_files", {"paths": ["a.md", AT]}),
        ("read", {"path": "/work/refund/SKILL.md"}),  # a skill outside any skills directory
        ("read", {"path": ".claude/skills/refund/references/rules.md"}),
        ("shell", {"command": ["bash", "-lc", f"cat {AT}"]}),  # Codex
        ("command_execution", {"command": f"/bin/bash -lc 'cat {AT} 2>/dev/null && ls'"}),
        ("exec_command", {"cmd": f"sed -n '1,200p;200q' {AT}"}),
        ("Bash", {"command": "ls -la; cd .claude/skills/refund && cat SKILL.md"}),
        ("powershell", {"command": "Get-Content .github/skills/refund/SKILL.md"}),
        ("run_shell_command", {"command": f"sudo env A=1 head -n 40 {AT}"}),
    ],
)
def test_a_call_that_gave_the_agent_the_skill_is_a_use(native, arguments):
    assert used(native, arguments)


@pytest.mark.parametrize(
    ("native", "arguments"),
    [
        ("Bash", {"command": "find . -name SKILL.md"}),
        ("Bash", {"command": f"grep -rn refund .claude/skills {AT}"}),
        ("Bash", {"command": f"echo see {AT}"}),
        ("Bash", {"command": f"git add {AT}; git commit -m 'cat {AT}'"}),
        ("Bash", {"command": f"cat > {AT}"}),
        ("Bash", {"command": f"cat {AT} > copy.md"}),
        ("Bash", {"command": f"cat > notes.md <<'EOF'\ncat {AT}\nEOF\n"}),
        ("Bash", {"command": f"cat '{AT}"}),
        ("Bash", {"command": f"cat {AT}".rjust(3_000_000, "a")}),
        ("Grep", {"pattern": "refund", "path": AT}),
        ("Edit", {"file_path": AT, "old_string": "a", "new_string": "b"}),
        ("apply_patch", {"input": f"*** Update File: {AT}"}),
        ("Read", {"path": None, "file_path": 3, "files": [{}, 4]}),
        ("Skill", {"skill": ["refund"]}),
        ("Task", {"prompt": f"cat {AT}"}),
        ("mcp__shop__read", {"path": AT}),
    ],
)
def test_other_calls_that_name_it_are_none(native, arguments):
    assert not used(native, arguments)


@pytest.mark.parametrize(
    "given", [{"status": "failed", "error": "no such file"}, {"status": "denied"}, {"status": "unknown"}]
)
@pytest.mark.parametrize(("native", "arguments"), [("Skill", {"skill": "refund"}), ("Bash", {"command": f"cat {AT}"})])
def test_a_call_that_failed_was_denied_or_has_no_result_is_none(native, arguments, given):
    assert not used(native, arguments, **given)


def test_calls_without_results_count_where_no_results_are_reported():
    read = ToolCallStep("read", {"path": AT}, "read", None, "text", status="completed")
    for others, passed in (((), True), ((read,), True), ((replace(read, arguments={"path": "a"}),), False)):
        trace = Trace((*steps("Skill", {"skill": "refund"}, status="unknown"), *others), source="transcript")
        context = answer("done", messages=messages_of(trace), agent_trace=trace)
        assert graded(SkillUsed("refund"), context).passed is passed


def test_a_tool_of_the_users_own_that_is_called_like_a_shell_is_none():
    assert list(skills_of(ToolCall("shell", {"command": f"cat {AT}"}))) == []


@pytest.mark.parametrize(
    ("path", "skill"),
    [
        ("skills/refund/SKILL.md", "refund"),
        ("/home/skills/work/.claude/skills/refund/rules.md", "refund"),
        ("skills\\refund\\SKILL.md", "refund"),
        ("skills/SKILL.md", "skills"),
        ("skills/*/SKILL.md", "*"),
        ("skills/$one/SKILL.md", None),
        ("./SKILL.md", None),
        ("", None),
    ],
)
def test_the_skill_of_a_path(path, skill):
    assert skill_at(path) == skill


def test_hostile_arguments_are_survived():
    deep = {"command": "cat skills/a/SKILL.md"}
    for _ in range(50):
        deep = {"action": deep}
    for given in (deep, {"command": "bash -c " * 50 + "'cat skills/a/SKILL.md'"}, json.loads('{"path": [[["x"]]]}')):
        assert list(skills_of(ToolCall("shell", given, native_name="Bash"))) in ([], ["a"])


class TestActivation:
    """Grading of one query by the skills that were loaded."""

    SKILLS = ("refund", "returns")

    def grade(self, value, *calls, **given):
        trace = Trace(
            (MessageStep("user", "q"), *calls, MessageStep("assistant", "x")), **{"source": "claude", **given}
        )
        context = answer("x", messages=messages_of(trace), agent_trace=trace)
        return graded(Activation(self.SKILLS, value, max_turns=1), context)

    @staticmethod
    def load(name, at=0):
        return ToolCallStep("skill", {"skill": name}, "Skill", f"call-{at}", "text", status="completed")

    @pytest.mark.parametrize(
        ("value", "loads", "passed", "loaded"),
        [
            ("refund", ["refund"], True, ["refund"]),
            ("refund", ["refund", "refund", "of-the-agent"], True, ["refund"]),
            ("refund", ["refund", "returns"], False, ["refund", "returns"]),
            ("refund", ["returns"], False, ["returns"]),
            ("refund", [], False, []),
            (None, [], True, []),
            (None, ["of-the-agent"], True, []),
            (None, ["returns"], False, ["returns"]),
        ],
    )
    def test_only_the_expected_one_of_the_listed_skills_is_right(self, value, loads, passed, loaded):
        found = self.grade(value, *(self.load(name, at) for at, name in enumerate(loads)))
        assert (found.passed, found.error, found.details["loaded"]) == (passed, None, loaded)

    def test_a_command_that_prints_all_of_them_loads_all(self):
        printed = {"command": "cat .claude/skills/re*/SKILL.md"}
        call = ToolCallStep("shell", printed, "Bash", "1", "text", status="completed")
        assert self.grade(None, call).details["loaded"] == ["refund", "returns"]

    def test_a_trace_that_cannot_tell_is_an_error_and_never_no_skill(self):
        titled = ToolCallStep("Load the refund skill", {}, "Load the refund skill", "1", "text", status="completed")
        for found in (
            graded(Activation(self.SKILLS), answer("x")),
            self.grade(None, partial="the agent was ended"),
            self.grade(None, titled, source="acp"),
        ):
            assert "are unknown" in found.error.message

    def test_an_agent_that_was_ended_at_its_limit_of_turns_has_shown_all_that_counts(self):
        later = (MessageStep("assistant", "one"), MessageStep("assistant", "two"))
        for loads, passed in (((), True), ((self.load("refund"),), False)):
            assert self.grade(None, *loads, *later, partial="the agent was ended").passed is passed
