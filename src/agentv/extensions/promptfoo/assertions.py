"""Converts promptfoo's assertions, and the thresholds of its tests. What has no equivalent is reported.

In promptfoo, a test without a threshold passes if each of its assertions passes. If all of them score 1 or 0, that is
`threshold: 1`. A graded assertion may pass with a lower score; a case with one gets `threshold: 0`, and all of its
assertions are `required`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from agentv.app.registries import registries
from agentv.authoring.cases.data_files.csv_table import LIST_TYPES
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.extensions.promptfoo.code import transform_of
from agentv.extensions.promptfoo.settings import assertion_on_calls
from agentv.extensions.promptfoo.source import (
    FILE,
    Source,
    list_items,
    mapping,
    mapping_items,
    number_node,
    text_in,
    text_node,
    value_at,
    whole_number,
    without,
)
from agentv.extensions.promptfoo.tables import (
    ABSENT,
    ANY_SCORE,
    ASSERTION_KEYS,
    CODE,
    CONFIGURED,
    GRADED,
    MEASURES,
    OWN_THRESHOLD,
    RENAMED,
    RUBRICS,
    SAME,
    SCHEMAS,
    SCORED,
    THRESHOLDS,
    USED,
)
from agentv.extensions.promptfoo.targets import embedder_of, named_judge_of
from agentv.extensions.promptfoo.test_parts import judge_prompt_of
from agentv.templating import has_placeholder

_NUMBERS = re.compile(
    r"(?<![\w.])\.?\d|\bscore\b|\b(?:Math|min|max|round|sum|len|length|float|Number|parse\w+)\b|[\w)\]] ?[/*] ?[\w(]"
)
_COMPARES = re.compile(
    r"===?|!==?|<=?|>=?|\.includes\(|\.startsWith\(|\.endsWith\(|\.test\(|\.some\(|\.every\(|\bin\b|\bnot\b|^!"
)
_SCORES = re.compile(r"\bscore\b|(?<!\w)0?\.\d")


def may_score(value: Node | None, source: Source) -> bool:
    """Whether code may return a score between 0 and 0.5, which passes in promptfoo but not in agentv."""
    if not isinstance(value, Scalar) or not isinstance(value.value, str):
        return False
    text = value.value.strip()
    if text.startswith(FILE):
        path = source.directory / text.removeprefix(FILE).split(":")[0]
        if not source.boundary.admits(str(path)):
            return False
        try:
            text = source.reading.reader.read(str(path)).decode()
        except (OSError, UnicodeDecodeError):
            return False
        return _SCORES.search(text) is not None
    if "\n" in text or "return" in text:
        return _SCORES.search(text) is not None
    return _NUMBERS.search(text) is not None and _COMPARES.search(text) is None


_MEMBER = re.compile(r"output(?:\.[A-Za-z_]\w*)+")
_ITEM = re.compile(r'\s*(?:"(?P<quoted>(?:\\["\\]|""|[^"])*)"\s*(?=,|$)|(?P<plain>[^,\s][^,]*))')
_ESCAPED = re.compile(r'[\\"](["\\])')
_RETURNS = re.compile(r"\breturn\b|\bthrow\b")
_REDTEAM = "promptfoo:redteam:"


def assertions(node: Node, source: Source) -> Node:
    """The converted entries of an `assert` list, including those of nested lists and of files that it names."""
    if not isinstance(node, ListNode):
        source.error(node, "'assert' is not a list")
        return node
    return ListNode([entry for item in node.items for entry in _entries(item, source)], node.at)


def _entries(node: Node, source: Source) -> list[Node]:
    if isinstance(node, ListNode):
        return [entry for item in node.items for entry in _entries(item, source)]
    if isinstance(node, Scalar) and node.text.startswith(FILE) and not source.is_code(node.text):
        found = source.document(node.text, node)
        if isinstance(found, ListNode | MapNode):
            return _entries(found, source.inside(node.text))
    return [_entry(node, source)]


def _entry(node: Node, source: Source) -> Node:
    if not isinstance(node, MapNode):
        source.error(node, "an assertion in promptfoo is a mapping", "write it as a mapping with 'type'")
        return node
    kind = node.get("type")
    if not isinstance(kind, Scalar) or not isinstance(kind.value, str):
        source.error(node, "this assertion has no type")
        return node
    inverted = kind.value.startswith("not-")
    name = kind.value.removeprefix("not-")
    if name == "assert-set":
        return _set(node, source)
    ours = name if name in SAME else RENAMED.get(name)
    calls = assertion_on_calls(kind, node, source) if ours is None else None
    if calls is not None:
        kept = {key: item for key, item in node.items.items() if key not in ("type", "value")}
        made = _converted(mapping(node, {**kept, "type": calls["type"]}), kind, "is-json", source)
        return mapping(node, {**mapping_items(made), **calls})
    if ours is None:
        if name.startswith(_REDTEAM):
            hint = "agentv does not grade attacks; judge the answer with llm-rubric"
        else:
            hint = ABSENT.get(name, "promptfoo has no such type either: write it as an agentv assertion")
        source.error(kind, f"'{name}' has no equivalent", hint)
        return node  # the reader reports its unknown type
    return _converted(node, text_node(f"not-{ours}" if inverted else ours, kind.at), ours, source)


def _set(node: MapNode, source: Source) -> Node:
    items: dict[str, Node] = {}
    for key, item in node.items.items():
        if key == "assert":
            items[key] = assertions(item, source)
        elif key in ("metric", "type", "weight", "threshold"):
            items[ASSERTION_KEYS.get(key, key)] = item
        elif key == "config" and is_empty(item):
            continue
        else:
            source.unknown_key(key, node.keys[key], " of an assert-set", ("assert", "metric", "weight", "threshold"))
    if "threshold" in items:
        return mapping(node, items)
    inner = items.get("assert")  # without a threshold, every assertion of a set must pass
    if isinstance(inner, ListNode) and is_graded(inner):
        items["assert"] = required(inner)
        items["threshold"] = Scalar(0, "0", node.at)
    else:
        items["threshold"] = Scalar(1, "1", node.at)
    return mapping(node, items)


def is_graded(node: Node | None) -> bool:
    """Whether some assertion of a list may pass with a score below 1."""
    return any(_name(one) in GRADED or value_at(one, "min_score") is not None for one in list_items(node))


def with_flat_sets(entries: ListNode) -> ListNode:
    """The assertions of a case with a threshold, with each set replaced by its entries.

    In such a case, a set counts as its mean score in promptfoo, and as 1 or 0 in agentv. Entries that share the weight
    of their set give the same mean.
    """
    return ListNode([one for entry in entries.items for one in _flat_set(entry)], entries.at)


def _flat_set(entry: Node) -> list[Node]:
    inner = list_items(value_at(entry, "assert"))
    whole, weights = _weight(entry), [_weight(one) for one in inner]
    if not sum(weights):
        return [entry]
    made: list[Node] = []
    for one, weight in zip(inner, weights, strict=True):
        share = round(whole * weight / sum(weights), 9)
        items = without(one, "required").items
        made.append(mapping(one, {**items, "weight": number_node(share, one.at)} if share != 1 else items))
    return made


def _weight(entry: Node) -> float:
    weight = value_at(entry, "weight")
    return float(weight.value) if isinstance(weight, Scalar) and isinstance(weight.value, int | float) else 1.0


def required(entries: ListNode) -> ListNode:
    """The entries, marked as `required` except for those with weight 0, which always pass in promptfoo."""
    made: list[Node] = []
    for one in entries.items:
        weight = value_at(one, "weight")
        weighs_nothing = isinstance(weight, Scalar) and weight.value == 0
        if "type" in mapping_items(one) and not weighs_nothing:
            made.append(mapping(one, {**mapping_items(one), "required": Scalar(True, "true", one.at)}))
        else:
            made.append(one)
    return ListNode(made, entries.at)


def _converted(node: MapNode, kind: Scalar, ours: str, source: Source) -> Node:
    items: dict[str, Node] = {}
    for key, item in node.items.items():
        items |= _key(key, item, node, ours, source)
    items["type"] = kind
    if ours in THRESHOLDS:
        items.setdefault("threshold", Scalar(THRESHOLDS[ours], str(THRESHOLDS[ours]), node.at))
    measure = MEASURES.get(_name(node))
    if measure is not None:
        items["measure"] = text_node(measure, kind.at)
    value = items.get("value")
    if value is not None:
        written = _value(value, ours, source)
        if written is None:
            return node
        items["value"] = _with_return(written, value, kind, source) if ours == "javascript" else written
    if ours in USED:
        _adjust_usage_check(items, kind, ours)
    if ours in CODE and "threshold" not in items and may_score(value, source):
        items["threshold"] = Scalar(ANY_SCORE, f"{ANY_SCORE:f}", node.at)
    return mapping(node, items)


def _with_return(written: Node, node: Node, kind: Scalar, source: Source) -> Node:
    """The code. Several lines without `return` always fail in promptfoo, so a `return` that fails is appended."""
    text = written.value if isinstance(written, Scalar) and isinstance(written.value, str) else ""
    if text_in(node).startswith(FILE) or "\n" not in text.rstrip() or _RETURNS.search(text):
        return written
    message = "JavaScript of several lines returns nothing without 'return', and always fails, here as in promptfoo"
    source.remark(node, message, "write 'return' before the last expression")
    fails = "true" if kind.text.startswith("not-") else "false"
    return text_node(f"{text.rstrip()}\nreturn {fails};\n", written.at)


def _key(key: str, item: Node, node: MapNode, ours: str, source: Source) -> dict[str, Node]:
    if key in ASSERTION_KEYS:
        return {ASSERTION_KEYS[key]: item}
    if key == "threshold" and ours in OWN_THRESHOLD | CODE | GRADED:
        return {key if ours in OWN_THRESHOLD | CODE else "min_score": item}
    if key == "threshold":
        source.remark(node.keys[key], f"'threshold' is omitted: promptfoo does not read it for '{ours}'")
        return {}
    if key in _TRANSFORMS:
        is_member = key == "contextTransform" and isinstance(item, Scalar) and _MEMBER.fullmatch(item.text)
        made = (
            text_node(f"${text_in(item).removeprefix('output')}", item.at) if is_member else transform_of(item, source)
        )
        return {} if made is None else {_TRANSFORMS[key]: made}
    convert = _SPECIAL.get(key)
    if convert is not None:
        return convert(item, ours, source)
    source.unknown_key(key, node.keys[key], " of an assertion", (*ASSERTION_KEYS, "threshold", *_SPECIAL, *_TRANSFORMS))
    return {}


def _config(node: Node, ours: str, source: Source) -> dict[str, Node]:
    if is_empty(node):
        return {}
    if ours in CONFIGURED:
        return {"config": node}
    source.error(node, f"'config' of '{ours}' has no equivalent", "javascript and python take 'config'")
    return {}


def _provider(node: Node, ours: str, source: Source) -> dict[str, Node]:
    if ours == "similar":
        found = embedder_of(node, source)
        return {"provider": node} if found is None else {"embedder": found}
    kind = registries().assertions.find(ours)
    if kind is None or not kind.options.needs_judge:
        source.remark(node, f"'provider' of '{ours}' is omitted: promptfoo does not read it there")
        return {}
    return named_judge_of(node, source) or {"provider": node}


def _rubric_prompt(node: Node, ours: str, source: Source) -> dict[str, Node]:
    made = judge_prompt_of(node, source) if ours in RUBRICS else None
    if made is not None:
        return {"prompt": made}
    if ours not in RUBRICS:
        source.error(node, f"'rubricPrompt' of '{ours}' has no equivalent", "write it as llm-rubric with a 'prompt'")
    return {}


_TRANSFORMS = {"transform": "transform", "contextTransform": "context_transform"}

_SPECIAL: Mapping[str, Callable[[Node, str, Source], dict[str, Node]]] = {
    "provider": _provider,
    "rubricPrompt": _rubric_prompt,
    "config": _config,
}
"""Key of an assertion → its conversion, given its value and the type's name in agentv."""


