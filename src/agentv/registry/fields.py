"""Declarations of options: the fields of a frozen Struct or dataclass.

The parser of authored files, the checks, the error messages, the JSON Schema and the docs all read these
declarations. Classes of plugins are dataclasses; ours are mostly Structs, which take less time to import. The types
that a field may have are a closed set: `bool`, `int`, `float`, `str`, `Literal`, `Json`, tuples, mappings and nested
declarations of them, `| None`, and the kinds below.
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
    """Text, lists or objects that must not be empty."""


class Alias(Struct, frozen=True):
    """Older spellings of one option."""

    names: tuple[str, ...]


class ValueAlias(Struct, frozen=True):
    """Older spellings of the values of one option: older value → canonical value."""

    values: Mapping[str, str]


class AsWritten(Struct, frozen=True):
    """Marks text for which a number or boolean of the file counts as its YAML text."""


class FromFile(Struct, frozen=True):
    """Marks text that may be a file: `file://words.txt` is what the file contains; in a list, each of its lines."""


class ExistingFile(Struct, frozen=True):
    """Marks a path that is resolved as SPEC section 5 says and must exist; the value is absolute."""


class ExistingDirectory(Struct, frozen=True):
    """Marks a directory that is resolved as SPEC section 5 says and must exist; the value is absolute."""


class ExistingPath(Struct, frozen=True):
    """Marks a path of a file or a directory that is resolved as SPEC section 5 says; the value is absolute."""


class NameOrDirectory(Struct, frozen=True):
    """Marks text that is a name, unless it begins with `./`, `../`, `/` or `~/`: then it is an ExistingDirectory."""


class Secret(Struct, frozen=True):
    """Marks text that must never be written."""


class NoSecrets(Struct, frozen=True):
    """Marks data without secrets, whatever its keys are called: answers by case id, the names in a schema."""


class FromEnvironment(Struct, frozen=True):
    """Marks text that an environment variable gives where the author gives none: the first of `names` that is set.

    Attributes:
        required: without it nothing can be asked, so that a run is refused.
    """

    names: tuple[str, ...]
    required: bool = True


class CallTimeTemplate(Struct, frozen=True):
    """Marks values whose placeholders are rendered with the case when it runs, not when the file is loaded."""


class Verbatim(Struct, frozen=True):
    """Marks values that are data: placeholders in them are never rendered."""


class Document(Struct, frozen=True):
    """Text given inline or by a path: `path` is None when inline."""

    text: str
    path: str | None = None


class LoadedJson(Struct, frozen=True):
    """JSON data given inline or by a path: `path` is None when inline."""

    value: Json
    path: str | None = None


class LoadedSchema(LoadedJson, frozen=True):
    """A JSON Schema given inline or by a path, with all that it refers to.

    Attributes:
        base: the URI of its own file; empty where it refers to no other file.
        files: URI → document of the other files.
    """

    base: str = ""
    files: Mapping[str, Json] = field(default_factory=dict)


class FunctionRef(Struct, frozen=True):
    """A function of the user's: `name` in the file `path`, or in the importable `module`."""

    name: str
    path: str | None = None
    module: str | None = None

    def __str__(self) -> str:
        """As it is written: `file.py:name`."""
        return f"{self.path or self.module}:{self.name}"


class PythonSource(Struct, frozen=True):
    """Python to call: `code` given inline, or a `function` of a file. Exactly one of them is set."""

    code: str | None = None
    function: FunctionRef | None = None

    def __str__(self) -> str:
        """As it is written."""
        return self.code if self.code is not None else str(self.function)


class JavaScriptSource(Struct, frozen=True):
    """JavaScript to call: `code` given inline, or a function of a file: its default export, or the one called `name`.

    Exactly one of `code` and `path` is set.
    """

    code: str | None = None
    path: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        """As it is written."""
        if self.code is not None:
            return self.code
        return f"{self.path}:{self.name}" if self.name else str(self.path)


class Command(Struct, frozen=True):
    """A program with its arguments, or a line for the shell. Exactly one of them is set."""

    argv: tuple[str, ...] = ()
    shell: str | None = None
    cwd: str = ""

    def __str__(self) -> str:
        """As a person would type it."""
        return self.shell if self.shell is not None else " ".join(self.argv)


class FileGlobs(Struct, frozen=True):
    """Files of the project by their paths, with `*`, `?` and `**`, seen from the directory `cwd`."""

    patterns: tuple[str, ...]
    cwd: str = ""

    def __str__(self) -> str:
        """As they are written."""
        return ", ".join(self.patterns)


