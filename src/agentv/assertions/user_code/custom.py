"""Custom assertion types: the files of the nearest `.agentv/assertions/` (SPEC section 8)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace

from agentv.assertions.services_for_workers import ADAPTERS
from agentv.assertions.user_code.result import from_python, grade_in_worker, grade_of, with_checks
from agentv.assertions.user_code.signature import BAD_FILE, Signature, read_signature
from agentv.model.run.context import AssertionContext, promptfoo_context
from agentv.model.run.grade import Grade
from agentv.model.suite.suite import CODE_TIMEOUT_S
from agentv.model.values.formatting import shorten
from agentv.model.values.response import Failure
from agentv.model.values.values import Json, JsonObject
from agentv.ports import CodeCall
from agentv.registry.fields import Issue
from agentv.registry.types import Discovered, OpenAssertionType

HOME = (".agentv", "assertions")
"""Directory of a project's assertion types."""

MAY_OVERRIDE = frozenset({"word-count"})
"""Built-in types that a project's own file can replace: seed 003 names this one as a custom type."""

ReadName = Callable[[str], tuple[str, bool]]
"""Name of a type as written → (canonical name, whether the prefix `not-` negates it)."""


def discover(directory: str, root: str, read_name: ReadName) -> Discovered:
    """Return the custom types available to an eval file. Only reads file names: a file is parsed when its type is used.

    Args:
        directory: absolute path of the eval file's directory.
        root: absolute path of the topmost directory to search.
        read_name: reads the name of a type as in eval files, including older spellings.

    Returns:
        The types by kebab-case name, every `.agentv/assertions` that was searched, and issues by file: the warning
        `shadowed-assertion` and the error `ambiguous-assertion`.
    """
    from agentv.assertions.catalogue import NOT_YET, TYPES

    searched: list[str] = []
    for place in (Path(directory), *Path(directory).parents):
        home = place.joinpath(*HOME)
        searched.append(str(home))
        if home.is_dir():
            return types_in(home, tuple(searched), TYPES.keys() | NOT_YET, read_name)
        if place == Path(root):
            break
    return Discovered({}, tuple(searched))


def types_in(home: Path, searched: tuple[str, ...], built_in: Collection[str], read_name: ReadName) -> Discovered:
    """Return the types that the files of one directory define. Files that cannot are skipped and reported."""
    files: dict[str, list[str]] = {}
    for file in sorted(_files(home)):
        files.setdefault(Path(file).stem.strip().replace("_", "-"), []).append(file)
    types: dict[str, OpenAssertionType] = {}
    issues: list[tuple[str, Issue]] = []
    for name, paths in files.items():
        canonical, _ = read_name(name)
        if canonical in built_in and name not in MAY_OVERRIDE:
            read = (
                "is a built-in assertion type"
                if canonical == name
                else f"refers to the built-in assertion type '{canonical}'"
            )
            for path in paths:
                message = f"{Path(path).name} is ignored: '{name}' {read}"
                issues.append((path, Issue((), message, "shadowed-assertion", "rename the file", warning=True)))
            continue
        # `not-spam` is the negation of `spam`, so files of both names define the same type
        rivals = paths if canonical == name else [*files.get(canonical, ()), *paths]
        if len(rivals) > 1:
            names = " and ".join(Path(path).name for path in rivals)
            message = f"{names} both define the assertion type '{canonical}'; keep one of them"
            issues.append((rivals[-1], Issue((), message, "ambiguous-assertion")))
        else:
            types[name] = KINDS[Path(paths[0]).suffix](name, paths[0])
    return Discovered(types, searched, tuple(issues))


def _files(home: Path) -> Iterator[str]:
    """Yield the files that define types, without the tests, declarations and private files beside them."""
    for entry in os.scandir(home):
        stem, suffix = os.path.splitext(entry.name)  # noqa: PTH122  # scandir gives names as text
        is_other = stem.endswith((".test", ".spec", ".d")) or stem.startswith(("_", "."))
        if suffix == ".py":
            is_other = is_other or stem.startswith("test_") or stem.endswith("_test")
        if suffix in KINDS and not is_other and entry.is_file():
            yield entry.path


def merge_config(options: JsonObject) -> tuple[JsonObject, list[Issue]]:
    """Return the keys of an entry merged with those under its `config:`, and issues about keys in both places."""
    if "config" not in options:
        return options, []
    config = options["config"]
    if not isinstance(config, Mapping):
        return options, [Issue(("config",), f"'config' must be a mapping, found {type(config).__name__}")]
    direct = {name: value for name, value in options.items() if name != "config"}
    clashes = [
        Issue(("config", name), f"'{name}' is set both here and outside 'config'") for name in config if name in direct
    ]
    return {**config, **direct}, clashes


def label_of(options: Mapping[str, Json], limit: int = 60) -> str:
    """Return a short description of the options, which is part of an entry's default name."""
    if not options:
        return ""
    value_only = options.keys() == {"value"}
    shown = (
        _text_of(options["value"])
        if value_only
        else ", ".join(f"{key}={_text_of(value)}" for key, value in options.items())
    )
    return shorten(shown, limit)


