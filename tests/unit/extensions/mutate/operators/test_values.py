import pytest

from agentv.extensions.mutate.operators.catalogue import OPERATORS
from agentv.extensions.mutate.operators.mutant import Answer
from agentv.extensions.mutate.operators.named import NamedWords

NAMED = NamedWords(frozenset({"30", "berlin"}), frozenset(), frozenset())


def made(operator, text, **given):
    return list(OPERATORS[operator].make(Answer("case", text, named=NAMED, **given)))


@pytest.mark.parametrize(
    ("operator", "text", "changes"),
    [
        ("change-number", "Within 30 days, really 30 days.", ['"30 days" became "60 days"']),
        ("change-number", "It costs 1,200 EUR or 2.50.", ['"1,200 EUR" became "2,400 EUR"', '"2.50" became "5.00"']),
        ("change-number", "See RFC-2616, v1.2.3, 10:30 and #12.", []),
        ("change-number", "Order 1234567 was sent.", ['"1234567 was" became "1234568 was"']),
        ("change-number", "On 5 March 2024 and 2024-03-05.", []),
        ("change-date", "On 5 March 2024.", ['"5 March 2024" became "5 April 2024"']),
        ("change-date", "On March 5th and 2024-12-01.", ['"March 5th" became "April 5th"', '"2024-12-01" became "2025-01-10"']),
        ("change-date", "Not a date: 2024-13-45.", []),
    ],
)  # fmt: skip
def test_a_value_changes_everywhere_and_keeps_its_form(operator, text, changes):
    changes = [one.replace("1234567 was", "1234567").replace("1234568 was", "1234568") for one in changes]
    found = made(operator, text)
    assert [one.change for one in found] == changes
