"""The context in which a suite is read: its report, file lookup, and the scope of placeholders."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field, structs
from msgspec.structs import replace

from agentv.authoring.source.boundary import (
    ALLOW,
    ALLOW_DATA,
    GIT_URL,
    OUTSIDE,
    REASON,
    UNTRUSTED,
    FindCheckout,
    OutsideError,
    no_repositories,
)
from agentv.authoring.source.files import Places, checkout_of, is_directory, is_file, shown
from agentv.authoring.source.masking import environment_secrets
from agentv.authoring.source.nearest import HINTS, MEANT, did_you_mean, nearest
from agentv.authoring.source.nodes import Filled, ListNode, MapNode, Node, Place, Scalar, node_of, span_of
from agentv.authoring.source.report import Report, Result
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.values.message import is_broken_file
from agentv.model.values.values import Span, lazy_pattern
from agentv.ports import Reader
from agentv.registry.types import Provider, Registry
from agentv.templating import (
    LITERAL_HINT,
    RenderError,
    Scope,
    environment_names,
    has_placeholder,
    render,
    render_text,
    undeclared,
)

KEPT_TEXTS = 256
"""Maximum number of cached file contents: most suites attach the same few files to every case."""

_ASSERTION_KEYS = frozenset({"type", "value", "weight", "required", "negate", "min_score"})
"""Keys of assertions that end up in the case if a line is not indented far enough."""

_NOTED_JAVASCRIPT = 2
"""Positions of JavaScript to keep: the report shows the first one, and whether there are more."""

SHOWN_KEYS = 50
"""Maximum number of unknown keys of one mapping that are reported."""

LISTED_PATHS = 8
"""Maximum number of tried paths that are listed for a missing file."""

FROM_PROJECT = "paths in .agentv/targets.yaml and config.yaml start at the directory that contains .agentv"
"""Note for a missing file that is named in a project file."""

LONGEST_LINE = 5_000
"""Maximum length of a source line in which a placeholder is located."""

_MOST_LOCATED = 100
"""Number of diagnostics above which placeholders are no longer located within their text."""


class Chain(Struct, frozen=True):
    """The includes that led to a list, outermost first.

    Attributes:
        origin: the include in the eval file.
        paths, names: path and authored name of each template.
        alone: whether a template is read by itself, without a case that provides variables.
    """

    origin: Scalar | None = None
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    alone: bool = False

    def through(self, node: Scalar, path: str) -> Chain:
        """The chain with one more include."""
        return Chain(self.origin or node, (*self.paths, path), (*self.names, node.text), self.alone)


class ExtraKeys(Struct, frozen=True):
    """Keys that are allowed in a mapping besides the options of its schema.

    Attributes:
        listed: keys to list if an unknown key has no near match.
        hinted: older spellings and similar keys that a misspelt key may mean.
        older: older spelling → canonical key to suggest instead.
        passed: a key that another reader reads.
        meant: the only missing required key, which a single unknown key therefore means.
        called: option → the key as authored, such as a type's name in the one-key form.
        given: option → value to use if the mapping lacks it, such as one from the environment.
    """

    listed: tuple[str, ...] = ()
    hinted: tuple[str, ...] = ()
    older: Mapping[str, str] = field(default_factory=dict)
    passed: str | None = None
    meant: str | None = None
    called: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)


_PDF = b"%PDF-"
_PDF_WITHIN = 1024
"""Number of leading bytes that must contain the PDF marker; some files have other data before it."""

RubricOptions = Mapping[str, tuple[Any, Place]]
"""Option of rubrics → its value and position."""
NO_EXTRA_KEYS = ExtraKeys()
TOP = Chain()


def _no_entries_yet(_node: Node, _reading: Reading) -> Result[tuple[AssertionEntry, ...]]:
    raise RuntimeError("assertions are read before their types are known")  # a bug


class Reading(Struct, frozen=True):
    """Context that every part of the loader needs.

    Attributes:
        report: receives the diagnostics.
        reader: reads files.
        places: directories that paths are relative to.
        scope: values that placeholders can use.
        entries: reads a nested `assert:` list; set once the assertion types are known.
        renders: whether to fill in placeholders; False if a file has none, so that it is not searched for them.
        chain: the templates that include the list being read.
        strict_env: an unset environment variable is an error, because a run needs it.
        spares: some targets are not called, so a missing variable is an error only for a target that is called.
        secrets: secrets of the targets and assertions read so far; they are redacted.
        unsearched: keys of secrets that look like ordinary text and cannot be redacted.
        checkout: finds a file of a git host on disk.
        data: the current node is data, which must not name code or read the environment.
        vars_are_data: the variables come from data.
        rubric: options for rubrics that do not set them.
        above: authored path → the file, for paths found only in a directory above the eval file.
        given: assertion type → the suite's options for assertions that do not set them.
        providers: the known providers; None: nothing that is read names one.
        javascript: positions of the first code that needs a JavaScript runtime; targets are listed separately.
    """

    report: Report
    reader: Reader
    places: Places
    scope: Scope
    entries: Callable[[Node, Reading], Result[tuple[AssertionEntry, ...]]] = _no_entries_yet
    renders: bool = False
    chain: Chain = TOP
    strict_env: bool = True
    spares: bool = False
    secrets: set[str] = field(default_factory=set)
    unsearched: set[str] = field(default_factory=set)
    checkout: FindCheckout = no_repositories
    data: bool = False
    vars_are_data: bool = False
    rubric: RubricOptions = field(default_factory=dict)
    above: dict[str, str] = field(default_factory=dict)
    given: Mapping[str, Mapping[str, Node]] = field(default_factory=dict)
    providers: Registry[Provider] | None = None
    javascript: dict[Span, None] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    _digests: dict[str, tuple[str, bool]] = field(default_factory=dict)
    _pictures: dict[str, tuple[str, str]] = field(default_factory=dict)
    _environments: dict[int, tuple[Mapping[str, str], frozenset[str]]] = field(default_factory=dict)

    def environment_secrets(self) -> frozenset[str]:
        """The secrets in the environment of the scope."""
        env = self.scope.env
        if id(env) not in self._environments:
            self._environments[id(env)] = env, frozenset(environment_secrets(env))
        return self._environments[id(env)][1]

    def note_javascript(self, node: Node) -> None:
        """Record that the code at a node needs a JavaScript runtime."""
        if len(self.javascript) < _NOTED_JAVASCRIPT:
            self.javascript.setdefault(span_of(node.at))

    def within(self, scope: Scope) -> Reading:
        """The same context with other variables."""
        return structs.replace(self, scope=replace(scope, language=self.scope.language))

    def with_rubric(self, options: RubricOptions) -> Reading:
        """The same context with further options for rubrics that do not set them."""
        return structs.replace(self, rubric={**self.rubric, **options}) if options else self

    def of_suite(self) -> Reading:
        """The same context for text of the suite, which is not data, although the variables may be."""
        return structs.replace(self, data=False) if self.data else self

    def of_rendered_text(self) -> Reading:
        """The same context for a rendered text, which is data if the variables are."""
        return structs.replace(self, data=True) if self.vars_are_data and not self.data else self

    def reporting_to(self, report: Report) -> Reading:
        """The same context with another report."""
        return structs.replace(self, report=report)

    def part(self) -> Reading:
        """The same context for one part of the suite, with a section of the report."""
        return structs.replace(self, report=self.report.section())

    def rendering(self, renders: bool) -> Reading:
        """The same context with `renders` set."""
        return self if renders == self.renders else structs.replace(self, renders=renders)

    def unknown_key(
        self,
        key: str,
        mapping: MapNode,
        allowed: Iterable[str],
        what: str,
        extra: ExtraKeys = NO_EXTRA_KEYS,
        *,
        hint: str | None = None,
    ) -> None:
        """Report an unknown key; only the first `SHOWN_KEYS` of a mapping are reported."""
        before = self.report.occurrences(mapping.keys)
        if before >= SHOWN_KEYS:
            message = f"{what} has more than {SHOWN_KEYS} unknown keys; the others are not shown"
            if before == SHOWN_KEYS:
                self.report.error("unknown-key", mapping.keys[key], message)
            return
        listed = [*allowed, *extra.listed]
        hint = _comma_hint(key, mapping) or hint or HINTS.get(what, {}).get(key) or _nearest_hint(key, listed, extra)
        hint = hint or _foreign_hint(key, listed, mapping)
        hint = hint or (f"did you mean '{extra.meant}'?" if extra.meant else None)
        notes = () if hint else (f"{what} takes {', '.join(sorted(listed))}" if listed else f"{what} takes none",)
        self.report.error("unknown-key", mapping.keys[key], f"{what} has no key '{key}'", hint=hint, notes=notes)

    def find(self, node: Scalar, what: str) -> str | None:
        """The file or directory that an authored path means, or None after reporting that it is missing."""
        from agentv.authoring.source.git_files import NOTHING_ABOVE, find_hosted

        text = node.text.strip()
        if GIT_URL.match(text.removeprefix("file://")):
            url = text.removeprefix("file://")
            return find_hosted(url, node, what, self.report, self.checkout, self.places.boundary)
        places, file = self.places, span_of(node.at).file
        found, tried = places.find(text, file)
        if found is not None:
            self.note_found(text, node, found)
        elif (hint := self.expected(node)) is not None or not self.refuse_outside(node, what):
            notes = [
                *notes_of(tried),
                *((NOTHING_ABOVE,) if not tried and checkout_of(file) is not None else ()),
                *((FROM_PROJECT,) if places.beside is not None else ()),
            ]
            message = f"{what} '{text}' does not exist"
            self.report.error("missing-file", node, message, hint=hint or sibling(text, tried), notes=notes)
        return found

    def note_found(self, written: str, node: Scalar, found: str) -> None:
        """Pass a found path to `on_path`, and record it in `above` if it was found in a directory above."""
        span = span_of(node.at)
        if self.places.on_path is not None:
            self.places.on_path(written, span, found)
        if self.places.is_above(found, written, span.file):
            self.above[written] = found

    def expected(self, node: Scalar) -> str | None:
        """A hint for a missing path whose file exists relative to another directory, or None."""
        path = self.places.expected(node.text.strip(), span_of(node.at).file)
        return f"did you mean '{path}'?" if path is not None else None

    def refuse_outside(self, node: Scalar, what: str) -> bool:
        """Report a missing path that may point outside the repository, and return whether it does.

        The report does not reveal whether the file exists.
        """
        text = node.text.strip()
        if not self.places.leaves(text, span_of(node.at).file):
            return False
        self.report.error(OUTSIDE, node, f"{what} '{text}' is outside the repository", hint=ALLOW)
        return True

    def digest_of(self, path: str) -> tuple[str, bool]:
        """SHA-256 of a file, and whether it is a PDF. The hash is "" if the file is unreadable: the call will fail."""
        found = self._digests.get(path)
        if found is None:
            try:
                data = self.reader.read(path)
            except OSError:
                return "", False
            found = hashlib.sha256(data).hexdigest(), _PDF in data[:_PDF_WITHIN]
            if len(self._digests) < KEPT_TEXTS:
                self._digests[path] = found
        return found

    def is_picture(self, path: str, node: Scalar) -> bool:
        """Whether a file's first bytes may be those of a picture; if not, this is reported."""
        issue = self._pictures.get(path) or self._issue_of_picture(path)
        if len(self._pictures) < KEPT_TEXTS:
            self._pictures[path] = issue
        if issue[0]:
            self.report.error(issue[0], node, f"'{node.text}' {issue[1]}")
        return not issue[0]

    def _issue_of_picture(self, path: str) -> tuple[str, str]:
        """Code and message of what is wrong with a picture; both "" if it is valid."""
        from agentv.authoring.source.git_files import LFS_LONGEST, is_lfs_pointer

        if not is_file(path):  # excludes pipes, which may never end
            return "missing-file", "is not a file"
        try:
            with Path(path).open("rb") as file:
                data = file.read(LFS_LONGEST + 1)
        except OSError as error:
            return "missing-file", f"cannot be read: {error.strerror}"
        if is_lfs_pointer(data.decode(errors="replace")):
            return "lfs-pointer", "is a Git LFS pointer, not the picture itself"
        if is_broken_file(path, data):
            return "bad-value", "is empty" if not data else "is not a picture, despite its name"
        return "", ""

    def text_of(self, path: str, node: Scalar, hint: str | None = None) -> str | None:
        """The text of a file, or None after reporting that it cannot be read. `hint` is shown if it is not UTF-8."""
        from agentv.authoring.source.git_files import is_lfs_pointer

        cached = self._texts.get(path)
        if cached is not None:
            return cached
        try:
            text = self.reader.read(path).decode("utf-8-sig")
        except IsADirectoryError:
            self.report.error("missing-file", node, f"'{node.text}' is a directory, expected a file")
        except OutsideError:
            self.report.error(OUTSIDE, node, f"cannot read '{node.text}': {REASON}", hint=ALLOW)
        except OSError as error:
            self.report.error("missing-file", node, f"cannot read '{node.text}': {error.strerror}")
        except UnicodeDecodeError as error:
            message = f"'{node.text}' is not UTF-8 text (byte {error.start + 1})"
            self.report.error("not-utf-8", node, message, hint=hint)
        else:
            if is_lfs_pointer(text):
                self.report.error("lfs-pointer", node, f"'{node.text}' is a Git LFS pointer, not the file itself")
                return None
            if len(self._texts) < KEPT_TEXTS:
                self._texts[path] = text
            return text
        return None

    def rendered(self, node: Node) -> Node | None:
        """The node with its placeholders filled in, or None after reporting an error."""
        return _render(node, self) if self.renders else node

    def filled(self, node: Scalar) -> str | None:
        """The text of a scalar with its placeholders filled in as text, or None after reporting errors.

        All undefined names are reported. If an unset environment variable is only a warning, the text is unchanged.
        """
        scope, whole = self.scope, True
        while True:
            try:
                text = render_text(node.text, scope)
            except RenderError as error:
                if not whole and error.name not in undeclared(node.text):
                    return None  # it is missing inside an undefined value, which was reported
                at = span_of(node.at)
                of_line = None if error.line is None or error.name else at.line + error.line - 1
                place = node.at if of_line is None else place_in_file(at.file, None, of_line, self)
                _report(error, Scalar(node.value, node.text, place), self)
                if error.code == "unset-environment" and not self.strict_env:
                    return node.text
                if error.code != "undefined-variable" or not error.name or error.name in scope.vars:
                    return None
                scope, whole = replace(scope, vars={**scope.vars, error.name: ""}), False
            else:
                return text if whole else None

    def render_text(self, node: Scalar) -> str | None:
        """The rendered text of a scalar, or None after reporting an error."""
        found = self.rendered(node)
        if isinstance(found, Scalar):
            return found.value if isinstance(found.value, str) else found.text
        if found is not None:
            self.report.error("bad-value", node, "expected text, but the placeholder produced a list or mapping")
        return None