def _name(node: Node) -> str:
    """The type of an assertion, without `not-`."""
    return text_in(value_at(node, "type")).removeprefix("not-")


def _adjust_usage_check(items: dict[str, Node], kind: Scalar, ours: str) -> None:
    """Apply promptfoo's rules: a negated list forbids each name, and a skill's `max` without `min` allows zero uses."""
    value = items.get("value")
    if isinstance(value, ListNode) and kind.text != ours:
        items["match"] = text_node("any", kind.at)
    if isinstance(value, MapNode) and ours == "skill-used" and "max" in value.items and "min" not in value.items:
        items["value"] = mapping(value, {**value.items, "min": Scalar(0, "0", value.at)})


def _value(node: Node, ours: str, source: Source) -> Node | None:
    """The value of an assertion, or None if it has no equivalent, which is reported."""
    if isinstance(node, Scalar) and isinstance(node.value, str):
        if ours in CODE:
            path = node.value.removeprefix(FILE)
            function = ":get_assert" if ours == "python" and ".py:" not in path else ""
            return text_node(path + function, node.at) if node.value.startswith(FILE) else node
        if source.is_code(node.value):
            hint = "write an assertion of type python that names a function"
            source.error(node, f"the computed value '{node.text}' has no equivalent", hint)
            return None
        if node.value.startswith(FILE) and ours not in SCHEMAS:
            content = source.content(node)
            if content is None:
                return None
            node = content
        if ours in SCHEMAS and not node.text.startswith(FILE):
            own = Report()
            found = read_yaml(span_of(node.at).file, node.text.encode(), own).value
            return _checked(found if isinstance(found, MapNode) and not own.failed else node, source)
        return _listed(node, ours, source) if ours in LIST_TYPES else node
    return _checked(node, source) if ours in SCHEMAS else whole_number(node)