def _text_of(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class JavaScriptType:
    """The type of a `.ts`, `.js`, `.mts` or `.mjs` file in `.agentv/assertions/`. It takes any option."""

    name: str
    path: str

    short: ClassVar[str | None] = "value"
    options: ClassVar[tuple[str, ...] | None] = None

    def build(self, options: JsonObject) -> JavaScriptAssertion | list[Issue]:
        """Return the assertion with these options, or issues about clashes with `config:`."""
        config, issues = merge_config(options)
        return issues or JavaScriptAssertion(self.name, self.path, config)


@dataclass(frozen=True, slots=True)
class JavaScriptAssertion:
    """One entry of a JavaScript type. Its function gets the options as `config`, and also `value` by itself."""

    type: str
    path: str
    config: JsonObject

    needs_judge: ClassVar[bool] = False
    timeout_s: ClassVar[float] = CODE_TIMEOUT_S
    runs_code: ClassVar[bool] = True
    runs_javascript: ClassVar[bool] = True

    def label(self) -> str:
        """The options."""
        return label_of(self.config)

    async def grade(self, context: AssertionContext) -> Grade:
        """Grade the answer by the default export of the file."""
        value = {"value": self.config.get("value")} if self.config else {}
        context = replace(context, config=self.config) if self.config else context
        # a function of (output, context) gets promptfoo's context
        payload = {**context.payload, **value, "promptfoo": promptfoo_context(context)}
        # no timeout here: the caller cancels the entry at its time limit
        answer = await context.services.javascript.grade(self.path, payload, math.inf)
        if isinstance(answer, Failure):
            return Grade.errored(answer.code, f"{self.type} {answer.message}")
        return grade_of(with_checks(answer), self.type)


@dataclass(slots=True)
class PythonType:
    """The type of a `.py` file in `.agentv/assertions/`. The file is parsed when it is first used."""

    name: str
    path: str
    _read: Signature | Issue | None = None

    @property
    def signature(self) -> Signature | Issue:
        """Signature of its function, or why the file does not define an assertion."""
        if self._read is None:
            file = Path(self.path)
            try:
                self._read = read_signature(file.read_bytes(), file.name)
            except OSError as error:
                self._read = Issue((), f"{file.name} cannot be read: {error.strerror}", BAD_FILE)
        return self._read

    @property
    def short(self) -> str | None:
        """The parameter that a single value sets; `value` for an invalid file, so that `build` reports the problem."""
        signature = self.signature
        return "value" if isinstance(signature, Issue) else signature.short

    @property
    def options(self) -> tuple[str, ...] | None:
        """The parameters of its function; None if it takes any."""
        signature = self.signature
        return None if isinstance(signature, Issue) or signature.takes_any else signature.names

    def build(self, options: JsonObject) -> PythonAssertion | list[Issue]:
        """Return the assertion with these parameters, or all issues with them. Does not run the file."""
        signature = self.signature
        if isinstance(signature, Issue):
            return [signature]
        # a parameter named `config` is like any other
        merged, issues = (options, list[Issue]()) if "config" in signature.names else merge_config(options)
        for issue in signature.validate(merged):
            inside = issue.path and issue.path[0] not in options
            issues.append(replace(issue, path=("config", *issue.path)) if inside else issue)
        return issues or PythonAssertion(self, signature.function, merged, signature.takes_output)


@dataclass(frozen=True, slots=True)
class PythonAssertion:
    """One entry of a Python type, with the parameters to call its function with.

    Attributes:
        takes_output: whether the function is called with the output and the context, as in promptfoo.
    """

    type: PythonType
    function: str
    parameters: JsonObject
    takes_output: bool = False

    needs_judge: ClassVar[bool] = False
    timeout_s: ClassVar[float] = CODE_TIMEOUT_S
    runs_code: ClassVar[bool] = True

    @property
    def path(self) -> str:
        """Path of the file with its code."""
        return self.type.path

    @property
    def identity(self) -> tuple[object, ...]:
        """Data besides the file's content that distinguish it from other assertions; the same in every process."""
        return (self.type.name, self.function, self.parameters)

    def label(self) -> str:
        """The parameters."""
        return label_of(self.parameters)

    async def grade(self, context: AssertionContext) -> Grade:
        """Call the function in a worker."""
        call = CodeCall(
            "grading",
            f"{ADAPTERS}:with_context",
            {"takes_output": self.takes_output, "parameters": self.parameters},
            code="assertion-raised",
            what=self.type.name,
            function=self.function,
            file=self.path,
        )
        read = _promptfoo_grade if self.takes_output else grade_of
        return await grade_in_worker(context, call, self.parameters or None, read)


def _promptfoo_grade(value: object, subject: str) -> Grade:
    """Return the grade for the return value of a promptfoo function."""
    return grade_of(from_python(value), subject)


KINDS = {
    ".py": PythonType,
    ".ts": JavaScriptType,
    ".js": JavaScriptType,
    ".mts": JavaScriptType,
    ".mjs": JavaScriptType,
}
"""File suffix → kind of type."""
