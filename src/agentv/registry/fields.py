"""Declarations of options: the fields of a frozen Struct or dataclass.

The parser of authored files, the checks, the error messages, the JSON Schema and the docs all use these declarations.
Classes in plugins are dataclasses; those of agentv are mostly Structs, which are faster to import. A field may have
these types only: `bool`, `int`, `float`, `str`, `Literal`, `Json`, tuples, mappings and nested declarations of them,
`| None`, and the types below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import NODEFAULT, Struct, field

from agentv.model.suite.assertion import AssertionEntry
from agentv.model.values.values import EMPTY, Json, JsonObject


class Doc(Struct, frozen=True):
    """Short description of an option for the reference page and the schema."""

    text: str


class Between(Struct, frozen=True):
    """Inclusive bounds of a number."""

    low: float | None = None
    high: float | None = None


class Nonempty(Struct, frozen=True):
    """Marks text, lists or objects that must not be empty."""


class Alias(Struct, frozen=True):
    """Older spellings of an option."""

    names: tuple[str, ...]


class ValueAlias(Struct, frozen=True):
    """Older spellings of an option's values: older value → canonical value."""

    values: Mapping[str, str]


class AsWritten(Struct, frozen=True):
    """Marks text that may be given as a YAML number or boolean, which is read as it is written."""


class FromFile(Struct, frozen=True):
    """Marks text that may be read from a file: `file://words.txt` is its content or, in a list, one item per line."""


class ExistingFile(Struct, frozen=True):
    """Marks a path of an existing file; resolved as in SPEC section 5, and the value is absolute."""


class ExistingDirectory(Struct, frozen=True):
    """Marks a path of an existing directory; resolved as in SPEC section 5, and the value is absolute."""


class ExistingPath(Struct, frozen=True):
    """Marks a path of an existing file or directory; resolved as in SPEC section 5, and the value is absolute."""


class NameOrDirectory(Struct, frozen=True):
    """Marks text that is a name or, if it begins with `./`, `../`, `/` or `~/`, the path of an existing directory."""


class Secret(Struct, frozen=True):
    """Marks text that must never be written anywhere."""


class NoSecrets(Struct, frozen=True):
    """Marks data without secrets, even if a key sounds like one: answers by case id, the names in a schema."""


class FromEnvironment(Struct, frozen=True):
    """Marks text whose default is the first environment variable of `names` that is set.

    Attributes:
        required: whether the target cannot be called without it, so that a run is refused.
    """

    names: tuple[str, ...]
    required: bool = True


class CallTimeTemplate(Struct, frozen=True):
    """Marks values whose placeholders are rendered when a case runs, not when the file is loaded."""


class Verbatim(Struct, frozen=True):
    """Marks values whose placeholders are never rendered, because they are data."""


class Document(Struct, frozen=True):
    """Text given inline or by a path: `path` is None when inline."""

    text: str
    path: str | None = None


class LoadedJson(Struct, frozen=True):
    """JSON data given inline or by a path: `path` is None when inline."""

    value: Json
    path: str | None = None


class LoadedSchema(LoadedJson, frozen=True):
    """A JSON Schema given inline or by a path, with the files that it refers to.

    Attributes:
        base: URI of its own file; empty if it refers to no other file.
        files: URI → document of the other files.
    """

    base: str = ""
    files: Mapping[str, Json] = field(default_factory=dict)


class FunctionRef(Struct, frozen=True):
    """A user's function: `name` in the file `path` or in the importable `module`."""

    name: str
    path: str | None = None
    module: str | None = None

    def __str__(self) -> str:
        """Return the reference as in an eval file, such as `file.py:name`."""
        return f"{self.path or self.module}:{self.name}"


class PythonSource(Struct, frozen=True):
    """Python to call: inline `code`, or a `function` in a file. Exactly one of them is set."""

    code: str | None = None
    function: FunctionRef | None = None

    def __str__(self) -> str:
        return self.code if self.code is not None else str(self.function)


class JavaScriptSource(Struct, frozen=True):
    """JavaScript to call: inline `code`, or the function `name`, by default the default export, of the file `path`.

    Exactly one of `code` and `path` is set.
    """

    code: str | None = None
    path: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        if self.code is not None:
            return self.code
        return f"{self.path}:{self.name}" if self.name else str(self.path)


