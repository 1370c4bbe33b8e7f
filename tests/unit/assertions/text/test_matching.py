import pytest

from agentv.assertions.text.matching import (
    Contains,
    ContainsAll,
    ContainsAny,
    EndsWith,
    Equals,
    IContains,
    IContainsAll,
    IContainsAny,
    Levenshtein,
    MaxTokens,
    MinTokens,
    Regex,
    StartsWith,
    WordCount,
)
from doubles.nested_grading import graded

ANSWER = "  Refunds take 5 days. See the Disclaimer below.\nIt costs 0 USD.  "

PASSING = [
    (Equals({"a": 1}), 'Here: {"a": 1}'),
    (Equals({"a": 1}), '```json\n{"a": 1}\n```'),
    (Contains("Disclaimer"), ANSWER),
    (Contains("\n"), ANSWER),
    (IContains("disclaimer"), ANSWER),
    (IContains("STRASSE"), "An der Straße"),
    (ContainsAny(("nothing", "Refunds")), ANSWER),
    (IContainsAny(("nothing", "REFUNDS")), ANSWER),
    (ContainsAll(("Refunds", "USD")), ANSWER),
    (IContainsAll(("refunds", "usd")), ANSWER),
    (StartsWith("Refunds"), ANSWER),
    (EndsWith("USD."), ANSWER),
    (StartsWith(" Refunds", trim=False), " Refunds take 5 days"),
    (EndsWith("USD. ", trim=False), "It costs 2 USD. "),
    (Equals(" yes", trim=False), " yes"),
    (Equals({"a": 1}, trim=False), ' {"a": 1} '),
    (Equals(""), "  "),
    (Equals({"a": 1, "b": [True, None]}), ' {"b": [true, null], "a": 1.0}\n'),
    (Equals(()), "[]"),
    (Regex(r"take \d+ days"), ANSWER),
    (Regex(r"^It costs", "m"), ANSWER),
    (Regex(r"refunds", "i"), ANSWER),
    (Regex(r"below\..It", "s"), ANSWER),
    (Regex(r"refunds # the word", "ix"), ANSWER),
    (Regex(r"refunds", "gi"), ANSWER),
    (Regex(r"\p{Lu}"), ANSWER),
    (Levenshtein("kitten", 3), "sitting"),
    (WordCount(3), "one  two\nthree"),
    (WordCount(11), "这是一个中文句子，共十个。"),
    (WordCount(4), "Don't stop - it’s 3.14!"),
    (WordCount(0), "-- __ … 👍"),
    (WordCount(2), "안녕하세요 세계"),
    (MaxTokens(1), "这是一个中文句子，共十个。"),
    (WordCount(max=2), "one two"),
    (WordCount(min=2, max=3), "one two three"),
    (MinTokens(2), "one two"),
    (MaxTokens(2), "one two"),
    (MaxTokens(0), ""),
]

FAILING = [
    (Contains("disclaimer"), ANSWER),
    (Contains("Refunds"), ""),
    (ContainsAny(("nothing", "refunds")), ANSWER),
    (IContainsAny(("nothing", "at all")), ANSWER),
    (ContainsAll(("Refunds", "usd")), ANSWER),
    (IContainsAll(("refunds", "eur")), ANSWER),
    (StartsWith("refunds"), ANSWER),
    (EndsWith("USD"), ANSWER),
    (StartsWith("Refunds", trim=False), " Refunds"),
    (EndsWith("USD.", trim=False), "2 USD.\n"),
    (Equals("yes", trim=False), "yes\n"),
    (Equals("yes"), "yes."),
    (Equals("yes"), "Yes"),
    (Equals({"a": 1}), '{"a": true}'),
    (Equals({"a": 1}), '{"a": 1, "b": 2}'),
    (Equals((1, 2)), "[2, 1]"),
    (Equals((1, 2)), "[1, 2, 3]"),
    (Regex(r"^It costs"), ANSWER),
    (Levenshtein("kitten", 2), "sitting"),
    (Levenshtein("kitten"), "k" * 100),
    (WordCount(3), "one two"),
    (WordCount(min=3), "one two"),
    (MinTokens(3), "one two"),
    (MaxTokens(1), "one two"),
]