def _checked(schema: Node, source: Source) -> Node:
    """Return the schema after reporting each `format` in it, which promptfoo checks and agentv does not."""
    if isinstance(schema, ListNode):
        for one in schema.items:
            _checked(one, source)
    elif isinstance(schema, MapNode):
        for key, one in schema.items.items():
            if key == "format" and isinstance(one, Scalar):
                source.error(
                    one, f"agentv does not check the format '{one.text}' of a JSON Schema", "write a 'pattern'"
                )
            _checked(one, source)
    return schema


def _listed(node: Scalar, ours: str, source: Source) -> Node | None:
    """The items of a comma-separated text, or None if it has placeholders or an unclosed quote, which is reported."""
    if has_placeholder(node.text):
        message = f"promptfoo renders the value of '{ours}' before it splits it at its commas"
        source.error(node, message, "write a list, with a placeholder for one text in each item")
        return None
    # items in double quotes may contain commas
    pairs = (one.group("quoted", "plain") for one in _ITEM.finditer(node.text))
    found = [plain.strip() if quoted is None else _ESCAPED.sub(r"\1", quoted) for quoted, plain in pairs]
    if any(one.startswith('"') for one in found):
        source.error(node, f"a quotation mark in the value of '{ours}' is not closed", "write a list")
        return None
    return ListNode([text_node(item, node.at) for item in found], node.at)