class Command(Struct, frozen=True):
    """A program with its arguments (`argv`), or a shell command. Exactly one of them is set."""

    argv: tuple[str, ...] = ()
    shell: str | None = None
    cwd: str = ""

    def __str__(self) -> str:
        return self.shell if self.shell is not None else " ".join(self.argv)


class FileGlobs(Struct, frozen=True):
    """Globs of files, with `*`, `?` and `**`, relative to the directory `cwd`."""

    patterns: tuple[str, ...]
    cwd: str = ""

    def __str__(self) -> str:
        return ", ".join(self.patterns)


class PromptCode(Struct, frozen=True):
    """Code that writes a judge prompt: a Python function, a JavaScript or TypeScript file, or a command that prints it.

    Exactly one of the three is set, and is given `config`.
    """

    function: FunctionRef | None = None
    script: JavaScriptSource | None = None
    command: Command | None = None
    config: Mapping[str, Json] = field(default=EMPTY)

    def __str__(self) -> str:
        return str(self.function or self.script or self.command)

    @property
    def name(self) -> str:
        """The text of a command, or a file and function without directories, for labels."""
        return str(self) if self.command else str(self).rpartition("/")[2]


Text: TypeAlias = Annotated[str, AsWritten()]
FileText: TypeAlias = Annotated[str, AsWritten(), Nonempty(), FromFile()]
FileTexts: TypeAlias = Annotated[tuple[FileText, ...], Nonempty()]
Texts: TypeAlias = Annotated[tuple[Text, ...], Nonempty()]
FilePath: TypeAlias = Annotated[str, ExistingFile()]
FileOrDirectoryPath: TypeAlias = Annotated[str, ExistingPath()]
DirectoryPath: TypeAlias = Annotated[str, ExistingDirectory()]
Fraction: TypeAlias = Annotated[float, Between(0, 1)]
Count: TypeAlias = Annotated[int, Between(0)]
Seconds: TypeAlias = Annotated[float, Between(0.001)]
Entries: TypeAlias = tuple[AssertionEntry, ...]


class Issue(Struct, frozen=True):
    """A problem with options that are each valid on their own.

    Attributes:
        path: keys and indexes that lead to the option, such as ("fields", 0, "match").
        file: absolute path of the file that the option names, if the mistake is in it; None: it is in the option.
        name: name of the invalid placeholder in that file.
        line: line in that file, from 1, if there is no name.
        of_machine: whether only this machine lacks something that the options need: a warning if nothing is to run.
    """

    path: tuple[str | int, ...]
    message: str
    code: str = "bad-value"
    hint: str | None = None
    warning: bool = False
    file: str | None = None
    name: str | None = None
    line: int | None = None
    of_machine: bool = False


class Declared:
    """Base of every class of options.

    Attributes:
        short: the option that a single value sets: the one-key form of an assertion, the rest of `provider:rest`.
            None: there is no short form.
        options_first: whether a mapping in the short form is read as the options if it has only names of options,
            although the option `short` accepts mappings too.
    """

    __slots__ = ()

    short: ClassVar[str | None] = "value"
    options_first: ClassVar[bool] = False

    def validate(self) -> Iterable[Issue]:
        """Return problems between options, and of single options beyond their types."""
        return ()


def options_of(declared: Any) -> dict[str, Any]:
    """Return option → default of a class of options or of an instance; NODEFAULT if the option is required."""
    if hasattr(declared, "__struct_fields__"):
        names, defaults = declared.__struct_fields__, declared.__struct_defaults__
        values = (getattr(one, "factory", one) for one in defaults)
        return dict(zip(names, (*[NODEFAULT] * (len(names) - len(defaults)), *values), strict=True))
    from dataclasses import MISSING, fields

    given = (one for one in fields(declared) if one.init and not one.name.startswith("_"))
    made = {one.name: one.default_factory if one.default is MISSING else one.default for one in given}
    return {name: NODEFAULT if default is MISSING else default for name, default in made.items()}


def is_declared(one: object) -> bool:
    """Return whether an object is a class of options, or an instance of one."""
    cls = one if isinstance(one, type) else type(one)
    return hasattr(cls, "__dataclass_fields__") or (issubclass(cls, Declared) and issubclass(cls, Struct))


