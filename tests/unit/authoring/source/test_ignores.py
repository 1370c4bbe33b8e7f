import pytest

from doubles.loading import found_in

CASE = "target: echo\ntests:\n  - id: a\n    input: x{asked}\n{above}    criteria: {said}\n    assert: [contains: x]\n"
IGNORE = "# agentv: ignore[criteria-not-judged]"
WARNS = "criteria-not-judged"


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({"said": f"is kind {IGNORE}"}, []),
        ({"above": f"    {IGNORE}\n"}, []),
        ({"above": f"    {IGNORE}\n    # since a person reads them\n"}, []),
        ({"asked": f" {IGNORE}"}, [("unused-ignore", 4), (WARNS, 5)]),
        ({"said": f'"is {IGNORE}"'}, [(WARNS, 5)]),
        ({"said": f"'is {IGNORE}'"}, [(WARNS, 5)]),
        *(
            ({"said": f"x # agentv: {one}"}, [(WARNS, 5), ("unused-ignore", 5)])
            for one in ("ignore", "ignore[]", "ignore[ ]")
        ),
        (
            {"said": "x\n    asert: [] # agentv: ignore[unknown-key]"},
            [(WARNS, 5), ("unknown-key", 6), ("unused-ignore", 6)],
        ),
    ],
)
def test_a_comment_silences_its_line_and_the_one_below_and_no_error(tmp_path, parts, found):
    text = CASE.format(**{"said": "is kind", "asked": "", "above": "", **parts})
    assert sorted(found_in(tmp_path, text, for_run=False), key=lambda one: one[1]) == found
