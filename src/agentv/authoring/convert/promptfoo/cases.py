"""promptfoo's tests as cases."""

from __future__ import annotations

import re
from itertools import chain, count

from agentv.authoring.convert.promptfoo.assertions import assertions
from agentv.authoring.convert.promptfoo.prompts import Prompts
from agentv.authoring.convert.promptfoo.source import FILE, Source, mapping, ordered, text_node
from agentv.authoring.convert.promptfoo.tables import REFUSED
from agentv.authoring.convert.promptfoo.targets import judge_of
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty
from agentv.templating import has_placeholder

_WORD = re.compile(r"[a-z0-9]+")
_LONGEST = 60
_KEPT = frozenset({"description", "threshold", "metadata"})
_AROUND = frozenset({"prefix", "suffix"})
_RESHAPE = "reshape the answer with 'transform' of an assertion, or in the target"


class CaseConverter:
    """Makes cases, and gives each an id of its own.

    Attributes:
        made: the cases so far.
        prompts: what they are asked.
    """

    def __init__(self, source: Source, prompts: Prompts) -> None:
        self.made: list[Node] = []
        self.prompts = prompts
        self._source = source
        self._ids: set[str] = set()
        self._number = 0

    def take(self, node: Node) -> None:
        """One test."""
        self._number += 1
        if not isinstance(node, MapNode):
            self._source.tell(node, "this test is not a mapping")
            self.made.append(node)
            return
        items: dict[str, Node] = {"id": text_node(self._id(node), node.at)}
        for key, item in node.items.items():
            items |= self._key(key, item, node)
        if self.prompts.asked is not None:
            items["input"] = self._asked(self.prompts.asked, node.get("options"))
        identity, description = items.pop("id"), items.pop("description", None)
        first = {"id": identity} if description is None else {"id": identity, "description": description}
        self.made.append(mapping(node, {**first, **ordered(items)}))

    def _id(self, node: MapNode) -> str:
        said = node.get("id") or node.get("description")
        slug = "-".join(_WORD.findall(said.text.lower()))[:_LONGEST].strip("-") if isinstance(said, Scalar) else ""
        slug = slug or f"test-{self._number}"
        numbered = (f"{slug}-{number}" for number in count(2))
        name = next(one for one in chain([slug], numbered) if one not in self._ids)
        self._ids.add(name)
        return name

    def _key(self, key: str, item: Node, node: MapNode) -> dict[str, Node]:
        if key == "id":
            return {}
        if key in _KEPT:
            return {key: item}
        if key == "assert":
            return {} if is_empty(item) else {key: assertions(item, self._source)}
        if key == "vars":
            return variables(item, self._source)
        if key == "options" and isinstance(item, MapNode):
            return self._options(item)
        self._source.tell(node.keys[key], f"'{key}' of a test has no equivalent", REFUSED.get(key))
        return {key: item}

    def _options(self, node: MapNode) -> dict[str, Node]:
        """A judge; what stands around the prompt is taken up by the input. The rest stays, and is refused."""
        around = _AROUND if isinstance(self.prompts.asked, Scalar) else frozenset()
        rest = {key: item for key, item in node.items.items() if key not in around}
        judge = judge_of(rest["provider"], self._source) if "provider" in rest else None
        made: dict[str, Node] = {}
        if judge is not None:
            del rest["provider"]
            made["judge"] = judge
        for key in rest.keys() - {"provider"}:
            hint = REFUSED.get(key, "put it into the prompt" if key in _AROUND else _RESHAPE)
            self._source.tell(node.keys[key], f"the option '{key}' of a test has no equivalent", hint)
        return {**made, "unconverted_options": mapping(node, rest)} if rest else made

    @staticmethod
    def _asked(asked: Node, options: Node | None) -> Node:
        if not isinstance(asked, Scalar) or not isinstance(options, MapNode) or not _AROUND & options.items.keys():
            return asked
        before, after = (options.get(key) for key in ("prefix", "suffix"))
        first, last = (one.text if isinstance(one, Scalar) else "" for one in (before, after))
        return text_node(f"{first}{asked.text}{last}", asked.at)


def variables(node: Node, source: Source) -> dict[str, Node]:
    """The keys `vars` and, where a list stands for as many cases, `expand`."""
    if isinstance(node, Scalar) and node.text.startswith(FILE):
        found = source.document(node.text, node)
        node = found if isinstance(found, MapNode) else node
    if is_empty(node):
        return {}
    if not isinstance(node, MapNode):
        source.tell(node, "'vars' is not a mapping", "write the variables here")
        return {"vars": node}
    kept = {key: _variable(key, item, source) for key, item in node.items.items()}
    made: dict[str, Node] = {"vars": mapping(node, {key: item for key, item in kept.items() if item is not None})}
    if any(isinstance(item, ListNode) for item in node.items.values()):
        made["expand"] = Scalar(True, "true", node.at)
    return made


def _variable(key: str, node: Node, source: Source) -> Node | None:
    """A variable's value; None where there is none: its placeholder is undefined then, and is refused."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return node
    if source.is_code(node.value):
        source.tell(node, f"the variable '{key}' is computed by '{node.text}'", "write its value")
        return None
    if node.value.startswith(FILE):
        return source.content(node)
    if has_placeholder(node.value):
        hint = "write the resulting value"
        source.tell(node, f"the variable '{key}' contains a placeholder, but agentv does not render variables", hint)
    return node
