"""One suite being read: where mistakes go, how files are found, what placeholders mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from agentv.model.assertion import AssertionEntry
from agentv.ports import Reader
from agentv.spec.files import Places, shown
from agentv.spec.nearest import did_you_mean
from agentv.spec.nodes import ListNode, MapNode, Node, Scalar, node_of, span_of, written
from agentv.spec.report import Report
from agentv.templating import RenderError, Scope, has_placeholder, render

GIT_URL = re.compile(r"https?://(?:www\.)?(?:github\.com|gitlab\.com|bitbucket\.org)/")


@dataclass(frozen=True, slots=True)
class Reading:
    """What every part of the loader needs.

    Attributes:
        scope: what placeholders see; None where a file holds none, so that nothing is searched for them.
        entries: lowers a nested `assert:` list.
        secrets: what the targets read so far must keep to themselves.
        strict_env: an unset environment variable is an error, since it is needed to run.
    """

    report: Report
    reader: Reader
    places: Places
    scope: Scope | None
    entries: Callable[[Node, Reading], tuple[AssertionEntry, ...]]
    strict_env: bool = True
    secrets: set[str] = field(default_factory=set)

    def within(self, scope: Scope | None) -> Reading:
        """The same, with other variables in reach."""
        return replace(self, scope=scope)

    def unknown_key(self, key: str, mapping: MapNode, known: Iterable[str], what: str) -> None:
        """Report a key that means nothing here."""
        known = sorted(known)
        hint = did_you_mean(key, known)
        notes = () if hint else (f"{what} takes: {', '.join(known)}",)
        self.report.error("unknown-key", mapping.keys[key], f"{what} has no key '{key}'", hint=hint, notes=notes)

    def find(self, node: Scalar, what: str) -> str | None:
        """The file or directory that a path in the file means; reports and returns None where there is none."""
        text = node.text.strip()
        if GIT_URL.match(text.removeprefix("file://")):
            self.report.error("not-yet", node, "files out of a git host are not supported yet")
            return None
        found, tried = self.places.find(text, span_of(node.at).file)
        if found is None:
            notes = [f"tried {shown(path)}" for path in tried]
            self.report.error("missing-file", node, f"{what} '{text}' does not exist", notes=notes)
        return found

    def text_of(self, path: str, node: Scalar) -> str | None:
        """The text of a file; reports and returns None where it cannot be read as text."""
        try:
            return self.reader.read(path).decode("utf-8-sig")
        except OSError as error:
            self.report.error("missing-file", node, f"cannot read '{node.text}': {error.strerror}")
        except UnicodeDecodeError as error:
            self.report.error("not-utf-8", node, f"'{node.text}' is not UTF-8 text (byte {error.start + 1})")
        return None

    def rendered(self, node: Node) -> Node:
        """The node with its placeholders filled in; the node itself where it has none."""
        return node if self.scope is None else _render(node, self.scope, self)

    def render_text(self, node: Scalar) -> str | None:
        """The text of a scalar, rendered; None where that is impossible, which is reported."""
        found = self.rendered(node)
        return written(found.value) if isinstance(found, Scalar) else None


def _render(node: Node, scope: Scope, reading: Reading) -> Node:
    if isinstance(node, Scalar):
        if not isinstance(node.value, str) or not has_placeholder(node.value):
            return node
        try:
            return node_of(render(node.value, scope), node.at)
        except RenderError as error:
            _report(error, node, scope.vars, reading)
            return node
    if isinstance(node, ListNode):
        items = [_render(item, scope, reading) for item in node.items]
        changed = any(one is not other for one, other in zip(items, node.items, strict=True))
        return ListNode(items, node.at) if changed else node
    pairs = {key: _render(item, scope, reading) for key, item in node.items.items()}
    changed = any(pairs[key] is not node.items[key] for key in pairs)
    return MapNode(pairs, node.keys, node.at) if changed else node


def _report(error: RenderError, node: Scalar, names: Mapping[str, object], reading: Reading) -> None:
    hint = did_you_mean(error.name, names) if error.name and error.code == "undefined-variable" else None
    if error.code == "unset-environment" and not reading.strict_env:
        reading.report.warning(error.code, node, error.message)
    else:
        reading.report.error(error.code, node, error.message, hint=hint)
