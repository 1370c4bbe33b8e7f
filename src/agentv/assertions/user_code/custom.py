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
"""Where a project keeps its assertion types."""

MAY_OVERRIDE = frozenset({"word-count"})
"""Built-in types that a project's own file replaces: seed 003 names this one as a custom type."""

ReadName = Callable[[str], tuple[str, bool]]
"""A name of a type as written → its canonical name, and whether `not-` in front inverts it."""


def discover(directory: str, root: str, read_name: ReadName) -> Discovered:
    """The custom types in reach of an eval file. Reads names alone; a file is parsed when an entry names its type.

    Args:
        directory: absolute, of the eval file.
        root: absolute; the walk upwards ends there.
        read_name: how eval files read the name of a type, older spellings included.

    Returns:
        The types by their kebab-case names, every `.agentv/assertions` looked at, and per file what is wrong:
        a warning `shadowed-assertion`, an error `ambiguous-assertion`.
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
    """The types that the files of one directory are; those that cannot be are left out and reported."""
    files: dict[str, list[str]] = {}
    for file in sorted(_files(home)):
        files.setdefault(Path(file).stem.strip().replace("_", "-"), []).append(file)
    types: dict[str, OpenAssertionType] = {}
    issues: list[tuple[str, Issue]] = []
    for name, paths in files.items():
        means, _ = read_name(name)
        if means in built_in and name not in MAY_OVERRIDE:
            read = (
                "is a built-in assertion type" if means == name else f"refers to the built-in assertion type '{means}'"
            )
            for path in paths:
                message = f"{Path(path).name} is ignored: '{name}' {read}"
                issues.append((path, Issue((), message, "shadowed-assertion", "rename the file", warning=True)))
            continue
        # `not-spam` is the complement of `spam`, so beside a file of that name it is a second file for one name
        same = paths if means == name else [*files.get(means, ()), *paths]
        if len(same) > 1:
            names = " and ".join(Path(path).name for path in same)
            message = f"{names} both define the assertion type '{means}'; keep one of them"
            issues.append((same[-1], Issue((), message, "ambiguous-assertion")))
        else:
            types[name] = KINDS[Path(paths[0]).suffix](name, paths[0])
    return Discovered(types, searched, tuple(issues))


def _files(home: Path) -> Iterator[str]:
    """The files of types; their tests, as Vitest's and pytest's, and declarations lie beside them."""
    for entry in os.scandir(home):
        stem, suffix = os.path.splitext(entry.name)  # noqa: PTH122  # a name of scandir is text
        beside = stem.endswith((".test", ".spec", ".d")) or stem.startswith(("_", "."))
        if suffix == ".py":
            beside = beside or stem.startswith("test_") or stem.endswith("_test")
        if suffix in KINDS and not beside and entry.is_file():
            yield entry.path


def merge_config(options: JsonObject) -> tuple[JsonObject, list[Issue]]:
    """The keys of an entry merged with those under its `config:`, and problems of using both."""
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
    """The options in a few words; part of an entry's default name."""
    if not options:
        return ""
    value_only = options.keys() == {"value"}
    shown = (
        _words(options["value"])
        if value_only
        else ", ".join(f"{key}={_words(value)}" for key, value in options.items())
    )
    return shorten(shown, limit)


