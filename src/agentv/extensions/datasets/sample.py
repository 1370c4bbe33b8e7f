"""One sample of another tool, in terms that all their formats share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field

from agentv.authoring.source.nodes import Node, Place, Scalar, is_empty, node_of, written

DEEPEVAL = "deepeval"
OPENAI_EVALS = "openai-evals"
INSPECT = "inspect"
TAU_BENCH = "tau-bench"

TITLES = {
    DEEPEVAL: "goldens of deepeval",
    OPENAI_EVALS: "samples of OpenAI evals",
    INSPECT: "samples of Inspect",
    TAU_BENCH: "tasks of tau-bench",
}
"""Format → what a file of it contains, for messages."""


Entry: TypeAlias = dict[str, Any]
"""One entry of `assert`, as plain data."""


class DatasetSample(Struct, frozen=True):
    """One sample.

    Attributes:
        input: text, or a list of messages in agentv's form; None: a simulated user writes the first one.
        references: answers that are right, any one of them.
        at: where the sample starts.
        variables: become `vars` of the case.
        name: becomes the id where the sample gives none; several samples may share it.
        choices: answers to choose from, which the input does not show.
        user: the simulated user who talks with the target; None: the input is all that is asked.
        checks: what the sample itself says of a right answer.
        solution: calls of tools that make it pass; None: none are known.
    """

    input: Node | None
    references: tuple[str, ...]
    at: Place
    id: str | None = None
    name: str | None = None
    description: str | None = None
    variables: Mapping[str, Node] = field(default_factory=dict)
    metadata: Mapping[str, Node] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    user: Node | None = None
    checks: tuple[Entry, ...] = ()
    solution: Node | None = None


def text_of(node: Node | None) -> str | None:
    """The text of a scalar, as written; None for nothing, for blank text, and for lists and mappings."""
    if not isinstance(node, Scalar) or is_empty(node):
        return None
    return node.value if isinstance(node.value, str) else written(node.value)


def texts(values: Iterable[str], at: Place) -> Node:
    """A list of texts."""
    return node_of(list(values), at)