def with_thresholds(head: Mapping[str, Node], tests: Node, source: Source) -> tuple[dict[str, Node], Node]:
    """The suite's keys and its cases, with the thresholds at which cases pass.

    Args:
        head: the keys of the suite.
        tests: its cases.
        source: reports assertions whose score counts differently in promptfoo.
    """
    _report_scores(head, tests, source)
    _report_sets(head, tests, source)
    default = head.get("default_test")
    shared = value_at(default, "assert")
    if isinstance(default, MapNode) and "threshold" in default.items:
        flat = {**default.items, "assert": with_flat_sets(shared)} if isinstance(shared, ListNode) else default.items
        found = ListNode(list(map(_flat_case, tests.items)), tests.at) if isinstance(tests, ListNode) else tests
        return {**head, "default_test": mapping(default, flat)}, found
    made = {**head, "threshold": number_node(1, tests.at)}
    if not isinstance(tests, ListNode):
        return made, tests
    mixed = any(isinstance(one, MapNode) and "threshold" in one.items for one in tests.items)
    gated = [_case_with_threshold(one, shared, mixed=mixed) for one in tests.items]
    changed = any(one is not other for one, other in zip(gated, tests.items, strict=True))
    if changed and not mixed and isinstance(shared, ListNode) and isinstance(default, MapNode):
        made["default_test"] = mapping(default, {**default.items, "assert": required(shared)})
    return made, ListNode(gated, tests.at)


