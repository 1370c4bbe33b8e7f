"""`agentv convert` of the evals.json of a skill: an eval file that means the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from agentv.app.authored.convert import written
from agentv.app.authored.equivalence import meaning
from agentv.app.registries import registries
from agentv.authoring.assertions.entries import JUDGED
from agentv.authoring.convert.emit import yaml_text
from agentv.authoring.convert.literals import literal
from agentv.authoring.convert.rebased_paths import FoundPaths
from agentv.authoring.loading.load import LoadRequest, load
from agentv.authoring.source.nodes import NOWHERE, ListNode, MapNode, Node, Scalar, is_empty, node_of, plain, span_of
from agentv.errors import UsageError
from agentv.model.suite.suite import Suite

_TEXTS = frozenset({"input", "expected_output", "criteria", "assert"})
"""Keys whose texts are templates in an eval file, and data in the evals of a skill."""


def from_skill(source: Path, out: Path | None, process_env: Mapping[str, str], *, allow_outside: bool = False) -> Path:
    """Write the evals of a skill as an eval file; the file that was written.

    Raises:
        LoadError: the evals are wrong.
        UsageError: the file contains queries, which no eval file can represent, or an output file exists.
        OSError: a file cannot be read or written.
    """
    cases: list[MapNode] = []
    heads: list[MapNode] = []
    paths = FoundPaths(elsewhere=True)
    request = LoadRequest((str(source),), process_env=process_env, allow_outside=allow_outside, for_run=False)
    watched = replace(request, on_case=cases.append, on_header=heads.append, on_path=paths.add)
    (suite,) = load(watched, registries()).suites
    if any(case.asks_judge for case in suite.cases):
        hint = f"run them as they are: agentv eval {source}"
        raise UsageError(f"{source} contains queries that test the description of a skill, not cases", hint)
    path = out or source.with_name(f"{source.stem.removesuffix('.evals')}.eval.yaml")
    directory = path.absolute().parent
    made = [_case(paths.moved(case, directory)) for case in cases]
    head = {
        key: literal(node) if key in _TEXTS else node for key, node in heads[-1].items.items() if not is_empty(node)
    }
    with written({path: yaml_text({**head, "tests": ListNode(made, NOWHERE)})}):
        (after,) = load(replace(request, paths=(str(path),)), registries()).suites
        _refuse_changes(suite, after)
    return path


def _case(case: Node) -> Node:
    assert isinstance(case, MapNode)  # noqa: S101  # as it was
    items = {key: literal(node) if key in _TEXTS else node for key, node in case.items.items()}
    checks = items.get("assert")
    if isinstance(checks, ListNode):
        items["assert"] = _required(checks)
    items["threshold"] = node_of(0, span_of(case.at))  # every assertion is a gate
    return MapNode(items, case.keys, case.at)


def _required(checks: ListNode) -> Node:
    """The assertions as gates, which those of a skill are; all sentences together are one rubric."""
    sentences = [one for one in checks.items if isinstance(one, Scalar)]
    gate = node_of(True, span_of(checks.at))
    made: list[Node] = []
    for one in checks.items:
        if isinstance(one, MapNode):
            is_shown_only = "include" in one.items or plain(one.items.get("weight", gate)) == 0
            made.append(one if is_shown_only else _with(one, {"required": gate}))
        elif one is sentences[0]:
            made.append(_rubric(sentences, {"required": gate}))
    return ListNode(made, checks.at)


def _rubric(sentences: Sequence[Scalar], more: Mapping[str, Node]) -> MapNode:
    """Sentences as one entry, which weighs as many as there are."""
    at = sentences[0].at
    pairs: dict[str, Node] = {"type": node_of(JUDGED, span_of(at)), "value": ListNode(list(sentences), at)}
    if len(sentences) > 1:
        pairs["weight"] = node_of(len(sentences), span_of(at))
    return _with(MapNode(pairs, dict.fromkeys(pairs, at), at), more)


def _with(entry: MapNode, more: Mapping[str, Node]) -> MapNode:
    items = {**entry.items, **{key: node for key, node in more.items() if key not in entry.items}}
    return MapNode(items, dict.fromkeys(items, entry.at), entry.at)


def _refuse_changes(before: Suite, after: Suite) -> None:
    (head, cases), (other_head, others) = meaning(replace(before, exam=None)), meaning(after)
    changed = [name for name in {**cases, **others} if cases.get(name) != others.get(name)]
    if changed or head != other_head:
        what = f"case '{changed[0]}'" if changed else "the suite's keys"
        raise UsageError(f"{what} would change meaning in an eval file, so nothing is written")
