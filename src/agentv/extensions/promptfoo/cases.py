"""Converts promptfoo's tests to cases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain, count

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, plain
from agentv.extensions.promptfoo.assertions import assertions
from agentv.extensions.promptfoo.code import names_code
from agentv.extensions.promptfoo.prompts import Prompt, Prompts
from agentv.extensions.promptfoo.rewriting import matched_prompts, prompts_of_provider, without_prompts
from agentv.extensions.promptfoo.source import (
    FILE,
    Source,
    chat,
    identity_of,
    items_of,
    list_items,
    mapping,
    mapping_items,
    ordered,
    providers_key,
    text_in,
    text_node,
    value_at,
    without,
)
from agentv.extensions.promptfoo.tables import REFUSED
from agentv.extensions.promptfoo.targets import targets
from agentv.extensions.promptfoo.test_parts import AFFIXES, options_of, variables

SIMULATED_USER = "promptfoo:simulated-user"
_SERVERS = ("http", "webhook:", "websocket:", "ws:", "wss:")
_OPTIONS = ("instructions", "maxTurns", "stateful", "initialMessages")
_ROLES = ("user", "assistant", "system")
_ENDING_NOTE = "the model that plays the user ends the conversation by a key of its JSON reply, not by '###STOP###'"
_MODEL_HINT = "it is 'user' under 'defaults' of .agentv/targets.yaml, else the judge; promptfoo asks its own service"


def is_simulated(provider: Node | None) -> bool:
    """Whether the provider of a test is a simulated user."""
    return identity_of(provider) == SIMULATED_USER


def with_system_prompts(prompts: Prompts, source: Source) -> Prompts:
    """The prompts as system messages, as promptfoo sends them to a target that talks with a simulated user."""
    entries: list[Node] = []
    for number, one in enumerate(prompts.found, 1):
        label = one.label or text_node(f"prompt-{number}", one.content.at)
        entries.append(mapping(one.content, {"label": label, "prompt": _system(one.content, source)}))
    return replace(prompts, head={"prompts": ListNode(entries, entries[0].at)} if prompts.head else {})


def refuse_servers(providers: Iterable[Node], source: Source) -> None:
    """Report servers: promptfoo sends them a simulated user's conversation as JSON in place of the prompt."""
    for provider in providers:
        if identity_of(provider).startswith(_SERVERS):
            then = "then write a target with 'provider: http' and '{{ messages }}' in 'body'"
            message = "a server that talks with a simulated user has no equivalent"
            source.error(value_at(provider, "id") or provider, message, f"convert the file without it, {then}")


def with_user(provider: Node, prompt: Node | None, given: Mapping[str, Node], source: Source) -> dict[str, Node]:
    """The keys of a case with a simulated user: `user`, and the messages before the user's first one as `input`.

    Args:
        provider: the simulated user, with its `config`.
        prompt: the only prompt; None if there are several, which the suite lists.
        given: the variables of the test, not rendered.
        source: reads files, and reports what has no equivalent.
    """
    config = value_at(provider, "config")
    settings = dict(mapping_items(config))
    source.remark(provider, _ENDING_NOTE, _MODEL_HINT)
    own, opening = settings.pop("initialMessages", None), given.get("initialMessages")
    stateful = settings.pop("stateful", None)
    if isinstance(stateful, Scalar) and stateful.value is True:
        hint = "agentv sends the whole conversation each time; remove it if the provider takes that"
        source.error(stateful, "'stateful' of a simulated user has no equivalent", hint)
    goal, most = settings.pop("instructions", None), settings.pop("maxTurns", None)
    user = {"goal": goal if goal is not None and not is_empty(goal) else text_node("{{ instructions }}", provider.at)}
    if most is not None and not is_empty(most):
        user["max_turns"] = most
    for key in settings:
        assert isinstance(config, MapNode)  # noqa: S101  # only a mapping has keys
        source.unknown_key(key, config.keys[key], " of a simulated user", _OPTIONS)
    user["output"] = text_node("transcript", provider.at)
    first = [] if prompt is None else _system(prompt, source).items
    messages = [*first, *_messages(own if opening is None or is_empty(opening) else opening, source)]
    made: dict[str, Node] = {"user": mapping(provider, user)}
    return {**made, "input": ListNode(messages, provider.at)} if messages else made


def _system(prompt: Node, source: Source) -> ListNode:
    """The prompt as a list of one system message."""
    if not isinstance(prompt, Scalar):
        hint = "write the text of the system message"
        source.error(prompt, "a prompt of messages before a simulated user has no equivalent", hint)
    return ListNode([mapping(prompt, {"role": text_node("system", prompt.at), "content": prompt})], prompt.at)


