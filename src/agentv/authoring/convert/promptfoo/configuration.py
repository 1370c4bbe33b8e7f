"""promptfoo's configuration as an eval file (SPEC section 2).

Nothing is dropped silently: what has no equivalent is reported, and stays where it would change a verdict, so that the
eval file is refused until somebody has decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from glob import has_magic
from pathlib import Path

from agentv.authoring.convert.promptfoo.assertions import assertions
from agentv.authoring.convert.promptfoo.cases import CaseConverter, variables
from agentv.authoring.convert.promptfoo.prompts import prompts_of
from agentv.authoring.convert.promptfoo.source import FILE, Source, mapping, ordered, text_node
from agentv.authoring.convert.promptfoo.tables import REFUSED, WITHOUT_EFFECT
from agentv.authoring.convert.promptfoo.targets import judge_of, targets
from agentv.authoring.convert.promptfoo.thresholds import marked
from agentv.authoring.source.boundary import Boundary
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty
from agentv.authoring.source.report import Report
from agentv.authoring.source.spellings import CASE

NAMES = ("promptfooconfig.yaml", "promptfooconfig.yml", "promptfooconfig.json")
_KEYS = ({"prompts", "providers"}, {"prompts", "targets"})
_RUN = {"maxConcurrency": "workers", "repeat": "repeat"}
_HELD = (".yaml", ".yml", ".json", ".jsonl")


def is_promptfoo(path: Path, root: Node | None) -> bool:
    """Whether a file is promptfoo's configuration: by its name, else by its keys, and tests that need no id."""
    if path.name in NAMES:
        return True
    if not isinstance(root, MapNode) or not any(wanted <= root.items.keys() for wanted in _KEYS):
        return False
    tests = root.get("tests")
    listed = tests.items if isinstance(tests, ListNode) else []
    nameless = (isinstance(one, MapNode) and not one.items.keys() & set(CASE.spelled("id")) for one in listed)
    return "scenarios" in root.items or any(nameless)


def eval_file(path: Path, root: MapNode, report: Report, boundary: Boundary) -> Mapping[str, Node]:
    """What the eval file holds; the report gets what has no equivalent.

    Args:
        path: of the configuration.
        root: what it says.
        report: gets warnings with the places of the configuration.
        boundary: what may be read.
    """
    return _Converter(path, Source(path.absolute().parent, report, boundary)).converted(root)


