"""Prompts that only some providers or tests get: a case for each test, prompt and provider that belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count

from msgspec import Struct

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.extensions.promptfoo.translation.cases import plain_name
from agentv.extensions.promptfoo.translation.generated import names_code
from agentv.extensions.promptfoo.translation.prompts import Prompt, Prompts
from agentv.extensions.promptfoo.translation.provider_prompts import (
    matched_prompts,
    prompts_of_provider,
    without_prompts,
)
from agentv.extensions.promptfoo.translation.source import FILE, items_of, mapping, text_node

_KEY = "prompts"
_COMPARED = frozenset({"select-best", "max-score"})
_WORD = re.compile(r"[a-z0-9]+")


class Matrix(Struct, frozen=True):
    """Which prompts each provider and each test gets.

    Attributes:
        root: the configuration, whose providers and tests say nothing of prompts.
        providers: for each provider the numbers of its prompts.
        tests: for each test the numbers of its prompts.
    """

    root: MapNode
    providers: tuple[frozenset[int], ...]
    tests: tuple[frozenset[int], ...]


def matrix_of(root: MapNode) -> Matrix | None:
    """The matrix of a configuration; None where every prompt goes everywhere, or where it cannot be written as cases.

    Its tests must stand in the configuration, and none may compare the answers of several prompts or providers.
    """
    place = "providers" if "providers" in root.items else "targets"
    providers, prompts, tests = items_of(root.get(place)), items_of(root.get(_KEY)), items_of(root.get("tests"))
    said = [prompts_of_provider(one) for one in providers]
    own = [one.get(_KEY) if isinstance(one, MapNode) else None for one in tests]
    if all(one is None for one in [*said, *own]) or not _can_be_written(root, providers, tests):
        return None
    each = tuple(matched_prompts(one, prompts) for one in said)
    chosen = tuple(matched_prompts(one, prompts) for one in own)
    if not all(each) or not all(chosen):  # a name that no prompt has
        return None
    kept: dict[str, Node] = {
        place: ListNode([without_prompts(one) for one in providers], root.at),
        "tests": ListNode([_without_prompts(one) for one in tests], root.at),
    }
    return Matrix(mapping(root, {**root.items, **kept}), each, chosen)


def _without_prompts(test: Node) -> Node:
    items = test.items if isinstance(test, MapNode) else {}
    return mapping(test, {key: item for key, item in items.items() if key != _KEY})


def _can_be_written(root: MapNode, providers: list[Node], tests: list[Node]) -> bool:
    named = [one for one in providers if isinstance(one, Scalar) and one.text.startswith(FILE)]
    placed = all(isinstance(one, MapNode) and not one.items.keys() & {"provider", "providers"} for one in tests)
    compared = any(_compares(one) for one in [root.get("defaultTest"), *tests])
    return bool(tests) and placed and not named and not compared and "scenarios" not in root.items


def _compares(node: Node | None) -> bool:
    """Whether a test compares the answers of several prompts or providers."""
    if isinstance(node, ListNode):
        return any(map(_compares, node.items))
    if not isinstance(node, MapNode):
        return isinstance(node, Scalar) and node.text.startswith(
            FILE
        )  # a default test of another file is not looked at
    kind = node.get("type")
    return (isinstance(kind, Scalar) and kind.text in _COMPARED) or _compares(node.get("assert"))


def fits(matrix: Matrix, prompts: Prompts) -> bool:
    """Whether each entry of `prompts` is one prompt, whose text can stand in a case."""
    written = all(one.file is None or not names_code(one.file.text) for one in prompts.found)
    return written and len(prompts.found) == len(items_of(matrix.root.get(_KEY)))


def written_out(matrix: Matrix, prompts: Prompts, said: Node | None, cases: Node) -> ListNode:
    """The cases, each with one prompt, and with one target where not every target gets that prompt.

    Args:
        matrix: which prompts belong where.
        prompts: all that there are.
        said: the targets, in the order of the providers.
        cases: one for each test.
    """
    targets = items_of(said)
    taken: set[str] = set()
    made: list[Node] = []
    listed = cases.items if isinstance(cases, ListNode) else []
    for case, chosen in zip(listed, matrix.tests, strict=True):
        for number in sorted(chosen):
            prompt = prompts.found[number]
            having = [one for one, each in zip(targets, matrix.providers, strict=True) if number in each]
            ends = [None] if len(having) == len(targets) else having
            made += [_case(case, prompt, number, target, taken) for target in ends]
    return ListNode(made, cases.at)


def _case(case: Node, prompt: Prompt, number: int, target: Node | None, taken: set[str]) -> Node:
    items: Mapping[str, Node] = case.items if isinstance(case, MapNode) else {}
    said = items.get("id")
    label = prompt.label.text if prompt.label is not None else f"prompt-{number + 1}"
    parts = [said.text if isinstance(said, Scalar) else "test", label, "" if target is None else plain_name(target)]
    identity = next(one for one in _numbered("-".join(_slugs(parts))) if one not in taken)
    taken.add(identity)
    first: dict[str, Node] = {"id": text_node(identity, case.at)}
    if "description" in items:
        first["description"] = items["description"]
    if target is not None:
        first["target"] = target
    return mapping(
        case, {**first, "input": prompt.content, **{key: item for key, item in items.items() if key != "id"}}
    )


def _slugs(parts: list[str]) -> Iterator[str]:
    for part in parts:
        words = _WORD.findall(part.lower())
        if words:
            yield "-".join(words)


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(2))
