from msgspec.structs import replace

from agentv.judge.asked import asked_judge
from agentv.model.run.rubric import Rubric, RubricItem

PROSE = Rubric("freeform", text="is right")
LIST = Rubric("checklist", items=(RubricItem("r1", "says 42"), RubricItem("r2", "43", operator="contradiction")))


def asked(rubric=PROSE, criteria=None):
    return asked_judge("strict", "openai:small", rubric, criteria)


def test_a_rubric_is_known_by_what_it_asks_and_a_prompt_by_how():
    same = asked()
    for changed in (replace(PROSE, text="is wrong"), replace(PROSE, mode="closed-qa"), LIST):
        assert asked(changed).rubric_sha256 != same.rubric_sha256
    for changed in (replace(PROSE, prompt="{{ output }}"), replace(PROSE, votes=3), replace(PROSE, temperature=1.0)):
        assert asked(changed).rubric_sha256 == same.rubric_sha256
        assert asked(changed).prompt_sha256 != same.prompt_sha256
    assert asked(replace(PROSE, context=("retrieved",))) == same, "what was retrieved belongs to the answer"


def test_criteria_of_the_case_stand_in_for_a_rubric_without_text():
    assert asked(Rubric("freeform"), "is right").rubric_sha256 == asked().rubric_sha256
    assert asked(PROSE, "something else") == asked()


def test_people_read_the_rubric_as_text():
    assert asked().rubric == "is right"
    assert asked(LIST).rubric == "- says 42\n- must not contradict: 43"
    scale = Rubric("scale", text="is right", scale=(1, 5), pass_threshold=4)
    assert asked(scale).rubric == "is right\nPoints from 1 to 5; 4 or more pass."
    assert asked(Rubric("answer-relevance")).rubric == "answer-relevance"