def _render(node: Node, reading: Reading) -> Node | None:
    """The node with every placeholder filled in, or None if any cannot be. All errors are reported."""
    if isinstance(node, Scalar):
        return _render_scalar(node, reading)
    if isinstance(node, ListNode):
        items = [_render(item, reading) for item in node.items]
        rendered = [item for item in items if item is not None]
        if len(rendered) < len(items):
            return None
        changed = any(one is not other for one, other in zip(rendered, node.items, strict=True))
        return ListNode(rendered, node.at) if changed else node
    pairs = {key: _render(item, reading) for key, item in node.items.items()}
    filled = {key: item for key, item in pairs.items() if item is not None}
    if len(filled) < len(pairs):
        return None
    changed = any(filled[key] is not node.items[key] for key in filled)
    return MapNode(filled, node.keys, node.at) if changed else node


def _render_scalar(node: Scalar, reading: Reading) -> Node | None:
    if not isinstance(node.value, str) or not has_placeholder(node.value) or type(node) is Filled:
        return node
    try:
        scope = replace(reading.scope, closed=True) if reading.data else reading.scope
        value = render(node.value, scope)
    except RenderError as error:
        reading.report.leave_unrendered()
        _report(error, node, reading)
        return None
    if "${{" in node.value:
        for name in environment_names(node.value):
            if name in reading.scope.vars:
                message = f"'${{{{ {name} }}}}' is the environment variable, but there is also a variable '{name}'"
                hint = f"for the variable, write {{{{ {name} }}}}; for the environment, {{{{ env.{name} }}}}"
                reading.report.warning("environment-or-variable", _place_of(name, node, reading), message, hint=hint)
    return node_of(value, node.at)