@pytest.mark.parametrize(("assertion", "output"), PASSING, ids=lambda value: repr(value)[:50])
def test_passes(assertion, output):
    grade = graded(assertion, output)
    assert (grade.score, grade.passed, grade.error) == (1.0, True, None)
    assert grade.checks
    assert all(check.passed for check in grade.checks)


@pytest.mark.parametrize(("assertion", "output"), FAILING, ids=lambda value: repr(value)[:50])
def test_fails(assertion, output):
    grade = graded(assertion, output)
    assert (grade.score, grade.passed, grade.error) == (0.0, False, None)
    assert not all(check.passed for check in grade.checks)


@pytest.mark.parametrize(
    ("assertion", "label"),
    [
        (Contains("disclaimer"), "'disclaimer'"),
        (Contains("two\n  lines"), "'two lines'"),
        (Contains("\n"), r"'\n'"),
        (ContainsAny(("a", "b")), "'a', 'b'"),
        (ContainsAll(("a", "b", "c", "d", "e")), "'a', 'b', 'c' and 2 more"),
        (Equals({"a": 1}), "the object"),
        (Regex("a+"), "'a+'"),
        (WordCount(3), "exactly 3"),
        (WordCount(min=1, max=3), "1 to 3"),
        (MinTokens(3), "3"),
    ],
)
def test_label(assertion, label):
    assert assertion.label() == label


# invalid options


# regex timeout


class Hasty(Regex):
    limit_s = 0.05


def test_a_search_that_runs_away_is_an_errored_grade():
    grade = graded(Hasty(r"^(a|a)*$"), "a" * 40 + "!")
    assert grade.error.code == "regex-timeout"
    assert not grade.passed
    assert grade.negated() is grade


def test_a_search_stays_within_two_seconds_by_default():
    assert Regex("a").limit_s == 2.0


@pytest.mark.parametrize("kind", [ContainsAny, ContainsAll, IContainsAny, IContainsAll])
def test_more_texts_than_can_be_looked_for_are_an_errored_grade(kind):
    values = tuple(f"w{number}" for number in range(10_000))
    assert graded(kind(values), "x" * 300_000).error.code == "too-long"
    assert graded(kind(values), "x" * 3_000).error is None


@pytest.mark.parametrize("kind", [ContainsAll, IContainsAll])
def test_only_the_first_missing_texts_are_compared_with_similar_characters(kind):
    checks = graded(kind(tuple(f"{number}z" for number in range(25))), "0\u200bz 24\u200bz").checks
    assert [check.evidence.startswith("only invisible") for check in (checks[0], checks[24])] == [True, False]


@pytest.mark.parametrize(
    ("assertion", "output", "found"),
    [
        (Contains("30 days"), "🎉 within 30 days 🎉", ["30 days"]),
        (Contains("day"), "one day, two day", ["day"]),
        (Contains(" cat"), "concat cat", [" cat"]),
        (IContains("STRASSE"), "Die Strasse", ["Strasse"]),
        (IContains("strasse"), "Die Straße", []),  # case folding changes the length
        (ContainsAll(("a", "tent", "c")), "a b c", ["a", "c"]),
        (IContainsAll(("A", "C")), "a b c", ["a", "c"]),
        (ContainsAny(("60 days", "30 days")), "return it within 30 days", ["30 days"]),
        (IContainsAny(("DAYS", "hours")), "30 Days", ["Days"]),
        (StartsWith("Yes"), "  Yes, Yes", ["Yes"]),
        (EndsWith("end"), "end to end \n", ["end"]),
        (Regex(r"\d+ days?"), "in 30 days or 14 days", ["30 days"]),
        (Regex("x*"), "abc", []),
        (Contains("tent"), "30 days", []),
        (MinTokens(1), "30 days", []),
    ],
)
def test_a_check_has_the_place_of_what_it_found(assertion, output, found):
    for grade in (graded(assertion, output), graded(assertion, output).negated()):
        spans = [span for check in grade.checks for span in check.spans]
        assert [output[begin:end] for begin, end in spans] == found
