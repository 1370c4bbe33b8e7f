"""`exam:` of a suite: the prompt whose exam it is, and what the evidence of a run covers (SPEC section 11)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agentv.authoring.code.fingerprints import digest_of, files_behind
from agentv.authoring.dialects.skills import SKILL
from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.fields.schema import AuthoredExamOf
from agentv.authoring.header import Header
from agentv.authoring.source.files import META, checkout_of, is_file, is_of_project, repository_root
from agentv.authoring.source.masking import MASK
from agentv.authoring.source.nodes import Scalar
from agentv.authoring.source.report import Report
from agentv.authoring.targets.target import files_of_settings
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.exam import DESCRIPTION, TARGET, Exam, normalised
from agentv.model.suite.suite import Suite, TargetSpec

_SET_ASIDE = frozenset({".env", META})


def exam_of(of: AuthoredExamOf, header: Header, suite: Suite, request: LoadRequest, read: Mapping[str, bytes]) -> Exam:
    """The data that an attempt is recorded with.

    Args:
        of: the prompt.
        header: of the suite.
        suite: as loaded.
        request: options of the command line.
        read: path → bytes of all files that were read for it.
    """
    directory = os.path.normpath(Path(suite.path).parent / of.directory)
    own = _own_target(header)
    texts = _texts(directory, suite, read, _asked(suite, header, own))
    if of.description is not None:
        texts[DESCRIPTION] = of.description.encode()
    return Exam(
        prompt=of.prompt,
        directory=directory,
        texts=dict(sorted(texts.items())),
        other_model=_is_other(suite, header, request, own),
        queries={case.id: case.metadata["should_trigger"] is True for case in suite.cases if case.asks_judge},
    )


def _own_target(header: Header) -> TargetSpec | None:
    """The model that the exam would ask, if the command line names another; its mistakes are not reported here."""
    if not header.cases.context.request.targets_win:
        return None
    registry, silent = header.targets.registry, Report()
    node = header.authored.targets or registry.default_target
    if isinstance(node, Scalar) and node.text in registry.entries:
        return registry.read_alone(node.text, silent)
    return registry.inline(node, header.reading.reporting_to(silent)) if node is not None else None


def _is_other(suite: Suite, header: Header, request: LoadRequest, own: TargetSpec | None) -> bool:
    """Whether the command line has another model answer or judge than the exam names, or changes the inputs.

    An exam that names none accepts any.
    """
    if request.variables:
        return True
    if request.targets_win:
        named = [case.target or own for case in suite.cases if not case.asks_judge]
        unread = own is None and header.authored.targets is not None
        if unread or any(not _same(spec, one) for spec in named if spec is not None for one in suite.targets):
            return True
    judges = [suite.judge, *(case.judge for case in suite.cases)]
    forced = suite.forced_judge
    return forced is not None and any(not _same(spec, forced) for spec in judges if spec is not None)


def _same(one: TargetSpec, other: TargetSpec) -> bool:
    return (one.name, one.fingerprint) == (other.name, other.fingerprint)


def _asked(suite: Suite, header: Header, own: TargetSpec | None) -> Iterator[TargetSpec]:
    """The models and judges that the exam asks unless the command line names others; if it names none, those."""
    models = (own,) if own is not None else suite.targets
    for case in suite.cases:
        yield from (case.target,) if case.target is not None else models
    judging = header.cases.notes.judging
    yield from tuple(judging.used(replace(suite, forced_judge=None), suite.judges)) or judging.used(suite, suite.judges)


def _texts(directory: str, suite: Suite, read: Mapping[str, bytes], asked: Iterator[TargetSpec]) -> dict[str, bytes]:
    """The files and targets that an exam's evidence covers: path from the prompt's directory → bytes.

    They are the same when the exam runs, in `doctor` and at promotion.

    Args:
        directory: the prompt's.
        suite: the exam: its assertions name files that loading does not read.
        read: path → bytes of all files that were read for it.
        asked: the models and judges that it asks unless the command line names others.
    """
    root = repository_root(directory).rstrip(os.sep) + os.sep
    checks = {path for case in suite.cases for entry in case.assertions for path in _behind(entry, suite)}
    others = set(_of_targets(suite)) - checks
    texts = {path: data for path, data in read.items() if path not in others and not _is_set_aside(path, directory)}
    for path in sorted(checks - texts.keys()):
        # what lies outside, such as the interpreter of a command, is another one on every machine
        if is_file(path) and path.startswith(root):
            with suppress(OSError):
                texts[path] = Path(path).read_bytes()
    found = {_named(path, directory): normalised(data) for path, data in texts.items()}
    return found | {f"{TARGET}{spec.name}": target_record(spec, directory) for spec in asked}


def target_record(spec: TargetSpec, directory: str) -> bytes:
    """The settings of a target as a run records them, without secrets, and the digests of its own files."""
    root = repository_root(directory).rstrip(os.sep) + os.sep
    paths = (path for path in (*spec.files, *files_of_settings(spec.settings)) if path.startswith(root))
    files = {_named(path, directory): digest_of(path) for path in paths}
    record = {**_without_secrets(spec.public), "files": files}
    return (json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False, default=str) + "\n").encode()


def _without_secrets(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without those that are masked: whether a key is set differs from machine to machine."""
    return {
        key: _without_secrets(value) if isinstance(value, Mapping) else value
        for key, value in settings.items()
        if value != MASK
    }


def _is_set_aside(path: str, directory: str) -> bool:
    """Whether a file says where things run, or describes another prompt, and not what is asked and how it is judged."""
    if checkout_of(path) is not None:
        return True  # the exam names it by its URL
    folder, name = os.path.split(path)
    if name == SKILL and folder != directory:
        return True
    return name in _SET_ASIDE or is_of_project(Path(path))


def _behind(entry: AssertionEntry, suite: Suite) -> Iterator[str]:
    """The files that an assertion names: code, schemas, judge prompts."""
    search = None if suite.graders is None else suite.graders.search
    for one in entry.nested():
        yield from files_behind(one.assertion, search)
        yield from files_behind(one.settings, search)


def _of_targets(suite: Suite) -> Iterator[str]:
    """The files that targets and judges name: recordings, code of their own."""
    own = (spec for case in suite.cases for spec in (case.target, case.judge))
    named = (suite.judge, suite.forced_judge, suite.default_judge, *suite.judges.values(), *suite.targets, *own)
    for spec in {id(spec): spec for spec in named if spec is not None}.values():
        yield from files_of_settings(spec.settings)


def _named(path: str, directory: str) -> str:
    return os.path.relpath(path, directory).replace(os.sep, "/")