def _words(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class JavaScriptType:
    """A `.ts`, `.js`, `.mts` or `.mjs` file in `.agentv/assertions/`. It takes any option."""

    name: str
    path: str

    short: ClassVar[str | None] = "value"
    options: ClassVar[tuple[str, ...] | None] = None

    def build(self, options: JsonObject) -> JavaScriptAssertion | list[Issue]:
        """The assertion with these options, or a clash between them and `config:`."""
        config, issues = merge_config(options)
        return issues or JavaScriptAssertion(self.name, self.path, config)


@dataclass(frozen=True, slots=True)
class JavaScriptAssertion:
    """One entry of a custom type: the options that reach its function as `config`, and as `value`."""

    type: str
    path: str
    config: JsonObject

    needs_judge: ClassVar[bool] = False
    timeout_s: ClassVar[float] = CODE_TIMEOUT_S
    runs_code: ClassVar[bool] = True
    runs_javascript: ClassVar[bool] = True

    def label(self) -> str:
        """Its options."""
        return label_of(self.config)

    async def grade(self, context: AssertionContext) -> Grade:
        """Have the file's default export grade the answer."""
        value = {"value": self.config.get("value")} if self.config else {}
        context = replace(context, config=self.config) if self.config else context
        # promptfoo's context is for a function of (output, context)
        payload = {**context.payload, **value, "promptfoo": promptfoo_context(context)}
        # who grades an entry cancels it when its time is up, so the process need not watch the clock too
        answer = await context.services.javascript.grade(self.path, payload, math.inf)
        if isinstance(answer, Failure):
            return Grade.errored(answer.code, f"{self.type} {answer.message}")
        return grade_of(with_checks(answer), self.type)


@dataclass(slots=True)
class PythonType:
    """A `.py` file in `.agentv/assertions/`. It is parsed at its first use."""

    name: str
    path: str
    _read: Signature | Issue | None = None

    @property
    def signature(self) -> Signature | Issue:
        """Signature of its function, or why the file is no assertion."""
        if self._read is None:
            file = Path(self.path)
            try:
                self._read = read_signature(file.read_bytes(), file.name)
            except OSError as error:
                self._read = Issue((), f"{file.name} cannot be read: {error.strerror}", BAD_FILE)
        return self._read

    @property
    def short(self) -> str | None:
        """The parameter that a single value fills; for a broken file any, so that `build` reports the problem."""
        signature = self.signature
        return "value" if isinstance(signature, Issue) else signature.short

    @property
    def options(self) -> tuple[str, ...] | None:
        """The parameters of its function; None: any."""
        signature = self.signature
        return None if isinstance(signature, Issue) or signature.takes_any else signature.names

    def build(self, options: JsonObject) -> PythonAssertion | list[Issue]:
        """The assertion with its parameters filled, or all that is wrong with them. Runs no code of the file."""
        signature = self.signature
        if isinstance(signature, Issue):
            return [signature]
        # a parameter of that name is one like any other
        merged, issues = (options, list[Issue]()) if "config" in signature.names else merge_config(options)
        for issue in signature.validate(merged):
            inside = issue.path and issue.path[0] not in options
            issues.append(replace(issue, path=("config", *issue.path)) if inside else issue)
        return issues or PythonAssertion(self, signature.function, merged, signature.takes_output)


@dataclass(frozen=True, slots=True)
class PythonAssertion:
    """One entry of a custom type: the parameters that its function is called with.

    Attributes:
        takes_output: it is called with the output and the context, as in promptfoo.
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
        """The file that its code is in."""
        return self.type.path

    @property
    def identity(self) -> tuple[object, ...]:
        """Data that distinguish it from other assertions besides its file's content; equal in every process."""
        return (self.type.name, self.function, self.parameters)

    def label(self) -> str:
        """Its parameters."""
        return label_of(self.parameters)

    async def grade(self, context: AssertionContext) -> Grade:
        """Call the function in its worker."""
        call = CodeCall(
            "grading",
            f"{ADAPTERS}:with_context",
            {"takes_output": self.takes_output, "parameters": self.parameters},
            code="assertion-raised",
            what=self.type.name,
            function=self.function,
            file=self.path,
        )
        read = _read if self.takes_output else grade_of
        return await grade_in_worker(context, call, self.parameters or None, read)


def _read(value: object, subject: str) -> Grade:
    """The grade of what a function of promptfoo returned."""
    return grade_of(from_python(value), subject)


KINDS = {
    ".py": PythonType,
    ".ts": JavaScriptType,
    ".js": JavaScriptType,
    ".mts": JavaScriptType,
    ".mjs": JavaScriptType,
}
"""Suffix → what a file with it is."""
