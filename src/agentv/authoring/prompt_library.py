"""The prompt library: its location, the files of a prompt's directory, and `meta.yaml` (SPEC section 11)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from agentv.authoring.config import read_config
from agentv.authoring.fields.case_keys import read_tags
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import Unread
from agentv.authoring.source.files import (
    EXAM_FILES,
    META,
    OF_PROMPTS,
    PROMPT_FILES,
    SKIPPED_DIRECTORIES,
    DiskReader,
    Places,
    is_directory,
    is_exam,
    is_file,
    repository_root,
    shown,
    upwards,
)
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import MapNode, Place, Scalar, plain, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import UsageError
from agentv.model.suite.exam import LONGEST_DESCRIPTION, STATUSES, PromptMeta, PromptStatus
from agentv.model.values.values import EMPTY, Span
from agentv.registry.fields import Declared, Doc, Nonempty, Text, Verbatim
from agentv.templating import Scope

if TYPE_CHECKING:
    from agentv.authoring.fields.json_kinds import Schema

LIBRARY = "prompts"
"""Name of the library's directory if no config file sets `prompts_dir`."""

_NOT_IN_IDS = "/\\"


def exam_of(directory: str | Path) -> str | None:
    """Path of the exam in a prompt's directory, or None."""
    return next((str(path) for name in EXAM_FILES if (path := Path(directory) / name).is_file()), None)


def exam_above(path: str) -> str | None:
    """Path of the exam of the prompt whose directory contains a file, or None."""
    directory = Path(path).parent
    found = (exam_of(parent) for parent in upwards(str(directory), repository_root(str(directory))))
    return next((exam for exam in found if exam is not None and is_exam(exam)), None)


def prompt_file_of(directory: str | Path) -> Path | None:
    """The first prompt file of a directory, or None."""
    return next((path for name in PROMPT_FILES if (path := Path(directory) / name).is_file()), None)


def the_prompt_file(directory: str | Path, reading: Reading, at: Place | None = None) -> Path | None:
    """The only prompt file of a directory, or None after reporting that it has none, or more than one.

    Args:
        directory: absolute path of the prompt's directory.
        reading: context with the report.
        at: position to report if there is no prompt file.
    """
    beside = [file for name in PROMPT_FILES if (file := Path(directory) / name).is_file()]
    if not beside:
        tried = [f"tried {shown(str(Path(directory) / name))}" for name in PROMPT_FILES]
        reading.report.error("missing-file", at, "there is no prompt next to this exam", notes=tried)
    elif len(beside) > 1:
        message = f"a prompt has one text, found {' and '.join(one.name for one in beside)}"
        reading.report.error("bad-prompt-file", Span.start_of(str(beside[0])), message, hint="keep one of them")
    return beside[0] if len(beside) == 1 else None


def check_prompt(directory: str | Path, reading: Reading) -> None:
    """Report mistakes in the text of a prompt without an exam."""
    from agentv.authoring.cases.prompts import sections_of

    file = the_prompt_file(directory, reading)
    if file is not None:
        path = str(file)
        text = reading.text_of(path, Scalar(path, shown(path), Span.start_of(path)))
        if text is not None:
            sections_of(path, text, reading.report)


class AuthoredMeta(Declared, Struct, frozen=True):
    """The outermost mapping of `meta.yaml`. Other keys are allowed."""

    id: Annotated[Text | None, Nonempty(), Doc("id of the prompt in commands; default: the directory name")] = None
    description: Annotated[
        Text | None, Nonempty(), Doc("when to use the prompt; a system loads the prompt based on this text alone")
    ] = None
    status: Annotated[PromptStatus, Verbatim(), Doc("status of the prompt; `agentv prompt promote` sets it")] = "draft"
    owner: Annotated[Text | None, Nonempty(), Doc("person or team that is responsible for the prompt")] = None
    tags: Annotated[Unread, Doc("labels")] = None


