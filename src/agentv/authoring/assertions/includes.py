"""Assertion templates: `include:` entries and the files they name (SPEC section 7.3)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.fields import translation
from agentv.authoring.fields.reading import Chain, Reading, notes_of, sibling
from agentv.authoring.source.files import exists, is_file, shown, templates_in, upwards
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, holds_placeholder, kind_of, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import Diagnostic
from agentv.model.values.values import Span, lazy_pattern

DEPTH = 3
"""Levels of includes; the eval file's own is the first."""

_SUFFIXES = (".yaml", ".yml")

NAME = lazy_pattern(r"[^./\\][^/\\]*|(?:[^./\\][^/\\]*/)+[^./\\][^/\\]*(?<!\.yaml)(?<!\.yml)")
"""A template's name: without a slash, or with folders in `.agentv/templates` and no suffix. All else is a path."""

_URL = lazy_pattern(r"\w[\w+.-]*://")


class Template(Struct, frozen=True):
    """A template file: its entries, and whether they contain placeholders."""

    path: str
    entries: ListNode
    placeholders: bool


class Templates(Struct):
    """The template files of one suite, each read once.

    Attributes:
        rendered: a template contains placeholders, so its entries depend on a case's variables.
    """

    rendered: bool = False
    _read: dict[str, tuple[Template | None, tuple[Diagnostic, ...]]] = field(default_factory=dict)

    def included(self, node: Node, reading: Reading) -> tuple[Template, Reading] | None:
        """The template that an `include:` means, and how to read its entries.

        None when something is wrong, which is then reported.
        """
        if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
            reading.report.error("bad-include", node, f"'include' takes a name or a path, found {kind_of(node)}")
            return None
        path = _path_of(node, reading)
        if path is None:
            return None
        chain = reading.chain.through(node, path)
        if not _can_be_included(chain, reading):
            return None
        template = self._load(path, node, reading)
        if template is None:
            return None
        self.rendered |= template.placeholders
        renders = reading.renders or (template.placeholders and not chain.alone)
        # what .agentv holds is the project's own, whoever names it
        data = reading.data and NAME.fullmatch(node.text.strip()) is None
        return template, replace(reading, chain=chain, renders=renders, data=data)

    def _load(self, path: str, node: Scalar, reading: Reading) -> Template | None:
        known = self._read.get(path)
        if known is not None:
            template, errors = known
        else:
            own = Report(hints=reading.report.hints)
            template = load_template(path, node, replace(reading, report=own))
            errors = tuple(one for one in own.diagnostics if one.severity == "error")
            self._read[path] = template, errors
            for found in own.diagnostics:
                reading.report.add(found)
        for found in errors:
            reading.report.add(found)  # again: an entry that is missing never goes unsaid
        return template


def _can_be_included(chain: Chain, reading: Reading) -> bool:
    """Whether these templates include each other or go too deep, which is said at the eval file's own include."""
    path = chain.paths[-1]
    trail = " → ".join(f"{name} ({shown(at)})" for name, at in zip(chain.names, chain.paths, strict=True))
    if path in chain.paths[:-1]:
        reading.report.error("include-cycle", chain.origin, f"these templates include each other: {trail}")
        return False
    if len(chain.paths) > DEPTH:
        message = f"templates are nested {len(chain.paths)} levels deep; the limit is {DEPTH}: {trail}"
        reading.report.error("include-depth", chain.origin, message)
        return False
    return True


def load_template(path: str, node: Scalar | None, reading: Reading) -> Template | None:
    """A template file, read and checked for its shape; None when something is wrong, which is then reported."""
    text = reading.text_of(path, node or Scalar(path, shown(path), _top(path)))
    if text is None:
        return None
    report = reading.report.section()
    reading = reading.reporting_to(report)
    root, valid = read_yaml(path, text.encode(), report)
    if root is None and not valid:
        return None
    if not isinstance(root, MapNode):
        found = kind_of(root) if root is not None else "nothing"
        message = f"a template is a mapping with a list 'assert', found {found}"
        report.error("bad-template-file", root or _top(path), message)
        return None
    entries = translation.template(root, reading).get("assert")
    if not isinstance(entries, ListNode) or not entries.items:
        if entries is not None or not report.failed:
            found = "none" if entries is None else kind_of(entries)
            message = f"a template needs a list of assertions under 'assert', found {found}"
            report.error("bad-template-file", entries or root, message)
        return None
    return Template(path, entries, holds_placeholder(entries))


def _top(path: str) -> Span:
    return Span(path, 1, 1, 1, 2)


def _path_of(node: Scalar, reading: Reading) -> str | None:
    written = node.text.strip()
    if _URL.match(written.removeprefix("file://")):
        hint = "copy it into .agentv/templates, or include a path of this repository"
        reading.report.error("bad-include", node, "a template cannot be a URL", hint=hint)
        return None
    above = upwards(reading.places.suite, reading.places.root)
    homes = [Path(directory, ".agentv", "templates") for directory in above]
    if not NAME.fullmatch(written):
        own = replace(reading, places=reading.places.without_climbing())
        found, tried = own.places.find(written, span_of(node.at).file)
        if found is not None and is_file(found):
            own.note_found(written, node, found)
            return found
        expected = own.expected(node)
        if found is not None or expected is not None or not own.refuse_outside(node, "template"):
            _missing(node, tried, expected or sibling(written, tried) or _nearest(written, homes), reading)
        return None
    names = (written,) if written.endswith(_SUFFIXES) else tuple(f"{written}{suffix}" for suffix in _SUFFIXES)
    for home in homes:
        found_here = [str(home / name) for name in names if is_file(str(home / name))]
        if len(found_here) > 1:
            message = f"'{written}' is read from {shown(found_here[0])}; {shown(found_here[1])} is ignored"
            reading.report.warning("unused-template", node, message, hint="delete one of them")
        if found_here:
            return found_here[0]
    _missing(node, tuple(str(home / name) for home in homes for name in names), _nearest(written, homes), reading)
    return None


def _nearest(written: str, homes: Iterable[Path]) -> str | None:
    """The hint with the nearest name of a template."""
    name = os.path.splitext(written)[0]  # noqa: PTH122  # a text
    return did_you_mean(name, [one for home in homes for one in templates_in(str(home))])


def _missing(node: Scalar, tried: tuple[str, ...], hint: str | None, reading: Reading) -> None:
    other = next((path for path in tried if exists(path)), None)
    hint = f"{shown(other)} is not a file" if other is not None else hint
    reading.report.error(
        "missing-template", node, f"no template '{node.text.strip()}'", hint=hint, notes=notes_of(tried)
    )
