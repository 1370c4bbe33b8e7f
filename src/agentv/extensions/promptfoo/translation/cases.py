"""promptfoo's tests as cases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain, count

from agentv.authoring.source.nodes import MapNode, Node, Scalar, is_empty, plain
from agentv.extensions.promptfoo.translation.assertions import assertions
from agentv.extensions.promptfoo.translation.options import AROUND, options_of
from agentv.extensions.promptfoo.translation.prompts import Prompts
from agentv.extensions.promptfoo.translation.providers.targets import targets
from agentv.extensions.promptfoo.translation.simulated_users import is_simulated, with_user
from agentv.extensions.promptfoo.translation.source import Source, items_of, mapping, ordered, text_node
from agentv.extensions.promptfoo.translation.tables import REFUSED
from agentv.extensions.promptfoo.translation.variables import variables

_WORD = re.compile(r"[a-z0-9]+")
_LONGEST = 60
_KEPT = frozenset({"description", "threshold", "metadata"})
_CONVERTED = frozenset({"assert", "vars", "options"})


class CaseConverter:
    """Makes cases, and gives each an id of its own.

    Args:
        source: gets what has no equivalent.
        prompts: what is asked.
        targets: targets by the ids and labels of providers.
        defaults: the variables of `defaultTest`.
        user: the simulated user of `defaultTest`, for tests without a provider of their own.

    Attributes:
        made: the cases so far.
        prompts: what they are asked.
    """

    def __init__(
        self,
        source: Source,
        prompts: Prompts,
        targets: Mapping[str, Node],
        defaults: Mapping[str, Node],
        user: Node | None,
    ) -> None:
        self.made: list[Node] = []
        self.prompts = prompts
        self._source = source
        self._targets = targets
        self._defaults = defaults
        self._user = user
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
            made = self._key(key, item, node)
            if "expand" in items and "expand" in made:  # what `options` says of lists wins
                made["expand"] = items["expand"] if key == "vars" else made["expand"]
            items |= made
        asked = None if self.prompts.asked is None else self._asked(self.prompts.asked, node.get("options"))
        user = node.get("provider") or self._user
        if self.prompts.head and is_simulated(user) != is_simulated(self._user):
            hint = "write a configuration for each kind of test"
            self._source.tell(node, "several prompts for tests with and without a simulated user", hint)
        if user is not None and is_simulated(user):
            given = node.get("vars")
            own = given.items if isinstance(given, MapNode) else {}
            items |= with_user(user, asked, {**self._defaults, **own}, self._source)
        elif asked is not None:
            items["input"] = asked
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
        is_seen_to = (key == "prompts" and self._asks_all(item)) or (key == "provider" and is_simulated(item))
        if key == "id" or is_empty(item) or is_seen_to:
            return {}
        if key in _KEPT:
            return {key: item}
        if key in ("provider", "providers"):
            return self._target(key, item, node)
        if key in _CONVERTED:
            return self._converted(key, item, node)
        if key in REFUSED:
            self._source.tell(node.keys[key], f"'{key}' of a test has no equivalent", REFUSED[key])
            return {}
        self._source.unread(key, node.keys[key], " of a test", (*_KEPT, *_CONVERTED, "provider", "id", "prompts"))
        return {}

    def _converted(self, key: str, item: Node, node: MapNode) -> dict[str, Node]:
        if key == "assert":
            return {key: assertions(item, self._source)}
        if key == "vars":
            options = node.get("options")
            off = options.get("disableVarExpansion") if isinstance(options, MapNode) else None
            expands = not (isinstance(off, Scalar) and off.value is True)
            return variables(item, self._source, self._defaults, expands=expands)
        around = AROUND if isinstance(self.prompts.asked, Scalar) else frozenset()
        return options_of(item, self._source, around)

    def _target(self, key: str, item: Node, node: MapNode) -> dict[str, Node]:
        """The one target of a case. Where it is all that the suite has, nothing needs to be said."""
        if isinstance(item, MapNode):
            return {"target": targets(item, self._source)}
        named = items_of(item)
        if key == "provider" and isinstance(item, Scalar) and item.text not in self._targets:
            return {"target": targets(item, self._source)}
        found = [self._targets.get(one.text) for one in named if isinstance(one, Scalar)]
        known = [one for one in found if one is not None]
        if len(known) == len(named):
            if {plain_name(one) for one in known} == {plain_name(one) for one in self._targets.values()}:
                return {}
            if len(known) == 1:
                return {"target": known[0]}
        self._source.tell(node.keys[key], f"'{key}' of a test has no equivalent", REFUSED[key])
        return {}

    def _asks_all(self, item: Node) -> bool:
        """Whether a test names all prompts that there are."""
        named = [one.text for one in items_of(item) if isinstance(one, Scalar)]
        labels = {one.label.text for one in self.prompts.found if one.label is not None}
        return "*" in named or (len(labels) == len(self.prompts.found) > 0 and labels <= set(named))

    @staticmethod
    def _asked(asked: Node, options: Node | None) -> Node:
        if not isinstance(asked, Scalar) or not isinstance(options, MapNode) or not AROUND & options.items.keys():
            return asked
        before, after = (options.get(key) for key in ("prefix", "suffix"))
        first, last = (one.text if isinstance(one, Scalar) else "" for one in (before, after))
        return text_node(f"{first}{asked.text}{last}", asked.at)


def plain_name(node: Node) -> str:
    """What tells one target from another."""
    name = node.get("name") or node.get("provider") if isinstance(node, MapNode) else node
    return name.text if isinstance(name, Scalar) else str(plain(node))