def read_meta(directory: str, reading: Reading) -> PromptMeta:
    """Read a prompt's `meta.yaml`. Invalid parts are reported and left out.

    Args:
        directory: absolute path of the prompt's directory.
        reading: provides the report and the reader; placeholders in the file are plain text.
    """
    default = PromptMeta(os.path.basename(directory.rstrip(os.sep)))  # noqa: PTH119  # called a thousand times for a listing
    path = os.path.join(directory, META)  # noqa: PTH118
    try:
        data = reading.reader.read(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not os.path.islink(path):  # noqa: PTH114
            return default
        reason = f"cannot read '{shown(path)}': {error.strerror}"
        reading.report.error("missing-file", Span.start_of(path), reason)
        return PromptMeta(default.id, path)
    root = read_yaml(path, data, reading.report).value
    if isinstance(root, MapNode):
        return _meta(root, PromptMeta(default.id, path), reading.rendering(False))
    if root is not None and not (isinstance(root, Scalar) and root.value is None):
        reading.report.unfit(root, f"{META} must be a mapping")
    return PromptMeta(default.id, path)


def _meta(root: MapNode, default: PromptMeta, reading: Reading) -> PromptMeta:
    rules = shape_of(AuthoredMeta).rules
    values: dict[str, Any] = {}
    for key, node in root.items.items():
        rule = rules.get(key)
        # a key may be left blank, as in a form; only a description may not
        is_blank = key != "description" and isinstance(node, Scalar) and node.value is None
        if rule is not None and not rule.unread and not is_blank:
            value = rule.kind.read(node, reading, key)
            if value is not INVALID:
                values[key] = value.strip()
    _warn_of_misspelt(root, rules, reading)
    text = values.get("description")
    if text is not None and len(text) > LONGEST_DESCRIPTION:
        message = f"this description has {len(text):,} characters; the maximum is {LONGEST_DESCRIPTION:,}"
        hint = "systems that load prompts by description show no more"
        reading.report.error("bad-value", root.items["description"], message, hint=hint)
    return PromptMeta(
        id=_id(values.get("id"), root, reading) or default.id,
        path=default.path,
        description=text,
        status=values.get("status", "draft"),
        owner=values.get("owner"),
        tags=read_tags(root.get("tags"), reading),
        others={key: plain(node) for key, node in root.items.items() if key not in rules} or EMPTY,
        places={key: _place(key, root) for key in root.items},
    )


def _id(text: str | None, root: MapNode, reading: Reading) -> str | None:
    """The id, or None after reporting one that a command line would take for a path or a flag."""
    if text is None:
        return None
    if text.isprintable() and not text.startswith("-") and not any(one in text for one in _NOT_IN_IDS):
        return text
    message = "an id is one line without '/' and '\\' that does not start with '-', so that commands can take it"
    reading.report.error("bad-value", root.items["id"], message)
    return None


def _warn_of_misspelt(root: MapNode, known: Mapping[str, object], reading: Reading) -> None:
    """Warn of unknown keys that resemble a known key that is not set. Other unknown keys are allowed."""
    for key in root.items:
        if key in known or key.startswith("x-"):
            continue
        near = nearest(key, [one for one in known if one not in root.items])
        if near is not None:
            message = f"unknown key '{key}' in {META}"
            reading.report.warning("unknown-key", root.keys[key], message, hint=f"did you mean '{near}'?")


def _place(key: str, root: MapNode) -> Span:
    """The position of a value, or of its key if the value is an alias, as its text is elsewhere."""
    value, at = span_of(root.items[key].at), span_of(root.keys[key])
    return value if (value.line, value.column) >= (at.end_line, at.end_column) else at


def meta_schema() -> Schema:
    """The JSON Schema of `meta.yaml`, without `$schema` and title."""
    from agentv.authoring.fields.json_kinds import TEXT, properties_of

    tags: Schema = {"anyOf": [{"type": ["string", "null"]}, {"type": "array"}, {"type": "object"}]}
    properties = properties_of(AuthoredMeta, {"tags": tags})
    properties["description"] |= {**TEXT, "maxLength": LONGEST_DESCRIPTION}
    properties["status"] |= {"enum": [*STATUSES, None]}
    return {"type": "object", "properties": properties}


def library_reading(working: str, env: Mapping[str, str]) -> Reading:
    """The context for `library_of` and `read_meta`, for a command that runs in a directory.

    Args:
        working: absolute path of the directory.
        env: the environment of the process.
    """
    places = Places(working, repository_root(working), alone=True)
    return Reading(Report(), DiskReader(), places, Scope(EMPTY, env), strict_env=False)


def library_of(working: str, reading: Reading) -> str | None:
    """The absolute path of the library, or None.

    The library is the `prompts_dir` of the closest config file, or else the closest `prompts/` up to the repository
    root. If `prompts_dir` is not a directory, this is reported and None is returned, although `read_config` returns it.
    """
    config = read_config(working, reading)
    if config.prompts_dir is None:
        above = (os.path.join(parent, LIBRARY) for parent in upwards(working, reading.places.root))  # noqa: PTH118
        return next(filter(is_directory, above), None)
    if is_directory(config.prompts_dir):
        return config.prompts_dir
    missing = f"'prompts_dir' is {shown(config.prompts_dir)}, which does not exist"
    reading.report.error("missing-file", config.nodes["prompts_dir"], missing)
    return None


def prompt_directories(library: str) -> list[str]:
    """The directories of the prompts in a library, as sorted absolute paths.

    A directory with a prompt file or a `meta.yaml` belongs to a prompt and is not searched further. The library itself
    is never a prompt, and links to directories are skipped, as in every search for eval files.

    Raises:
        UsageError: a directory cannot be searched.
    """
    found: list[str] = []
    waiting = [library]
    try:
        while waiting:
            directory = waiting.pop()
            entries = _entries(directory)
            if directory != library and _is_of_prompt(entries):
                found.append(directory)
                continue
            waiting += (
                one.path for one in entries if one.name not in SKIPPED_DIRECTORIES and one.is_dir(follow_symlinks=False)
            )
    except OSError as error:
        raise UsageError(f"{shown(library)} cannot be searched: {error.strerror}: {error.filename}") from None
    return sorted(found)


def is_prompt_directory(directory: str) -> bool:
    """Whether a directory belongs to a prompt.

    Raises:
        OSError: the directory cannot be read.
    """
    return _is_of_prompt(_entries(directory))


def _entries(directory: str) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        return list(entries)


def _is_of_prompt(entries: Iterable[os.DirEntry[str]]) -> bool:
    return any(entry.name in OF_PROMPTS and is_file(entry.path) for entry in entries)
