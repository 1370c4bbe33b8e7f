"""The case that was changed, checked alone, tells what a check of the whole file tells of it."""

import pytest

from agentv.extensions.editor.changed_case import Change, change_between, reduced
from agentv.extensions.editor.checking import OF_SEVERAL_CASES, check_changed_case, check_in_editor

CASES = "".join(f"- id: c{n}\n  input: hi\n  # of {n}\n  assert:\n  - contains: hi\n\n" for n in range(30))
TEXT = f"target: echo\nassert: [Is polite]\njudge: echo\ntests:  # all\n{CASES}run: {{repeat: 2}}\n"

EDITS = {
    "a misspelt type": lambda text: text.replace("contains", "contians", 8).replace("contians", "contains", 7),
    "a misspelt key": lambda text: text.replace("- id: c9\n  input", "- id: c9\n  inptu"),
    "a key that is missing": lambda text: text.replace("- id: c9\n  input: hi\n", "- id: c9\n"),
    "two lines more": lambda text: text.replace("# of 9\n", "# of 9\n  threshold: 9\n  tags: {}\n"),
    "broken YAML": lambda text: text.replace("- id: c9\n", "- id: [c9\n"),
    "a wrong last case": lambda text: text.replace("# of 29\n", "# of 29\n  repeat: many\n"),
    "nothing wrong": lambda text: text.replace("c9", "c99"),
}


def indented(text: str, by: str) -> str:
    """The text with its list of cases indented."""
    head, cases, rest = text.partition("- id: c0")
    cases, end, rest = (cases + rest).partition("run:")
    return head + "".join(by + line if line.strip() else line for line in cases.splitlines(keepends=True)) + end + rest


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("indent", ["", "  "])
def test_one_case_tells_the_same_as_the_whole_file(edit, indent, tmp_path) -> None:
    before = indented(TEXT, indent)
    path, after = str(tmp_path / "a.eval.yaml"), indented(edit(TEXT), indent)
    change = change_between(before.split("\n"), after.split("\n"))
    found = check_changed_case(path, change, {path: after.encode()})
    assert found is not None
    first, last, diagnostics = found
    whole = check_in_editor(path, "eval", {path: after.encode()}).diagnostics
    told = [one for one in whole if one.span and first <= one.span.line <= last and one.code not in OF_SEVERAL_CASES]
    assert list(diagnostics) == told


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("target: echo", "target: ecko"),
        lambda text: text.replace("repeat: 2", "repeat: 3"),
        lambda text: text.replace("tests:", "test:"),
        lambda text: text.replace("# of 3\n", "").replace("# of 5\n", ""),
        lambda text: "",
    ],
    ids=["the header", "what follows the cases", "no cases any more", "two cases", "everything"],
)
def test_a_change_of_more_than_one_case_asks_for_the_whole_file(edit) -> None:
    after = edit(TEXT)
    assert reduced(after.encode(), change_between(TEXT.split("\n"), after.split("\n"))) is None


def test_changes() -> None:
    assert change_between(["a", "b", "c"], ["a", "x", "y", "c"]) == Change(1, 3, 1)
    assert change_between(["a", "b", "c"], ["a", "c"]) == Change(1, 1, -1)
    assert change_between(["a"], ["a"]) == Change(1, 1, 0)
    assert change_between(["a", "a"], ["a", "a", "a"]) == Change(2, 3, 1)
