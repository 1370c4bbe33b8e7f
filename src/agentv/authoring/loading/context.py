"""Context in which one eval file is read, with the YAML file next to cases of JSON Lines or CSV (SPEC section 2)."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.fields.agentv.spellings import SUITE
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.request import LoadRequest, Registries
from agentv.authoring.source.boundary import ALLOW, OUTSIDE, REASON, Boundary, OutsideError, boundary_around
from agentv.authoring.source.files import DiskReader, Places, is_file, repository_root, shown, template_home
from agentv.authoring.source.nodes import MapNode, kind_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import Diagnostic
from agentv.model.secrets.redaction import Redactor
from agentv.model.suite.repository import Checkout, RepositoryFile, Unavailable
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.span import Span
from agentv.model.values.values import EMPTY
from agentv.templating import Scope


class SuiteContext(Struct, frozen=True):
    """Context in which one eval file is read.

    Attributes:
        path: of the eval file.
        registries: meaning of names.
        disk: reads files, and stores their digests.
        boundary: files that may be read.
        reading: of the header; the environment is not known yet.
    """

    path: str
    request: LoadRequest
    registries: Registries
    disk: DiskReader
    boundary: Boundary
    reading: Reading

    @classmethod
    def of(cls, path: str, request: LoadRequest, registries: Registries, report: Report) -> SuiteContext:
        """The context for the file at a path."""
        directory = _home(path)
        root = repository_root(directory)
        typed = {request.env_file} if request.env_file is not None else set()
        boundary = replace(boundary_around(directory, root), is_open=request.allow_outside, typed=typed)
        disk = DiskReader(request.edits, boundary)
        places = Places(directory, root, on_path=request.on_path, boundary=boundary)

        def checkout(wanted: RepositoryFile) -> Checkout | Unavailable:
            return registries.checkouts(wanted, request.process_env)

        reading = Reading(
            report,
            disk,
            places,
            Scope(EMPTY, {}),
            strict_env=request.for_run,
            checkout=checkout,
            spares=request.for_run and not (request.asks and request.asks_targets),
            providers=registries.providers,
        )
        return cls(path, request, registries, disk, boundary, reading)

    @property
    def top(self) -> Span:
        """The beginning of the file."""
        return Span(self.path, 1, 1, 1, 2)

    @property
    def runs_code(self) -> bool:
        """Whether code that generates cases is run."""
        return self.request.for_run or self.request.makes

    @property
    def report(self) -> Report:
        """Gets what is wrong."""
        return self.reading.report

    def bytes_of(self, path: str) -> bytes | None:
        """Content of a file; None if it cannot be read, which is reported."""
        try:
            return self.disk.read(path)
        except OutsideError:
            self.report.error(OUTSIDE, Span(path, 1, 1, 1, 2), f"cannot read {shown(path)}: {REASON}", hint=ALLOW)
        except OSError as error:
            self.report.error("missing-file", Span(path, 1, 1, 1, 2), f"cannot read {shown(path)}: {error.strerror}")
        return None

    def diagnostics(self, reading: Reading, *, shared: bool) -> tuple[Diagnostic, ...]:
        """Diagnostics without ignored ones, sorted by position, and without secrets or content from outside.

        Args:
            reading: of the suite, as far as it was read; knows the secrets.
            shared: the file is one that many suites use, such as a template.
        """
        found, marked = tuple(map(self.boundary.shown, self.report.diagnostics)), self.disk.marked
        if found:
            redactor = Redactor(reading.environment_secrets() | reading.secrets)
            found = tuple(map(redactor.redact_diagnostic, found)) if redactor else found
        if not marked:
            return found
        from agentv.authoring.source.ignores import without_ignored

        # an unused comment is known only where all remarks are made: not in a run, which needs no hints, nor in a
        # template, whose remarks are made on the eval files that include it
        own = Path(self.path).with_suffix("")
        alone = self.request.for_run or shared
        reported = [] if alone else [path for path in marked if Path(path).with_suffix("") == own]
        return without_ignored(found, marked, reported=reported)


def _home(path: str) -> str:
    """Where the paths of a file begin: its directory; for a template the directory that holds its `.agentv`."""
    return template_home(path) or str(Path(path).parent)


TESTS = frozenset(SUITE.spelled("tests"))
"""Keys of an eval file that say where its cases are."""

_TESTS_KEY = lazy_pattern(
    rb"""(?:^|[{,]\s*)["']?(?:""" + b"|".join(key.encode() for key in sorted(TESTS)) + rb""")["']?\s*:""", re.MULTILINE
)


class Sidecar(Struct, frozen=True):
    """Content of a sidecar.

    Attributes:
        root: its mapping; empty if there is no sidecar, or if it cannot be read.
        valid: whether it is valid; mistakes have been reported.
        renders: it may contain placeholders; None if it is empty.
    """

    root: MapNode
    valid: bool = True
    renders: bool | None = None


def read_sidecar(context: SuiteContext) -> Sidecar:
    """The suite's keys, from the YAML file of the same name next to the cases."""
    nothing, report = MapNode({}, {}, context.top), context.report
    cases = Path(context.path)
    path = next((str(p) for s in (".yaml", ".yml") if (p := cases.with_suffix(s)).is_file()), None)
    data = context.bytes_of(path) if path is not None else None
    if path is None or data is None:
        return Sidecar(nothing)
    root, valid = read_yaml(path, data, report)
    if not isinstance(root, MapNode):
        if root is not None:
            report.error("bad-eval-file", root, f"a sidecar is a mapping, found {kind_of(root)}")
        return Sidecar(nothing, valid)
    for key in root.items.keys() & TESTS:
        message = f"the cases are in {cases.name}; its sidecar takes no '{key}'"
        report.error("bad-eval-file", root.keys[key], message)
    return Sidecar(root, valid, b"{{" in data or b"{%" in data)


def cases_beside(path: str) -> str | None:
    """The JSON Lines file whose sidecar a YAML file is; None where it says itself where its cases are."""
    cases = Path(path).with_suffix(".jsonl")
    if not cases.is_file() or not is_file(path) or _TESTS_KEY.search(Path(path).read_bytes()):
        return None
    return str(cases)