def _messages(node: Node | None, source: Source) -> list[Node]:
    """The messages before the first one of the simulated user."""
    if isinstance(node, Scalar) and node.text.startswith(FILE):
        node = source.document(node.text, node)
    elif isinstance(node, Scalar) and not is_empty(node):
        found = chat(node.text, node.at)
        if found is None and "{{" in node.text:
            source.error(node, "'initialMessages' of a variable have no equivalent", "write them as a list of messages")
        elif found is None:
            source.remark(node, "this text is omitted: promptfoo reads a list of messages")
        node = found
    kept: list[Node] = []
    for one in items_of(node):
        role, content = value_at(one, "role"), value_at(one, "content")
        if isinstance(role, Scalar) and (role.text in _ROLES or "{{" in role.text) and isinstance(content, Scalar):
            kept.append(mapping(one, {"role": role, "content": content}))
        elif not is_empty(one):
            source.remark(
                one, "this message is omitted: promptfoo sends only texts of a user, an assistant or a system"
            )
    return kept


_WORD = re.compile(r"[a-z0-9]+")
_LONGEST = 60
_KEPT = frozenset({"description", "threshold", "metadata"})
_CONVERTED = frozenset({"assert", "vars", "options"})


class CaseConverter:
    """Converts tests to cases with unique ids.

    Args:
        source: reads files, and reports what has no equivalent.
        prompts: the prompts of the configuration.
        targets: id or label of a provider → target.
        defaults: the variables of `defaultTest`.
        user: the simulated user of `defaultTest`, for tests without their own provider.

    Attributes:
        made: the cases converted so far.
        prompts: the prompts of the configuration.
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

    def add(self, node: Node) -> None:
        """Convert one test and append its case."""
        self._number += 1
        if not isinstance(node, MapNode):
            self._source.error(node, "this test is not a mapping")
            self.made.append(node)
            return
        items: dict[str, Node] = {"id": text_node(self._id(node), node.at)}
        for key, item in node.items.items():
            made = self._key(key, item, node)
            if "expand" in items and "expand" in made:  # `options` takes precedence over `vars`
                made["expand"] = items["expand"] if key == "vars" else made["expand"]
            items |= made
        prompt, options = self.prompts.single, node.get("options")
        if isinstance(prompt, Scalar) and AFFIXES & mapping_items(options).keys():
            before, after = (text_in(value_at(options, key)) for key in ("prefix", "suffix"))
            prompt = text_node(f"{before}{prompt.text}{after}", prompt.at)
        user = node.get("provider") or self._user
        if self.prompts.head and is_simulated(user) != is_simulated(self._user):
            hint = "write a configuration for each kind of test"
            self._source.error(node, "several prompts for tests with and without a simulated user", hint)
        if user is not None and is_simulated(user):
            items |= with_user(user, prompt, {**self._defaults, **mapping_items(node.get("vars"))}, self._source)
        elif prompt is not None:
            items["input"] = prompt
        identity, description = items.pop("id"), items.pop("description", None)
        first = {"id": identity} if description is None else {"id": identity, "description": description}
        self.made.append(mapping(node, {**first, **ordered(items)}))

    def _id(self, node: MapNode) -> str:
        name = text_in(node.get("id") or node.get("description"))
        slug = "-".join(_WORD.findall(name.lower()))[:_LONGEST].strip("-")
        return _new_id(slug or f"test-{self._number}", self._ids)

    def _key(self, key: str, item: Node, node: MapNode) -> dict[str, Node]:
        is_handled = (key == "prompts" and self._names_all_prompts(item)) or (key == "provider" and is_simulated(item))
        if key == "id" or is_empty(item) or is_handled:
            return {}
        if key in _KEPT:
            return {key: item}
        if key in ("provider", "providers"):
            return self._target(key, item, node)
        if key in _CONVERTED:
            return self._converted(key, item, node)
        if key in REFUSED:
            self._source.error(node.keys[key], f"'{key}' of a test has no equivalent", REFUSED[key])
            return {}
        self._source.unknown_key(key, node.keys[key], " of a test", (*_KEPT, *_CONVERTED, "provider", "id", "prompts"))
        return {}

    def _converted(self, key: str, item: Node, node: MapNode) -> dict[str, Node]:
        if key == "assert":
            return {key: assertions(item, self._source)}
        if key == "vars":
            off = value_at(node, "options", "disableVarExpansion")
            expands = not (isinstance(off, Scalar) and off.value is True)
            return variables(item, self._source, self._defaults, expands=expands)
        around = AFFIXES if isinstance(self.prompts.single, Scalar) else frozenset()
        return options_of(item, self._source, around)

    def _target(self, key: str, item: Node, node: MapNode) -> dict[str, Node]:
        """The `target` of a case; no key if the test names every target of the suite."""
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
        self._source.error(node.keys[key], f"'{key}' of a test has no equivalent", REFUSED[key])
        return {}

    def _names_all_prompts(self, item: Node) -> bool:
        """Whether a test names every prompt of the configuration."""
        named = [one.text for one in items_of(item) if isinstance(one, Scalar)]
        labels = {one.label.text for one in self.prompts.found if one.label is not None}
        return "*" in named or (len(labels) == len(self.prompts.found) > 0 and labels <= set(named))


def plain_name(node: Node) -> str:
    """The name that identifies a target."""
    name = node.get("name") or node.get("provider") if isinstance(node, MapNode) else node
    return name.text if isinstance(name, Scalar) else str(plain(node))


_PROMPTS = "prompts"
_COMPARED = frozenset({"select-best", "max-score"})


class Matrix(Struct, frozen=True):
    """The prompts of each provider and of each test.

    Attributes:
        root: the configuration, with `prompts` removed from its providers and tests.
        providers: for each provider, the indexes of its prompts.
        tests: for each test, the indexes of its prompts.
    """

    root: MapNode
    providers: tuple[frozenset[int], ...]
    tests: tuple[frozenset[int], ...]


def matrix_of(root: MapNode) -> Matrix | None:
    """The matrix of a configuration, or None if all prompts go everywhere, or if cases cannot express it.

    Cases can if all tests are in the configuration and none compares the answers of several prompts or providers.
    """
    place = providers_key(root)
    providers, prompts, tests = items_of(root.get(place)), items_of(root.get(_PROMPTS)), items_of(root.get("tests"))
    by_provider = [prompts_of_provider(one) for one in providers]
    by_test = [value_at(one, _PROMPTS) for one in tests]
    in_files = any(text_in(one).startswith(FILE) for one in providers)
    placed = all(isinstance(one, MapNode) and not one.items.keys() & {"provider", "providers"} for one in tests)
    compared = any(map(_compares, [root.get("defaultTest"), *tests]))
    can_be_written = bool(tests) and placed and not in_files and not compared and "scenarios" not in root.items
    if all(one is None for one in [*by_provider, *by_test]) or not can_be_written:
        return None
    each = tuple(matched_prompts(one, prompts) for one in by_provider)
    chosen = tuple(matched_prompts(one, prompts) for one in by_test)
    if not all(each) or not all(chosen):  # some name matches no prompt
        return None
    kept: dict[str, Node] = {
        place: ListNode([without_prompts(one) for one in providers], root.at),
        "tests": ListNode([without(one, _PROMPTS) for one in tests], root.at),
    }
    return Matrix(mapping(root, {**root.items, **kept}), each, chosen)


def _compares(node: Node | None) -> bool:
    """Whether a test compares the answers of several prompts or providers."""
    if isinstance(node, ListNode):
        return any(map(_compares, node.items))
    if not isinstance(node, MapNode):
        return text_in(node).startswith(FILE)  # a default test in another file may do so
    kind = node.get("type")
    return (isinstance(kind, Scalar) and kind.text in _COMPARED) or _compares(node.get("assert"))


def is_expandable(matrix: Matrix, prompts: Prompts) -> bool:
    """Whether each entry of `prompts` is one prompt with a text, which a case can contain."""
    written = all(one.file is None or not names_code(one.file.text) for one in prompts.found)
    return written and len(prompts.found) == len(items_of(matrix.root.get(_PROMPTS)))


def expanded(matrix: Matrix, prompts: Prompts, targets: Node | None, cases: Node) -> ListNode:
    """The cases, each with one prompt, and with one target if not every target gets that prompt.

    Args:
        matrix: the prompts of each provider and test.
        prompts: all prompts of the configuration.
        targets: the targets, in the order of the providers.
        cases: one case for each test.
    """
    entries = items_of(targets)
    taken: set[str] = set()
    made: list[Node] = []
    for case, chosen in zip(list_items(cases), matrix.tests, strict=True):
        for number in sorted(chosen):
            prompt = prompts.found[number]
            receivers = [one for one, each in zip(entries, matrix.providers, strict=True) if number in each]
            case_targets = [None] if len(receivers) == len(entries) else receivers
            made += [_case(case, prompt, number, target, taken) for target in case_targets]
    return ListNode(made, cases.at)


def _case(case: Node, prompt: Prompt, number: int, target: Node | None, taken: set[str]) -> Node:
    items = mapping_items(case)
    label = prompt.label.text if prompt.label is not None else f"prompt-{number + 1}"
    parts = [text_in(items.get("id")) or "test", label, "" if target is None else plain_name(target)]
    slugs = ("-".join(_WORD.findall(part.lower())) for part in parts)
    first: dict[str, Node] = {"id": text_node(_new_id("-".join(filter(None, slugs)), taken), case.at)}
    if "description" in items:
        first["description"] = items["description"]
    if target is not None:
        first["target"] = target
    return mapping(case, {**first, "input": prompt.content, **without(case, "id").items})


def _new_id(wanted: str, taken: set[str]) -> str:
    """Return the wanted id, with a number if it is taken, and add it to the taken ones."""
    numbered = (f"{wanted}-{number}" for number in count(2))
    found = next(one for one in chain([wanted], numbered) if one not in taken)
    taken.add(found)
    return found
