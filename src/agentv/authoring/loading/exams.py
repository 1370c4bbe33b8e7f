"""The record of a suite's `exam:`: the prompt, and the files and targets that the exam depends on (SPEC section 11)."""

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

_IGNORED = frozenset({".env", META})


def exam_of(of: AuthoredExamOf, header: Header, suite: Suite, request: LoadRequest, read: Mapping[str, bytes]) -> Exam:
    """The data with which a run of an exam is recorded.

    Args:
        of: the prompt.
        header: header of the suite.
        suite: the suite as loaded.
        request: options of the command line.
        read: path → content of every file that was read for the suite.
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
    """The exam's own model if the command line overrides it; otherwise None. Mistakes in it are not reported."""
    if not header.cases.context.request.targets_win:
        return None
    registry, silent = header.targets.registry, Report()
    node = header.authored.targets or registry.default_target
    if isinstance(node, Scalar) and node.text in registry.entries:
        return registry.read_alone(node.text, silent)
    return registry.inline(node, header.reading.reporting_to(silent)) if node is not None else None


def _is_other(suite: Suite, header: Header, request: LoadRequest, own: TargetSpec | None) -> bool:
    """Whether the command line changes the inputs, or overrides the model or judge that the exam names.

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
    """The models and judges that the exam names, or else those of the command line."""
    models = (own,) if own is not None else suite.targets
    for case in suite.cases:
        yield from (case.target,) if case.target is not None else models
    judging = header.cases.notes.judging
    yield from tuple(judging.used(replace(suite, forced_judge=None), suite.judges)) or judging.used(suite, suite.judges)


def _texts(directory: str, suite: Suite, read: Mapping[str, bytes], asked: Iterator[TargetSpec]) -> dict[str, bytes]:
    """Path relative to the prompt's directory, or name of a target → content, for all that an exam depends on.

    The result is the same when the exam runs, in `doctor` and at promotion.

    Args:
        directory: directory of the prompt.
        suite: the exam; its assertions name files that loading does not read.
        read: path → content of every file that was read for the suite.
        asked: its models and judges.
    """
    root = repository_root(directory).rstrip(os.sep) + os.sep
    checks = {path for case in suite.cases for entry in case.assertions for path in _files_of_assertion(entry, suite)}
    others = set(_files_of_targets(suite)) - checks
    texts = {path: data for path, data in read.items() if path not in others and not _is_ignored(path, directory)}
    for path in sorted(checks - texts.keys()):
        # files outside the repository, such as a command's interpreter, differ from machine to machine
        if is_file(path) and path.startswith(root):
            with suppress(OSError):
                texts[path] = Path(path).read_bytes()
    found = {_relative(path, directory): normalised(data) for path, data in texts.items()}
    return found | {f"{TARGET}{spec.name}": target_record(spec, directory) for spec in asked}


def target_record(spec: TargetSpec, directory: str) -> bytes:
    """The public settings of a target and the digests of its files, as JSON."""
    root = repository_root(directory).rstrip(os.sep) + os.sep
    paths = (path for path in (*spec.files, *files_of_settings(spec.settings)) if path.startswith(root))
    files = {_relative(path, directory): digest_of(path) for path in paths}
    record = {**_without_secrets(spec.public), "files": files}
    return (json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False, default=str) + "\n").encode()


def _without_secrets(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without masked ones: which keys are set differs from machine to machine."""
    return {
        key: _without_secrets(value) if isinstance(value, Mapping) else value
        for key, value in settings.items()
        if value != MASK
    }


def _is_ignored(path: str, directory: str) -> bool:
    """Whether a file is ignored: it configures the machine or project, describes a prompt, or is named by its URL."""
    if checkout_of(path) is not None:
        return True  # the exam contains its URL
    folder, name = os.path.split(path)
    if name == SKILL and folder != directory:
        return True
    return name in _IGNORED or is_of_project(Path(path))


def _files_of_assertion(entry: AssertionEntry, suite: Suite) -> Iterator[str]:
    """The files on which an assertion depends: code, schemas, judge prompts."""
    search = None if suite.graders is None else suite.graders.search
    for one in entry.nested():
        yield from files_behind(one.assertion, search)
        yield from files_behind(one.settings, search)


def _files_of_targets(suite: Suite) -> Iterator[str]:
    """The files that targets and judges name: recordings and code."""
    own = (spec for case in suite.cases for spec in (case.target, case.judge))
    named = (suite.judge, suite.forced_judge, suite.default_judge, *suite.judges.values(), *suite.targets, *own)
    for spec in {id(spec): spec for spec in named if spec is not None}.values():
        yield from files_of_settings(spec.settings)


def _relative(path: str, directory: str) -> str:
    return os.path.relpath(path, directory).replace(os.sep, "/")