Reads: TypeAlias = Literal["answer", "call", "work"]


class DeclaredAssertion(Declared):
    """Base of the options of an assertion type.

    Attributes:
        needs_judge: whether a judge must be set; the option `judge` may name it.
        needs_agent: whether its judge must be an agent, which inspects the workspace.
        needs_embedder: whether an embedder must be set; the option `embedder` may name it.
        compares: whether it is a Comparison, which grades the answers from all prompts and targets together.
        timeout_s: default time limit of a grade in seconds; None: it cannot take long.
        of_text_alone: whether it grades only the text of the answer and calls nothing, so that it can be tried when
            the file is loaded.
        runs_code: whether it runs user code or calls a user's server.
        reads: what its grade depends on: the `answer`, only measurements of the `call`, or only the workspace that an
            agent left (`work`).
        reads_criteria: whether it uses the criteria of the case.
        reads_json: whether it parses the answer as JSON.
        extra_option: option, a mapping, that collects keys that are not options; None: such keys are errors.
    """

    __slots__ = ()

    needs_judge: ClassVar[bool] = False
    needs_agent: ClassVar[bool] = False
    needs_embedder: ClassVar[bool] = False
    compares: ClassVar[bool] = False
    timeout_s: ClassVar[float | None] = None
    of_text_alone: ClassVar[bool] = False
    runs_code: ClassVar[bool] = False
    reads: ClassVar[Reads] = "answer"
    reads_criteria: ClassVar[bool] = False
    reads_json: ClassVar[bool] = False
    extra_option: ClassVar[str | None] = None

    def label(self) -> str:
        """Return a short description of what the entry checks, which is part of its default name."""
        return ""

    def missing_inputs(self, variables: JsonObject, *, reference: bool, criteria: bool) -> Iterable[Issue]:  # noqa: ARG002  # by default, it needs none
        """Return an Issue for each input that it needs and that a case lacks.

        Args:
            variables: variables of the case.
            reference: whether the case has an expected output.
            criteria: whether the case has criteria.
        """
        return ()

    def lacks_context(self, variables: JsonObject) -> bool:  # noqa: ARG002  # by default, it needs none
        """Return whether it needs retrieved text that only the target's reply can contain.

        Args:
            variables: variables of the case.
        """
        return False


MEDIA_TYPES = {
    "csv": "text/csv",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "sql": "application/sql",
    "txt": "text/plain",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
    **dict.fromkeys(("yaml", "yml"), "application/yaml"),
}
"""Suffix of files, which is also the short name of their type → media type."""


def media_type_of(written: str) -> str:
    """Return the media type that a full name or a short name stands for."""
    name = written.strip().lower()
    return MEDIA_TYPES.get(name.removeprefix("."), name)


class Preprocessor(Declared, Struct, frozen=True):
    """A command that converts files of one type to text: it reads JSON with `path` on stdin and prints the text."""

    type: Annotated[Text, Nonempty(), Doc("the media type of the files, or a suffix such as xlsx")]
    command: Annotated[Command, Doc("a list of words, or a shell command")]
    timeout_s: Annotated[Seconds, Doc("time limit for one file, in seconds")] = 60.0

    def validate(self) -> Iterable[Issue]:
        """Return an Issue if the media type is not valid."""
        if "/" not in self.type and media_type_of(self.type) not in MEDIA_TYPES.values():
            hint = f"write one such as text/csv, or one of {', '.join(MEDIA_TYPES)}"
            yield Issue(("type",), f"'{self.type}' is not a media type", hint=hint)


def missing_extra(module: str, extra: str, what: str) -> Issue | None:
    """Return an Issue `missing-extra` if a library is not installed; None if it is. Imports nothing.

    Args:
        module: the library's module.
        extra: the extra of this package that installs it.
        what: what requires it, such as "parsing SQL" or "agentv view".
    """
    if _is_installed(module):
        return None
    return Issue(
        (), f"{what} requires {module}, which is not installed", "missing-extra", install_hint(extra), of_machine=True
    )


def install_hint(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'agentv[{extra}]'"


@cache
def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ValueError, ImportError):  # the module has no spec, or its parent package is not installed
        return False
