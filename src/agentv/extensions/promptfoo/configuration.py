"""Translates promptfoo's configuration to an eval file (SPEC section 2).

Nothing is dropped silently: a key without an equivalent is reported, as an error if it could change a verdict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from glob import has_magic
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, plain
from agentv.extensions.promptfoo.assertions import assertions, with_thresholds
from agentv.extensions.promptfoo.cases import (
    CaseConverter,
    expanded,
    is_expandable,
    is_simulated,
    matrix_of,
    refuse_servers,
    with_system_prompts,
)
from agentv.extensions.promptfoo.code import names_code, returned_tests
from agentv.extensions.promptfoo.prompts import Prompts, only_in_blocks, picture_variables, prompts_of
from agentv.extensions.promptfoo.rewriting import (
    is_program,
    resolved,
    with_common_prompts,
    with_default_settings,
    with_listed_prompts,
    with_moved_transforms,
    with_named_embedder,
    with_prompt_settings,
)
from agentv.extensions.promptfoo.settings import declared_calls
from agentv.extensions.promptfoo.source import (
    FILE,
    Source,
    items_of,
    list_items,
    mapping,
    mapping_items,
    number_node,
    ordered,
    providers_key,
    text_node,
    value_at,
    without,
)
from agentv.extensions.promptfoo.tables import LANGUAGE, REFUSED, RUN_WITHOUT_EFFECT, WITHOUT_EFFECT
from agentv.extensions.promptfoo.targets import named_targets, targets
from agentv.extensions.promptfoo.test_parts import AFFIXES, options_of, variables

_RUN = {"maxConcurrency": "workers", "repeat": "repeat"}
_MILLISECONDS = 1000
_KEYS = ("description", "tags", "env", "prompts", "providers", "targets", "defaultTest", "tests", "scenarios")
_DEFAULT_TEST_KEYS = ("assert", "options", "vars", "threshold", "metadata")
_SCENARIO_KEYS = ("config", "tests", "description")
_TEST_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")


def eval_file(path: Path, root: MapNode, source: Source) -> Mapping[str, Node]:
    """The keys of the eval file. What has no equivalent is reported.

    Args:
        path: path of the configuration.
        root: its content.
        source: reads its files, and collects diagnostics.
    """
    root = resolved(root, source)
    providers = items_of(root.get(providers_key(root)))
    source = replace(
        source,
        only_shown=not _has_assertions(root),
        calls_no_model=all(map(is_program, providers)),
        calls_programs=any(map(is_program, providers)),
        pictures=picture_variables(root),
        declared_calls=declared_calls(root, source),
    )
    return _Converter(path, source).converted(root)


def _has_assertions(root: MapNode) -> bool:
    """Whether some test may have assertions; a test in another file is assumed to have some."""
    given = [root.get("defaultTest"), *items_of(root.get("tests"))]
    if "scenarios" in root.items or any(isinstance(one, Scalar) for one in given):
        return True
    return any(isinstance(one, MapNode) and not is_empty(one.get("assert")) for one in given)


def _default_prompt(root: MapNode) -> Node | None:
    """The prompt of a configuration without `prompts`: the variable `prompt`, or None if no test sets it.

    promptfoo then sends an empty prompt, which is not a valid input in agentv.
    """
    given = [root.get("defaultTest"), *list_items(root.get("tests"))]
    return text_node("{{ prompt }}", root.at) if any(value_at(one, "vars", "prompt") for one in given) else None


class _Converter:
    def __init__(self, path: Path, source: Source) -> None:
        self._path = path
        self._source = source
        self._suite: dict[str, Node] = {}
        self._defaults: dict[str, Node] = {}
        self._user: Node | None = None

    def converted(self, root: MapNode) -> Mapping[str, Node]:
        stem = self._path.name.partition(".")[0]
        name = self._path.absolute().parent.name if stem == "promptfooconfig" else stem
        self._suite = {"name": text_node(name or "promptfoo", root.at)}
        self._suite |= {key: text_node(text, root.at) for key, text in LANGUAGE.items()}
        self._suite["trim"] = Scalar(False, "false", root.at)
        root = with_default_settings(with_listed_prompts(root))
        root = with_common_prompts(with_moved_transforms(with_prompt_settings(with_named_embedder(root))))
        default = root.get("defaultTest")
        if isinstance(default, Scalar) and default.text.startswith(FILE):
            default = self._source.document(default.text, default)
        self._user = value_at(default, "provider")
        prompts = self._prompts(root)
        matrix = matrix_of(root)
        matrix = matrix if matrix is not None and is_expandable(matrix, prompts) else None
        root = root if matrix is None else matrix.root
        items = dict(without(root, "prompts").items)
        tests = items.pop("tests", None)
        scenarios = items.pop("scenarios", None)
        if items.pop("defaultTest", None) is not None:
            self._default_test(default)
        for key, item in items.items():
            self._key(key, item, root)
        self._suite |= prompts.head if matrix is None else {}
        named = named_targets(root.get(providers_key(root)), self._source)
        found = self._tests(
            tests, scenarios, CaseConverter(self._source, prompts, named, self._defaults, self._user), root
        )
        if matrix is not None:
            found = expanded(matrix, prompts, self._suite.get("targets"), found)
        head, found = with_thresholds(self._suite, found, self._source)
        if _checks_nothing(head, found) or (is_empty(_shared(head)) and self._unchecked_tables(found)):
            head["show_only"] = Scalar(True, "true", root.at)
        return {**ordered(head), "tests": found}

    def _prompts(self, root: MapNode) -> Prompts:
        tests = list_items(root.get("tests"))
        users = [self._user, *(value_at(one, "provider") for one in items_of(root.get("tests")))]
        has_users = any(map(is_simulated, users))
        inline = has_users or any(AFFIXES & mapping_items(value_at(one, "options")).keys() for one in tests)
        tables = sum(map(_is_table, tests))
        mixes_tables = 0 < tables < len(tests) or (tables > 0 and "scenarios" in root.items)
        form: Literal["inline", "listed"] | None = "inline" if inline else "listed" if mixes_tables else None
        prompts = prompts_of(root.get("prompts") or _default_prompt(root), self._source, root, form)
        if is_simulated(self._user):
            prompts = with_system_prompts(prompts, self._source)
        if has_users:
            refuse_servers(items_of(root.get(providers_key(root))), self._source)
        pictures = only_in_blocks(self._source.pictures, [one.content for one in prompts.found])
        contents = (one.content for one in prompts.found)
        prompt_texts = tuple(one.text if isinstance(one, Scalar) else json.dumps(plain(one)) for one in contents)
        self._source = replace(self._source, pictures=pictures, prompt_texts=prompt_texts)
        return prompts

    def _key(self, key: str, item: Node, root: MapNode) -> None:
        if key in ("description", "tags", "env"):
            self._suite[key] = item
        elif key in ("providers", "targets"):
            self._suite["targets"] = targets(item, self._source)
        elif key in ("evaluateOptions", "commandLineOptions"):
            self._run(key, item)
        elif key in WITHOUT_EFFECT:
            if WITHOUT_EFFECT[key]:
                self._source.remark(root.keys[key], f"'{key}' is omitted", WITHOUT_EFFECT[key])
        elif is_empty(item):
            return
        elif key in REFUSED:
            self._source.error(root.keys[key], f"'{key}' has no equivalent", REFUSED[key])
        else:
            self._source.unknown_key(key, root.keys[key], "", (*_KEYS, *WITHOUT_EFFECT, *REFUSED))

    def _run(self, key: str, node: Node) -> None:
        if not isinstance(node, MapNode):
            if not is_empty(node):
                self._source.error(node, f"'{key}' is not a mapping and is omitted")
            return
        run = dict(mapping_items(self._suite.get("run")))
        for option, item in node.items.items():
            if option in _RUN:
                run[_RUN[option]] = item
            elif option == "timeoutMs" and isinstance(item, Scalar) and isinstance(item.value, int | float):
                run["timeout_s"] = number_node(item.value / _MILLISECONDS, item.at)
            elif option in RUN_WITHOUT_EFFECT:
                self._source.remark(node.keys[option], f"'{option}' is omitted", RUN_WITHOUT_EFFECT[option])
            else:
                self._source.error(node.keys[option], f"'{option}' has no equivalent", "see 'agentv eval --help'")
        if run:
            self._suite["run"] = mapping(node, run)

    def _default_test(self, node: Node | None) -> None:
        if not isinstance(node, MapNode):
            if node is not None and not is_empty(node):
                self._source.error(node, "'defaultTest' is not a mapping")
            return
        made: dict[str, Node] = {}
        for key, item in node.items.items():
            if not is_empty(item) and not (key == "provider" and is_simulated(item)):
                made |= self._default(key, item, node)
        if made:
            self._suite["default_test"] = mapping(node, made)

    def _default(self, key: str, item: Node, node: MapNode) -> dict[str, Node]:
        if key == "assert":
            return {key: assertions(item, self._source)}
        if key == "options":
            found = options_of(item, self._source)
            judge = found.pop("judge", None)
            if judge is not None:
                self._suite["judge"] = judge
            return found
        if key == "vars":
            found = variables(item, replace(self._source, prompt_texts=()), {})
            self._defaults = dict(mapping_items(found.get("vars")))
            return found
        if key in ("threshold", "metadata"):
            return {key: item}
        if key in REFUSED:
            self._source.error(node.keys[key], f"'{key}' of 'defaultTest' has no equivalent", REFUSED[key])
            return {}
        self._source.unknown_key(key, node.keys[key], " of 'defaultTest'", _DEFAULT_TEST_KEYS)
        return {}

    def _tests(self, tests: Node | None, scenarios: Node | None, cases: CaseConverter, root: MapNode) -> Node:
        given = tests if isinstance(tests, ListNode) else ListNode([tests] if tests is not None else [], root.at)
        items = given.items
        for table in filter(_is_table, items) if is_simulated(self._user) else ():
            self._source.error(table, "rows of a table for a simulated user have no equivalent", "write them as tests")
        if items and scenarios is None and all(_is_table(item) for item in items):
            return self._tables(items, cases, root)
        for item in items:
            self._test(item, cases)
        for scenario in items_of(scenarios):
            self._scenario(scenario, cases, self._source)
        if not cases.made and not self._source.uncalled:
            # promptfoo then sends every prompt once; a red-team configuration would generate its tests
            if cases.prompts.found and "redteam" not in root.items:
                cases.add(MapNode({}, {}, root.at))
            else:
                self._source.error(root, "there are no tests", "add cases under 'tests'")
        return ListNode(list(cases.made), root.at)

    def _tables(self, items: list[Node], cases: CaseConverter, root: MapNode) -> Node:
        """The paths of CSV files that are the only tests. Their rows get the suite's `input`."""
        if cases.prompts.single is not None:
            self._suite["input"] = cases.prompts.single
        paths: list[Node] = [
            text_node(item.text.removeprefix(FILE), item.at) for item in items if isinstance(item, Scalar)
        ]
        return paths[0] if len(paths) == 1 else ListNode(paths, root.at)

    def _unchecked_tables(self, found: Node) -> bool:
        """Whether some CSV file has no `__expected` column."""
        paths = items_of(found)
        tables = [one for one in paths if isinstance(one, Scalar) and one.text.endswith(".csv")]
        contents = [self._source.content(one) for one in tables]
        return any("__expected" not in one.text.partition("\n")[0] for one in contents if one is not None)

    def _test(self, item: Node, cases: CaseConverter) -> None:
        generator = item.get("path") if isinstance(item, MapNode) else item
        if isinstance(generator, Scalar) and names_code(generator.text):
            for one in items_of(returned_tests(item, self._source)):
                cases.add(one)
            return
        if not isinstance(item, Scalar):
            cases.add(item)
            return
        if _is_table(item):
            cases.made.append(text_node(item.text.removeprefix(FILE), item.at))
            return
        written = item.text.removeprefix(FILE)
        paths = self._source.matched(item) or [] if has_magic(written) else [written]
        if not paths or not all(path.endswith(_TEST_SUFFIXES) for path in paths):
            hint = "put the rows in a separate suite; for a program that generates tests, use file.py:function"
            self._source.error(item, f"the tests of '{item.text}' cannot be mixed with others", hint)
            cases.made.append(item)
            return
        for path in paths:
            for one in items_of(self._source.document(path, item)):
                cases.add(one)

    def _scenario(self, node: Node, cases: CaseConverter, source: Source) -> None:
        """Add every test of a scenario, once for each of its configurations."""
        if isinstance(node, Scalar) and node.text.startswith(FILE):
            for one in items_of(source.document(node.text, node)):
                self._scenario(one, cases, source.inside(node.text))
            return
        configs, tests = value_at(node, "config"), value_at(node, "tests")
        if not isinstance(node, MapNode) or not isinstance(configs, ListNode) or not isinstance(tests, ListNode):
            self._source.error(node, "this scenario is not converted", "write its tests under 'tests'")
            cases.made.append(node)
            return
        for key in [one for one in node.items if one not in _SCENARIO_KEYS]:
            source.unknown_key(key, node.keys[key], " of a scenario", _SCENARIO_KEYS)
        for config in configs.items:
            for test in tests.items:
                cases.add(_merged(config, test))


def _checks_nothing(head: Mapping[str, Node], tests: Node) -> bool:
    """Whether some case has no assertion, so that its outputs are only shown."""
    cases = [one for one in list_items(tests) if isinstance(one, MapNode)]
    if not is_empty(_shared(head)):
        cases = [one for one in cases if "skip_defaults" in one.items]
    return any(is_empty(one.get("assert")) for one in cases)


def _shared(head: Mapping[str, Node]) -> Node | None:
    """The assertions that `default_test` adds to every case."""
    return value_at(head.get("default_test"), "assert")


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
