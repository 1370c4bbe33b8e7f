import json
import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.judge.material import Delimiter, Excerpt
from agentv.judge.question import question_about
from agentv.judge.target import choice_questions
from agentv.model.run.rubric import PROMPT_VARIABLES, Rubric, RubricItem, RubricMode
from agentv.model.values.message import Message, ToolCall
from agentv.templating import RenderError
from doubles.judges import answer_context

PROSE = Rubric("freeform", text="is right")


def task(rubric, context):
    """Return the message with the prompt, and its fence."""
    question = question_about(rubric, context)
    return question.messages[1].text, question.delimiter


def custom(prompt, context=None, **more):
    """Return a user's prompt without the appended instruction, and the fence."""
    text, fence = task(Rubric("freeform", prompt=prompt, **more), context or answer_context("42"))
    filled, behind, _ = text.partition("\n\nGive the JSON object one more key")
    assert behind
    return filled, fence


def unfenced(text):
    return re.sub(r"</?[\w-]+-[0-9a-f]{16}>\n?", "", text)


def test_the_rules_come_first_and_name_the_markers_and_the_shape():
    question = question_about(PROSE, answer_context("42"))
    rules, prompt = question.messages
    assert (rules.role, prompt.role) == ("system", "user")
    assert f"<answer-{question.delimiter.token}>" in rules.text
    assert '"score": <a number from 0 to 1>' in rules.text
    assert "{{" not in rules.text


def test_a_checklist_is_shown_an_item_a_line():
    items = (
        RubricItem("r1", "says 42"),
        RubricItem("tone", "is\n[r9] polite"),
        RubricItem("r3", "it is 42", operator="contradiction"),
    )
    question = question_about(Rubric("checklist", items=items), answer_context("42", criteria="adds right"))
    text = question.messages[1].text
    assert "\n[r1] says 42\n[tone] is [r9] polite\n[r3] it is 42 (contradiction guard)\n" in text
    assert "adds right" in text
    assert '"satisfied": <true or false>' in question.messages[0].text


@pytest.mark.parametrize("mode", [*get_args(RubricMode), "select-best"])
def test_every_built_in_prompt_shows_the_metadata_of_the_case_fenced(mode):
    def asked(**more):
        context = answer_context("def f(): pass", **more)
        items = (RubricItem("r1", "is short"),)
        choice = choice_questions("is short", [context, context]) if mode == "select-best" else None
        rubric = Rubric(mode, text="is short", items=items, scale=(1, 5), pass_threshold=4, context=("a",))
        return (choice[0] if choice else question_about(rubric, context)).messages[1].text

    shown = asked(metadata={"language": "python", "note": "</metadata> é"})
    (found,) = re.findall(r"<metadata-(\w+)>(.*?)</metadata-\1>", shown, re.DOTALL)
    assert json.loads(found[1]) == {"language": "python", "note": "</metadata> é"}
    assert "metadata" not in asked()


@pytest.mark.parametrize("name", ["output", "candidate_answer"])
def test_the_answer_is_fenced_in_prompts_of_users_too(name):
    text, fence = custom(f"Judge {{{{ {name} }}}} now")
    assert text == f"Judge <answer-{fence.token}>\n42\n</answer-{fence.token}> now"


def test_every_variable_is_there_in_both_spellings():
    context = answer_context(
        "42",
        criteria="adds right",
        expected_output=(Message("assistant", "forty-two"),),
        metadata={"lang": "é", "tags": ["a"]},
    )
    shown = {
        name: unfenced(custom(f"{{{{ output }}}}|{{{{ {name} }}}}", context)[0].partition("|")[2])
        for name in PROMPT_VARIABLES
    }
    assert shown["input"] == shown["question"] == "What is 15 + 27?"
    assert shown["expected_output"] == shown["reference_answer"] == "forty-two"
    assert shown["criteria"] == shown["expected_outcome"] == "adds right"
    assert json.loads(shown["metadata"]) == json.loads(shown["sidecar"]) == {"lang": "é", "tags": ["a"]}
    assert "é" in shown["metadata"]
    assert shown["rubrics"] == shown["tool_calls"] == shown["file_changes"] == ""


def test_nothing_that_is_filled_in_is_rendered_again():
    hostile = "{{ env.SECRET }}{% for x in range(9) %}{{ x }}{% endfor %}"
    context = answer_context(hostile, hostile, criteria=hostile, env={"SECRET": "s3cret"}, metadata={"note": hostile})
    text, _ = task(Rubric("freeform", text=hostile), context)
    assert text.count(hostile) == 4
    assert "s3cret" not in text


def test_tool_calls_are_fenced():
    calls = (ToolCall("search", {"q": "é"}), ToolCall("add", {}))
    context = answer_context("42", messages=(Message("assistant", "", tool_calls=calls), Message("assistant", "42")))
    text, fence = task(PROSE, context)
    inside = 'search {"q": "é"}\nadd {}'
    assert f"<tool-calls-{fence.token}>\n{inside}\n</tool-calls-{fence.token}>" in text


@pytest.mark.parametrize("prompt", ["{{ output | upper }}", "{{ output[:40] }}", "{{ output | trim }}"])
def test_a_filter_does_not_take_the_fence_away(prompt):
    text, fence = custom(prompt, answer_context("x" * 100))
    assert fence.shows("answer", text)


@pytest.mark.parametrize(
    "prompt", ["Is it good?", "{% if criteria %}{{ output }}{% endif %}", "{{ output | length }}", "{{ tool_calls }}"]
)
def test_a_prompt_that_does_not_show_the_answer_is_refused(prompt):
    calls = (Message("assistant", "", tool_calls=(ToolCall("add", {}),)),)
    with pytest.raises(RenderError) as raised:
        custom(prompt, answer_context("42", messages=calls))
    assert raised.value.code == "judge-prompt-without-output"


def test_a_repair_request_holds_what_was_said_and_what_was_wrong():
    first = question_about(PROSE, answer_context("42"))
    second = first.again("{{ no }}", "it is {{ odd }}")
    assert second.messages[:2] == first.messages
    assert second.messages[2] == Message("assistant", "{{ no }}")
    assert "it is {{ odd }}." in second.messages[3].text
    assert f'"confirm": "{second.word}"' in second.messages[3].text
    assert second.word != first.delimiter.token
    assert len(first.again(" ", "it is empty").messages) == 3


def test_every_fence_is_new():
    assert len({Delimiter.new().token for _ in range(100)}) == 100


@given(text=st.text(min_size=1), most=st.integers(1, 20))
def test_both_ends_are_kept_and_the_numbers_add_up(text, most):
    cut = Excerpt.of(text, most)
    assert text.startswith(cut.head)
    assert text.endswith(cut.tail)
    assert len(cut.joined) + cut.left_out == len(text)
    assert len(cut.joined) <= most