class _Converter:
    def __init__(self, path: Path, source: Source) -> None:
        self._path = path
        self._source = source
        self._made: dict[str, Node] = {}

    def converted(self, root: MapNode) -> Mapping[str, Node]:
        stem = self._path.name.partition(".")[0]
        name = self._path.absolute().parent.name if stem == "promptfooconfig" else stem
        self._made = {"name": text_node(name or "promptfoo", root.at)}
        items = dict(root.items)
        prompts = prompts_of(items.pop("prompts", None), self._source, root)
        tests = items.pop("tests", None)
        scenarios = items.pop("scenarios", None)
        self._default_test(items.pop("defaultTest", None))
        for key, item in items.items():
            self._key(key, item, root)
        self._made |= prompts.head
        found = self._tests(tests, scenarios, CaseConverter(self._source, prompts), root)
        head, found = marked(self._made, found)
        return {**ordered(head), "tests": found}

    def _key(self, key: str, item: Node, root: MapNode) -> None:
        if key in ("description", "tags", "env"):
            self._made[key] = item
        elif key in ("providers", "targets"):
            self._made["targets"] = targets(item, self._source)
        elif key in ("evaluateOptions", "commandLineOptions"):
            self._run(key, item)
        elif key in WITHOUT_EFFECT:
            self._source.tell(root.keys[key], f"'{key}' is omitted", WITHOUT_EFFECT[key])
        else:
            self._source.tell(root.keys[key], f"'{key}' has no equivalent", REFUSED.get(key))
            self._made[key] = item

    def _run(self, key: str, node: Node) -> None:
        if not isinstance(node, MapNode):
            self._source.tell(node, f"'{key}' is not a mapping and is omitted")
            return
        before = self._made.get("run")
        run = dict(before.items) if isinstance(before, MapNode) else {}
        run |= {_RUN[option]: item for option, item in node.items.items() if option in _RUN}
        for option in node.items.keys() - _RUN.keys():
            self._source.tell(node.keys[option], f"'{option}' is omitted", "see 'agentv eval --help'")
        if run:
            self._made["run"] = mapping(node, run)

    def _default_test(self, node: Node | None) -> None:
        if isinstance(node, Scalar) and node.text.startswith(FILE):
            node = self._source.document(node.text, node)
        if not isinstance(node, MapNode):
            if node is not None and not is_empty(node):
                self._source.tell(node, "'defaultTest' is not a mapping")
                self._made["default_test"] = node
            return
        made: dict[str, Node] = {}
        for key, item in node.items.items():
            if key == "assert":
                made[key] = assertions(item, self._source)
            elif key == "options" and isinstance(item, MapNode):
                made |= self._default_options(item)
            elif key == "vars":
                made |= variables(item, self._source)
            else:
                if key not in ("threshold", "metadata"):
                    self._source.tell(node.keys[key], f"'{key}' of 'defaultTest' has no equivalent", REFUSED.get(key))
                made[key] = item
        if made:
            self._made["default_test"] = mapping(node, made)

    def _default_options(self, node: MapNode) -> dict[str, Node]:
        rest = dict(node.items)
        judge = rest.pop("provider", None)
        found = judge_of(judge, self._source) if judge is not None else None
        if found is not None:
            self._made["judge"] = found
        elif judge is not None:
            rest["provider"] = judge
        for key in rest.keys() - {"provider"}:
            self._source.tell(node.keys[key], f"the option '{key}' of 'defaultTest' has no equivalent")
        return {"unconverted_options": mapping(node, rest)} if rest else {}

    def _tests(self, tests: Node | None, scenarios: Node | None, cases: CaseConverter, root: MapNode) -> Node:
        given = tests if isinstance(tests, ListNode) else ListNode([tests] if tests is not None else [], root.at)
        items = given.items
        if items and scenarios is None and all(_is_table(item) for item in items):
            return self._tables(items, cases, root)
        for item in items:
            self._test(item, cases)
        for scenario in scenarios.items if isinstance(scenarios, ListNode) else [scenarios] if scenarios else []:
            self._scenario(scenario, cases)
        if not cases.made:
            self._source.tell(root, "there are no tests", "add cases under 'tests'")
        return ListNode(list(cases.made), root.at)

    def _tables(self, items: list[Node], cases: CaseConverter, root: MapNode) -> Node:
        """CSV files alone: their rows are asked what the suite's `input` says."""
        if cases.prompts.asked is not None:
            self._made["input"] = cases.prompts.asked
        paths: list[Node] = [
            text_node(item.text.removeprefix(FILE), item.at) for item in items if isinstance(item, Scalar)
        ]
        return paths[0] if len(paths) == 1 else ListNode(paths, root.at)

    def _test(self, item: Node, cases: CaseConverter) -> None:
        if not isinstance(item, Scalar):
            cases.take(item)
            return
        written = item.text.removeprefix(FILE)
        paths = self._source.matched(item) or [] if has_magic(written) else [written]
        if not paths or not all(path.endswith(_HELD) for path in paths):
            hint = "put the rows in a separate suite; for a program that generates tests, use file.py:function"
            self._source.tell(item, f"the tests of '{item.text}' cannot be mixed with others", hint)
            cases.made.append(item)
            return
        for path in paths:
            found = self._source.document(path, item)
            for one in found.items if isinstance(found, ListNode) else [found] if found is not None else []:
                cases.take(one)

    def _scenario(self, node: Node, cases: CaseConverter) -> None:
        """Every test of a scenario, with each of its configurations."""
        if isinstance(node, Scalar) and node.text.startswith(FILE):
            found = self._source.document(node.text, node)
            for one in found.items if isinstance(found, ListNode) else [found] if found is not None else []:
                self._scenario(one, cases)
            return
        configs = node.get("config") if isinstance(node, MapNode) else None
        tests = node.get("tests") if isinstance(node, MapNode) else None
        if not isinstance(configs, ListNode) or not isinstance(tests, ListNode):
            self._source.tell(node, "this scenario is not converted", "write its tests under 'tests'")
            cases.made.append(node)
            return
        for config in configs.items:
            for test in tests.items:
                cases.take(_merged(config, test))


def _is_table(node: Node) -> bool:
    return isinstance(node, Scalar) and node.text.endswith(".csv")


def _merged(config: Node, test: Node) -> Node:
    if not isinstance(config, MapNode) or not isinstance(test, MapNode):
        return test
    items = {**config.items, **test.items}
    for key in ("vars", "metadata", "options"):
        one, other = config.get(key), test.get(key)
        if isinstance(one, MapNode) and isinstance(other, MapNode):
            items[key] = MapNode({**one.items, **other.items}, {**one.keys, **other.keys}, other.at)
    one, other = config.get("assert"), test.get("assert")
    if isinstance(one, ListNode) and isinstance(other, ListNode) and not is_empty(one):
        items["assert"] = ListNode([*one.items, *other.items], other.at)
    return MapNode(items, {**config.keys, **test.keys}, test.at)
