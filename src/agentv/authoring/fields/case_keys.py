"""Keys that suites and cases share: `tags`, `metadata`, `cluster` and `options` (SPEC sections 3 and 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from msgspec import Struct, field

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading, RubricOptions
from agentv.authoring.fields.schema import AuthoredCase, AuthoredOptions
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, Scalar, children, is_empty, span_of
from agentv.authoring.source.report import Report
from agentv.model.suite.assertion import Transform
from agentv.model.values.values import Json, JsonObject, Span
from agentv.templating import RenderError, Scope, has_placeholder, render_text


def read_tags(node: Node | None, reading: Reading) -> tuple[str, ...]:
    """Read `tags`: a word, a list of words, or a mapping, whose entries become `key:value`."""
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return ()
    if isinstance(node, Scalar):
        return (node.text,)
    if isinstance(node, ListNode) and all(isinstance(item, Scalar) and item.value is not None for item in node.items):
        return tuple(item.text for item in node.items if isinstance(item, Scalar))
    if isinstance(node, MapNode) and all(isinstance(item, Scalar) for item in node.items.values()):
        return tuple(f"{key}:{item.text}" for key, item in node.items.items() if isinstance(item, Scalar))
    wrong = next((item for item in children(node) if not isinstance(item, Scalar) or item.value is None), node)
    reading.report.unfit(wrong, "'tags' must be a list of words, or a mapping of words")
    return ()


GOVERNANCE = "governance"
"""Metadata key for the facts on risks and compliance of a suite or case."""


def case_metadata(keys: AuthoredCase, written: MapNode, shared: JsonObject, report: Report) -> JsonObject:
    """The metadata of a case, merged over the metadata that all cases share.

    Args:
        keys: keys of the case.
        written: the case, for positions.
        shared: the metadata of every case.
        report: receives an error if `governance` is set twice.
    """
    if not (keys.metadata or keys.governance or keys.suite):
        return shared
    own = with_governance(keys.metadata, keys.governance, written.keys, report)
    if keys.suite is not None and "suite" not in own:
        own = {**own, "suite": keys.suite}
    return merged_metadata(shared, own)


def merged_metadata(shared: JsonObject, own: JsonObject) -> JsonObject:
    """The shared metadata, overridden key by key by a case's own. `governance` is merged recursively, as in AgentV."""
    if not shared or not own:
        return own or shared
    found = {**shared, **own}
    if GOVERNANCE in shared and GOVERNANCE in own:
        found[GOVERNANCE] = _joined(shared[GOVERNANCE], own[GOVERNANCE])
    return found


def _joined(shared: Json, own: Json) -> Json:
    """Mappings merged key by key, lists concatenated without duplicates, and otherwise the case's own value."""
    if isinstance(shared, dict) and isinstance(own, dict):
        return {
            **shared,
            **{key: _joined(shared[key], value) if key in shared else value for key, value in own.items()},
        }
    if isinstance(shared, list) and isinstance(own, list):
        return [*shared, *(one for one in own if one not in shared)]
    return own


def with_governance(
    metadata: JsonObject, governance: JsonObject, places: Mapping[str, Place], report: Report
) -> JsonObject:
    """The metadata of a suite or a case with its `governance` added. `places` has the positions of its keys."""
    if not governance:
        return metadata
    if GOVERNANCE in metadata:
        at = places.get(GOVERNANCE)
        report.error("two-spellings", at, "'governance' is set both here and in 'metadata'; keep one of them")
    return {**metadata, GOVERNANCE: governance}


class ClusterReader:
    """Finds the cluster of each case of a suite, and reports the cases that have none.

    Args:
        key: a key of `metadata` or `vars`, or a template with the case's variables and `metadata`.
        env: `env` in the template.
    """

    def __init__(self, key: str, env: Mapping[str, str]) -> None:
        self.key = key
        self._env = env
        self._template = has_placeholder(key)
        self._seen = 0
        self._lacking = 0
        self._first: tuple[str, Span, JsonObject] | None = None
        self._why: str | None = None

    def value(self, case_id: str, node: Node, metadata: JsonObject, variables: JsonObject) -> str | None:
        """The cluster of a case, or None if it has none, which `end` reports."""
        self._seen += 1
        if self._template:
            found = self._rendered(metadata, variables)
        else:
            found = metadata.get(self.key)
            found = variables.get(self.key) if found is None else found
        if found is None or (isinstance(found, str) and not found.strip()):
            self._lacking += 1
            if self._first is None and (at := span_of(node.at)) is not None:
                self._first = (case_id, at, {**variables, **metadata})
            return None
        return found if isinstance(found, str) else json.dumps(found, sort_keys=True, ensure_ascii=False)

    def end(self, report: Report) -> None:
        """Report the cases without a cluster in one error, after all cases were read."""
        if self._first is None:
            return
        case_id, at, names = self._first
        lack = "lacks" if self._lacking == 1 else "lack"
        which = f"{self._lacking:,} of {self._seen:,} cases {lack}" if self._seen > 1 else "the case lacks"
        what = f"a value for '{self.key}'" if self._template else f"'{self.key}' in metadata and vars"
        message = f"{which} {what}, which `cluster` needs; the first is '{case_id}'"
        suggestion = None if self._template else nearest(self.key, names.keys() - {self.key})
        hint = self._why or (
            f"did you mean '{suggestion}'?" if suggestion else "give every case a value, or omit `cluster`"
        )
        report.error("missing-cluster", at, message, hint=hint)

    def _rendered(self, metadata: JsonObject, variables: JsonObject) -> Json:
        try:
            return render_text(self.key, Scope(variables, self._env, {"metadata": dict(metadata)}))
        except RenderError as error:
            self._why = self._why or error.message.partition(";")[0]
            return None


_SCHEMA = shape_of(AuthoredOptions)


class CaseOptions(Struct, frozen=True):
    """The options of a case; None if not set.

    Attributes:
        judge: a name or an inline target.
        of_suite: the judge is the suite's, not a case's.
        rubric: options for rubrics that do not set them, with their positions.
        transform: transform of the answer before grading.
    """

    judge: Node | None = None
    of_suite: bool = False
    rubric: RubricOptions = field(default_factory=dict)
    transform: Transform | None = None
    repeat: int | None = None

    def over(self, other: CaseOptions) -> CaseOptions:
        """These options, with those that are not set taken from the other ones."""
        if self is NO_OPTIONS and other is NO_OPTIONS:
            return self  # as in most cases
        return CaseOptions(
            self.judge or other.judge,
            self.judge is None,
            self.rubric or other.rubric,
            self.transform or other.transform,
            self.repeat or other.repeat,
        )


NO_OPTIONS = CaseOptions()


def read_options(node: Node | None, where: str, reading: Reading) -> CaseOptions:
    """Read the value of `options`; mistakes are reported.

    Args:
        node: the value of `options`.
        where: owner of the options, for messages.
        reading: context of the suite or the case.
    """
    if is_empty(node) or node is None:
        return NO_OPTIONS
    if not isinstance(node, MapNode):
        reading.report.unfit(node, "'options' must be a mapping")
        return NO_OPTIONS
    read = _SCHEMA.decode(node.items, node, reading, f"'options' of {where}")
    if read is INVALID:
        return NO_OPTIONS
    key = node.get("prompt")
    rubric = {} if key is None or read.prompt is None else {"prompt": (read.prompt, key.at)}
    return CaseOptions(read.judge, False, rubric, read.transform, read.repeat)
