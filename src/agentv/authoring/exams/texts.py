"""Examined texts: the files and the description that an exam's evidence is about (SPEC section 11)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentv.authoring.code.fingerprints import digest_of, files_behind
from agentv.authoring.exams.prompt_files import META
from agentv.authoring.source.files import checkout_of, is_file, repository_root
from agentv.authoring.source.masking import MASK
from agentv.authoring.targets.target import files_of_settings
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.exam import DESCRIPTION, TARGET, PromptMeta, normalised
from agentv.model.suite.suite import Suite, TargetSpec

_SET_ASIDE = frozenset({".env", META})
_OF_PROJECT = frozenset(
    f"{name}.{suffix}" for name in ("targets", "providers", "config", "config.local") for suffix in ("yaml", "yml")
)


def texts_of(
    directory: str, meta: PromptMeta, suite: Suite, read: Mapping[str, bytes], asked: Iterable[TargetSpec] = ()
) -> dict[str, bytes]:
    """All that an exam's evidence covers: path from the prompt's directory → bytes, the description, the targets.

    It is the same when the exam runs, in `doctor` and at promotion.

    Args:
        directory: the prompt's.
        meta: whose description counts, and nothing else of its file.
        suite: the exam, loaded: its assertions name files that loading does not read.
        read: path → bytes of all files that were read for it.
        asked: the models and judges that it asks unless the command line names others.
    """
    root = repository_root(directory).rstrip(os.sep) + os.sep
    checks = {path for case in suite.cases for entry in case.assertions for path in _behind(entry, suite)}
    others = set(_of_targets(suite)) - checks
    texts = {path: data for path, data in read.items() if path not in others and not _is_set_aside(path)}
    for path in sorted(checks - texts.keys()):
        # what lies outside, such as the interpreter of a command, is another one on every machine
        if is_file(path) and path.startswith(root):
            with suppress(OSError):
                texts[path] = Path(path).read_bytes()
    found = {_named(path, directory): normalised(data) for path, data in texts.items()}
    if meta.description is not None:
        found[DESCRIPTION] = meta.description.encode()
    found |= {f"{TARGET}{spec.name}": target_record(spec, directory) for spec in asked}
    return dict(sorted(found.items()))


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


def _is_set_aside(path: str) -> bool:
    """Whether a file says where things run, and not what is asked and how it is judged."""
    if checkout_of(path) is not None:
        return True  # the exam names it by its URL
    folder, name = os.path.split(path)
    return name in _SET_ASIDE or (name in _OF_PROJECT and os.path.basename(folder) == ".agentv")  # noqa: PTH119


def _behind(entry: AssertionEntry, suite: Suite) -> Iterator[str]:
    """The files that an assertion names: code, schemas, judge prompts."""
    search = None if suite.graders is None else suite.graders.search
    yield from files_behind(entry.assertion, search)
    yield from files_behind(entry.settings, search)
    for child in entry.inner:
        yield from _behind(child, suite)


def _of_targets(suite: Suite) -> Iterator[str]:
    """The files that targets and judges name: recordings, code of their own."""
    own = (spec for case in suite.cases for spec in (case.target, case.judge))
    named = (suite.judge, suite.forced_judge, suite.default_judge, *suite.judges.values(), *suite.targets, *own)
    for spec in {id(spec): spec for spec in named if spec is not None}.values():
        yield from files_of_settings(spec.settings)


def _named(path: str, directory: str) -> str:
    return os.path.relpath(path, directory).replace(os.sep, "/")
