"""Pass thresholds of converted tests, by promptfoo's rule.

Without a threshold, a test of promptfoo's passes if each of its assertions does. `threshold: 1` says that of assertions
that score 1 or 0. One that is graded between them may pass at less; where there is one, every assertion of the case is
required, and the score has no say.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.extensions.promptfoo.translation.assertions import is_graded, required, weighed
from agentv.extensions.promptfoo.translation.source import Source, mapping, number_node
from agentv.extensions.promptfoo.translation.tables import SCORED


def marked(head: Mapping[str, Node], tests: Node, source: Source) -> tuple[dict[str, Node], Node]:
    """The suite and its cases with the marks at which they pass.

    Args:
        head: the keys of the suite.
        tests: its cases.
        source: gets what counts otherwise in a test with a threshold.
    """
    _report_scores(head, tests, source)
    _report_sets(head, tests, source)
    default = head.get("default_test")
    shared = default.get("assert") if isinstance(default, MapNode) else None
    if isinstance(default, MapNode) and "threshold" in default.items:
        flat = {**default.items, "assert": weighed(shared)} if isinstance(shared, ListNode) else default.items
        cases = [_weighed_case(one) for one in tests.items] if isinstance(tests, ListNode) else []
        found = ListNode(cases, tests.at) if isinstance(tests, ListNode) else tests
        return {**head, "default_test": mapping(default, flat)}, found
    made = {**head, "threshold": number_node(1, tests.at)}
    if not isinstance(tests, ListNode):
        return made, tests
    mixed = any(isinstance(one, MapNode) and "threshold" in one.items for one in tests.items)
    gated = [_marked_case(one, shared, mixed=mixed) for one in tests.items]
    changed = any(one is not other for one, other in zip(gated, tests.items, strict=True))
    if changed and not mixed and isinstance(shared, ListNode) and isinstance(default, MapNode):
        made["default_test"] = mapping(default, {**default.items, "assert": required(shared)})
    return made, ListNode(gated, tests.at)


def _report_scores(head: Mapping[str, Node], tests: Node, source: Source) -> None:
    """Report types that count their score in promptfoo and 1 or 0 here, in tests with a threshold."""
    default = head.get("default_test")
    places = [default, *(tests.items if isinstance(tests, ListNode) else [])]
    marks = [one for one in places if isinstance(one, MapNode) and "threshold" in one.items]
    for place in places if default in marks else [default, *marks] if marks else []:
        entries = place.get("assert") if isinstance(place, MapNode) else None
        for entry in entries.items if isinstance(entries, ListNode) else []:
            kind = entry.get("type") if isinstance(entry, MapNode) else None
            if isinstance(kind, Scalar) and kind.text.removeprefix("not-") in SCORED:
                message = (
                    f"in a test with a threshold, '{kind.text}' counts its score in promptfoo and 1 or 0 in agentv"
                )
                source.tell(kind, message, "remove the threshold of the test; the assertion has its own")


def _report_sets(head: Mapping[str, Node], tests: Node, source: Source) -> None:
    """Report sets with a threshold above 0 whose assertions count their scores in promptfoo, and 1 or 0 here."""
    default = head.get("default_test")
    if isinstance(default, MapNode) and "threshold" in default.items:
        return
    for place in [default, *(tests.items if isinstance(tests, ListNode) else [])]:
        entries = place.get("assert") if isinstance(place, MapNode) and "threshold" not in place.items else None
        for entry in entries.items if isinstance(entries, ListNode) else []:
            mark = entry.get("threshold") if isinstance(entry, MapNode) else None
            inner = entry.get("assert") if isinstance(entry, MapNode) else None
            score = mark.value if isinstance(mark, Scalar) and isinstance(mark.value, int | float) else 0
            if (score > 0 and is_graded(inner)) or (0 < score < 1 and _is_scored(inner)):
                message = (
                    "in a set with a threshold, a graded assertion counts its score in promptfoo, 1 or 0 in agentv"
                )
                source.tell(entry, message, "move the threshold to the test")


def _is_scored(node: Node | None) -> bool:
    """Whether an assertion of a list counts a score between 0 and 1 in promptfoo."""
    kinds = [one.get("type") for one in (node.items if isinstance(node, ListNode) else []) if isinstance(one, MapNode)]
    return any(isinstance(one, Scalar) and one.text.removeprefix("not-") in SCORED for one in kinds)


def _weighed_case(case: Node) -> Node:
    own = case.get("assert") if isinstance(case, MapNode) else None
    if not isinstance(case, MapNode) or not isinstance(own, ListNode):
        return case
    return mapping(case, {**case.items, "assert": weighed(own)})


def _marked_case(case: Node, shared: Node | None, *, mixed: bool) -> Node:
    """A case; with gates where something of it is graded.

    Args:
        case: as it was converted.
        shared: the assertions of `default_test`.
        mixed: other cases have a threshold, and for them what is shared is no gate: the case brings it by itself.
    """
    if not isinstance(case, MapNode):
        return case
    if "threshold" in case.items:
        return _weighed_case(case)
    own = case.get("assert")
    if not is_graded(shared) and not is_graded(own):
        return case
    items: dict[str, Node] = {**case.items, "threshold": number_node(0, case.at)}
    entries = list(own.items) if isinstance(own, ListNode) else []
    if mixed and isinstance(shared, ListNode):
        entries += shared.items
        items["skip_defaults"] = Scalar(True, "true", case.at)
    if entries:
        items["assert"] = required(ListNode(entries, case.at))
    return mapping(case, items)