_SPACED = lazy_pattern(r"\{\{ *(\w+(?: \w+)+) *\}\}")
"""A placeholder of several words, such as the header of a spreadsheet column."""


def _report(error: RenderError, node: Scalar, reading: Reading) -> None:
    place = _place_of(error.name, node, reading)
    if error.code == "unset-environment":
        near = nearest(error.name, reading.scope.env) if error.name else None
        reading.report.unset.update([error.name] if error.name else [])
        add = reading.report.error if reading.strict_env else reading.report.warning
        hint = f"did you mean '{near}'?" if near else None
        if error.name in reading.scope.vars:
            hint = f"for the variable, write {{{{ {error.name} }}}}, without the $"
        add(error.code, place, error.message, hint=hint)
        return
    if error.code == UNTRUSTED:
        reading.report.error(error.code, place, error.message, hint=ALLOW_DATA)
        return
    # advice on literal braces is shown as a hint, not in the message
    message = error.message.removesuffix(f"; {LITERAL_HINT}").removesuffix(".")
    advice = LITERAL_HINT if message != error.message else None
    hint = did_you_mean(error.name, reading.scope.vars) if error.name else None
    if spaced := _SPACED.search(node.text) if error.code == "bad-template" else None:
        message = f"not a valid template: '{spaced[1]}' has a space"
        hint = f"for a variable with spaces, write {{{{ vars['{spaced[1]}'] }}}}"
    notes = (advice,) if hint and advice else ()
    reading.report.error(error.code, place, message, hint=hint or advice, notes=notes)