def _report_scores(head: Mapping[str, Node], tests: Node, source: Source) -> None:
    """Report assertions that count as their score in promptfoo and as 1 or 0 here, in tests with a threshold."""
    default = head.get("default_test")
    places = [default, *list_items(tests)]
    marks = [one for one in places if "threshold" in mapping_items(one)]
    for place in places if default in marks else [default, *marks] if marks else []:
        for entry in list_items(value_at(place, "assert")):
            kind = value_at(entry, "type")
            if isinstance(kind, Scalar) and _name(entry) in SCORED:
                message = (
                    f"in a test with a threshold, '{kind.text}' counts its score in promptfoo and 1 or 0 in agentv"
                )
                source.error(kind, message, "remove the threshold of the test; the assertion has its own")


def _report_sets(head: Mapping[str, Node], tests: Node, source: Source) -> None:
    """Report sets with a threshold above 0 whose assertions count as their scores in promptfoo and as 1 or 0 here."""
    default = head.get("default_test")
    if isinstance(default, MapNode) and "threshold" in default.items:
        return
    for place in [default, *list_items(tests)]:
        for entry in [] if "threshold" in mapping_items(place) else list_items(value_at(place, "assert")):
            mark, inner = value_at(entry, "threshold"), value_at(entry, "assert")
            score = mark.value if isinstance(mark, Scalar) and isinstance(mark.value, int | float) else 0
            is_scored = any(_name(one) in SCORED for one in list_items(inner))
            if (score > 0 and is_graded(inner)) or (0 < score < 1 and is_scored):
                message = (
                    "in a set with a threshold, a graded assertion counts its score in promptfoo, 1 or 0 in agentv"
                )
                source.error(entry, message, "move the threshold to the test")


def _flat_case(case: Node) -> Node:
    own = value_at(case, "assert")
    if not isinstance(case, MapNode) or not isinstance(own, ListNode):
        return case
    return mapping(case, {**case.items, "assert": with_flat_sets(own)})


def _case_with_threshold(case: Node, shared: Node | None, *, mixed: bool) -> Node:
    """The case, with its assertions `required` if any of them is graded.

    Args:
        case: the converted case.
        shared: the assertions of `default_test`.
        mixed: whether other cases have a threshold, so that `shared` cannot be `required` there; the case copies it.
    """
    if not isinstance(case, MapNode):
        return case
    if "threshold" in case.items:
        return _flat_case(case)
    own = case.get("assert")
    if not is_graded(shared) and not is_graded(own):
        return case
    items: dict[str, Node] = {**case.items, "threshold": number_node(0, case.at)}
    entries = list(list_items(own))
    if mixed and isinstance(shared, ListNode):
        entries += shared.items
        items["skip_defaults"] = Scalar(True, "true", case.at)
    if entries:
        items["assert"] = required(ListNode(entries, case.at))
    return mapping(case, items)