class PromptCode(Struct, frozen=True):
    """Code that writes a judge prompt: a Python function, a JavaScript or TypeScript file, or a command that prints it.

    Exactly one of the three is set; `config` reaches it.
    """

    function: FunctionRef | None = None
    script: JavaScriptSource | None = None
    command: Command | None = None
    config: Mapping[str, Json] = field(default=EMPTY)

    def __str__(self) -> str:
        """As it is written."""
        return str(self.function or self.script or self.command)

    @property
    def name(self) -> str:
        """The same without directories, for labels."""
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
    """A problem with options that are each valid on their own. `path` leads to the option: ("fields", 0, "match").

    Attributes:
        file: file that the option names, absolute, if the mistake is in it; None: the mistake is in the option itself.
        name: of the invalid placeholder in that file.
        line: in that file, from 1, if there is no name.
        of_machine: the options are right on a machine that has what this one lacks: a warning where nothing runs.
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
        short: the option that a lone value fills: the one-key form of an assertion, the rest of `provider:rest`.
            None: the short form is not possible.
        options_first: a mapping of options alone is these options, though the short form takes mappings too.
    """

    __slots__ = ()

    short: ClassVar[str | None] = "value"
    options_first: ClassVar[bool] = False

    def validate(self) -> Iterable[Issue]:
        """Problems across several options, or inside one beyond its type."""
        return ()


def options_of(declared: Any) -> dict[str, Any]:
    """The options of a declared class or an instance, with their defaults; NODEFAULT: it is required."""
    if hasattr(declared, "__struct_fields__"):
        names, defaults = declared.__struct_fields__, declared.__struct_defaults__
        values = (getattr(one, "factory", one) for one in defaults)
        return dict(zip(names, (*[NODEFAULT] * (len(names) - len(defaults)), *values), strict=True))
    from dataclasses import MISSING, fields

    given = (one for one in fields(declared) if one.init and not one.name.startswith("_"))
    made = {one.name: one.default_factory if one.default is MISSING else one.default for one in given}
    return {name: NODEFAULT if default is MISSING else default for name, default in made.items()}


def is_declared(one: object) -> bool:
    """Whether it is a class with options, or an instance of one."""
    cls = one if isinstance(one, type) else type(one)
    return hasattr(cls, "__dataclass_fields__") or (issubclass(cls, Declared) and issubclass(cls, Struct))


Reads: TypeAlias = Literal["answer", "call", "work"]


class DeclaredAssertion(Declared):
    """Base of the options of an assertion type.

    Attributes:
        needs_judge: a judge must be set; the option `judge` may name it.
        needs_agent: its judge must be an agent, which looks at the workspace.
        needs_embedder: an embedder must be set; the option `embedder` may name it.
        compares: it is a Comparison: the answers from all prompts and targets are graded together.
        timeout_s: default time limit of a grade in seconds; None: it cannot take long.
        of_text_alone: only the text of the answer matters, and grading calls nothing, so that loading can try it.
        runs_code: it runs user code or calls a user's server.
        reads: what its grade depends on: the `answer`, figures of the `call` alone, or the workspace that an agent left
            (`work`) and nothing of the answer.
        reads_criteria: it reads the criteria of the case.
        reads_json: it reads the answer as JSON.
        extra_option: the option, a mapping, for keys that are not options; None: such keys are unknown.
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
        """Short description of what the entry checks; part of its default name."""
        return ""

    def missing_inputs(self, variables: JsonObject, *, reference: bool, criteria: bool) -> Iterable[Issue]:  # noqa: ARG002  # most lack nothing
        """Inputs that it needs and that a case lacks.

        Args:
            variables: of the case.
            reference: whether the case has an expected output.
            criteria: whether it has criteria.
        """
        return ()

    def lacks_context(self, variables: JsonObject) -> bool:  # noqa: ARG002  # most read none
        """Whether it reads retrieved text that only the target's reply can give.

        Args:
            variables: of the case.
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
"""Short names of media types, which are the suffixes of such files."""


def media_type_of(written: str) -> str:
    """A media type, given whole or by its short name."""
    name = written.strip().lower()
    return MEDIA_TYPES.get(name.removeprefix("."), name)


class Preprocessor(Declared, Struct, frozen=True):
    """A command that turns files of one type into text: it reads JSON with `path` on stdin and prints the text."""

    type: Annotated[Text, Nonempty(), Doc("the media type of the files, or a suffix such as xlsx")]
    command: Annotated[Command, Doc("a list of words, or a shell command")]
    timeout_s: Annotated[Seconds, Doc("time limit for one file, in seconds")] = 60.0

    def validate(self) -> Iterable[Issue]:
        """A type that no file can have."""
        if "/" not in self.type and media_type_of(self.type) not in MEDIA_TYPES.values():
            hint = f"write one such as text/csv, or one of {', '.join(MEDIA_TYPES)}"
            yield Issue(("type",), f"'{self.type}' is not a media type", hint=hint)


def missing_extra(module: str, extra: str, what: str) -> Issue | None:
    """An Issue `missing-extra` where a library cannot be found; None where it can. Imports nothing.

    Args:
        module: the library's module.
        extra: the extra of this package that brings it.
        what: what requires it: "parsing SQL", "agentv view".
    """
    if _is_installed(module):
        return None
    return Issue(
        (), f"{what} requires {module}, which is not installed", "missing-extra", install_hint(extra), of_machine=True
    )


def install_hint(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'agentv[{extra}]'"


@cache
def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ValueError, ImportError):  # put into sys.modules by hand; a package around it that is not there either
        return False