def _place_of(name: str | None, node: Scalar, reading: Reading) -> Place:
    """Position of a name's placeholder within a text. It is searched for in the source, as lines may be folded."""
    span = span_of(node.at)
    if name is None or isinstance(node.at, Span) or reading.report.count >= _MOST_LOCATED:
        return node.at
    try:
        lines = reading.reader.read(span.file).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return node.at
    return _placeholder(name, lines, span) or node.at


def place_in_file(path: str, name: str | None, line: int | None, reading: Reading) -> Span:
    """Position of a name's placeholder in a file that was read as text, or else of the line or the file's start."""
    whole = Span.start_of(path)
    try:
        lines = reading.reader.read(path).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return whole
    found = None if name is None else _placeholder(name, lines, Span(path, 1, 1, max(len(lines), 1), 1))
    if found is not None or line is None or not 0 < line <= len(lines):
        return found or whole
    return Span(path, line, 1, line, len(lines[line - 1]) + 1)


def _placeholder(name: str, lines: Sequence[str], within: Span) -> Span | None:
    placeholder = re.compile(r"\$?\{[{%][^}%]*?(?<![\w.])(?:\w+\.)*?" + re.escape(name) + r"\b[^}%]*[}%]\}")
    for number in range(within.line, min(within.end_line, len(lines)) + 1):
        if len(lines[number - 1]) > LONGEST_LINE:
            break
        found = placeholder.search(lines[number - 1], within.column - 1 if number == within.line else 0)
        if found:
            return Span(within.file, number, found.start() + 1, number, found.end() + 1)
    return None


def _nearest_hint(key: str, listed: list[str], extra: ExtraKeys) -> str | None:
    """A hint with the canonical name of the known key most similar to a misspelt one, or None."""
    found = nearest(key, [*listed, *extra.hinted])
    return None if found is None else f"did you mean '{extra.older.get(found, found)}'?"


def _comma_hint(key: str, mapping: MapNode) -> str | None:
    """A hint if a comma in a flow mapping ended a text, so that its rest became a key without a value; or None."""
    own, alone = span_of(mapping.keys[key]), span_of(mapping.items[key].at)
    if (alone.line, alone.column) != (own.end_line, own.end_column):
        return None  # it has a value, or a colon without one
    names = list(mapping.keys)
    place = names.index(key)
    text = mapping.items.get(names[place - 1]) if place else None
    if not isinstance(text, Scalar) or not isinstance(text.value, str):
        return None
    return f"quote the value of '{names[place - 1]}': inside {{ }}, a comma ends an unquoted text"


def _foreign_hint(key: str, listed: Iterable[str], mapping: MapNode) -> str | None:
    """A hint for a key that other tools use, or that belongs to an assertion; or None."""
    suggestion = MEANT.get(key)
    if suggestion is not None and suggestion in listed:
        return f"did you mean '{suggestion}'?"
    if key in _ASSERTION_KEYS and "assert" in mapping.items:
        return f"'{key}' belongs to an assertion: indent it like its 'type'"
    return None


def notes_of(tried: Sequence[str]) -> list[str]:
    """Notes with the paths that were tried for a missing file; if there are many, the first ones and the last."""
    listed = [f"tried {shown(path)}" for path in tried]
    if len(listed) <= LISTED_PATHS + 1:
        return listed
    left_out = len(listed) - LISTED_PATHS
    return [*listed[: LISTED_PATHS - 1], f"tried {left_out} more directories above", listed[-1]]


def sibling(text: str, tried: Iterable[str]) -> str | None:
    """A hint with the most similar file name in the tried directories, or None."""
    base = os.path.basename(text)  # noqa: PTH119  # the rest of the text is kept as authored
    for path in tried:
        folder = Path(path).parent
        if base and is_directory(str(folder)):
            near = nearest(base, [one.name for one in folder.iterdir()])
            if near:
                return f"did you mean '{text.removesuffix(base)}{near}'?"
    return None
