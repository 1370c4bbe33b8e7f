# ruff: noqa: S101  # its asserts tell the type checker what the tables hold
"""The generated parts of the reference pages. The site has one wherever a page has the line `<!-- generated: NAME -->`.

They come from the declarations that the program itself reads, so that they cannot say anything else.

    python docs/website/generate.py   rewrites the table of the names that extensions add

The core reads that table to say which extension a name belongs to, where the extension is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from typing import Any, get_args, get_type_hints

import click
from agent_checks import CHECKS
from agent_checks import agents as agent_providers
from python_api import module_reference

from agentv.app.registries import registries
from agentv.app.settings import LOCAL
from agentv.authoring.cases.triggering import AuthoredQueries
from agentv.authoring.config import AuthoredConfig
from agentv.authoring.dialects.recognition import FORMATS
from agentv.authoring.fields.decode import OptionsSchema, shape_of
from agentv.authoring.fields.json_kinds import doc_of
from agentv.authoring.fields.schema import (
    AuthoredExam,
    AuthoredExamCase,
    AuthoredExamDefaults,
    AuthoredExamJudge,
    AuthoredPrice,
    AuthoredRate,
    AuthoredRetry,
    AuthoredSettings,
    AuthoredTarget,
)
from agentv.authoring.fields.spellings import CASE, DEFAULT_TEST, OPTIONS, RUN, SUITE, TARGET, TURN, Spellings
from agentv.authoring.json_schema.schema import Vocabulary, full_schema
from agentv.authoring.prompt_library import AuthoredMeta
from agentv.authoring.source.nearest import ASSERTION_TYPES, SETTINGS
from agentv.cli.main import cli
from agentv.codes import FILES, RUNS
from agentv.extensions.agents.authoring.activation import AuthoredActivation
from agentv.extensions.agents.authoring.schema import (
    AuthoredCommand,
    AuthoredEnvironment,
    AuthoredRepository,
    AuthoredServer,
    AuthoredTool,
    AuthoredUser,
    AuthoredVariant,
    AuthoredWorkspace,
)
from agentv.extensions.mutate.operators import OPERATORS
from agentv.model.values.tool_names import KNOWN_AGENTS, TOOLS
from agentv.model.values.values import EMPTY
from agentv.registry.extensions import (
    COMMANDS,
    CONFIG_KEYS,
    CORE,
    DIALECTS,
    EXECUTORS,
    NAMES,
    owners,
)
from agentv.registry.extensions import OPTIONS as FLAGS
from agentv.registry.fields import Command, is_declared
from agentv.registry.fields import options_of as defaults_of
from agentv.registry.types import ProviderSettings, summary_of

PART = re.compile(r"^<!-- generated: (?P<name>[^>]+?) -->$", re.MULTILINE)


@dataclass(frozen=True)
class Option:
    """One option of an options class, in words."""

    name: str
    value: str
    default: str
    meaning: str


# -- options ----------------------------------------------------------------------------------------------------------


def options_of(cls: type) -> list[Option]:
    """The declared options of a class."""
    hints = get_type_hints(cls, include_extras=True)
    shape = shape_of(cls)
    defaults = defaults_of(cls)
    more = SETTINGS if issubclass(cls, ProviderSettings | AuthoredTarget) else {}
    return [
        Option(
            name=key,
            value=rule.kind.wanted,
            default="required" if rule.name in shape.required else shown_default(defaults[rule.name]),
            meaning=doc_of(hints[rule.name]) + older_note(older_of(shape, rule.name, key, more)),
        )
        for key, rule in shape.rules.items()
        if not rule.older
    ]


def older_of(shape: OptionsSchema, name: str, key: str, more: Mapping[str, Any] = EMPTY) -> list[str]:
    """The older spellings of a key: those that its class declares, and more of them."""
    declared = [other for other, rule in shape.rules.items() if rule.name == name and rule.older]
    return [*declared, *(other for other, new in more.items() if new == key and other not in declared)]


def older_note(spellings: Iterable[str]) -> str:
    """The rows of the table."""
    listed = ", ".join(f"`{one}`" for one in spellings)
    return f" (older: {listed})" if listed else ""


def shown_default(value: object) -> str:
    """A default as written in YAML; empty if there is no default value."""
    if value in (None, (), "", Command()) or isinstance(value, Mapping) or callable(value):
        return ""
    return f"`{json.dumps(value)}`"


def nested_in(annotation: Any) -> Iterator[type]:
    """The options classes inside an annotated type: what the mappings in it hold."""
    if isinstance(annotation, type) and is_declared(annotation):
        if annotation.__module__.startswith(
            ("agentv.assertions", "agentv.extensions.agents.assertions", "agentv.targets")
        ):
            yield annotation
        return
    for inner in get_args(annotation):
        yield from nested_in(inner)


def option_tables(cls: type) -> Iterator[str]:
    """The table of a class, then one for each kind of mapping inside its options."""
    options = options_of(cls)
    yield option_table(options) if options else "It has no options."
    hints = get_type_hints(cls, include_extras=True)
    for name in dict.fromkeys(rule.name for rule in shape_of(cls).rules.values()):
        for inner in nested_in(hints[name]):
            yield f"A mapping in `{name.rstrip('_')}` has these keys:"
            yield option_table(options_of(inner))


def option_table(options: Sequence[Option]) -> str:
    """A table of options."""
    rows = ([f"`{one.name}`", one.value, one.default, one.meaning] for one in options)
    return table(["option", "value", "default", "meaning"], rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


# -- blocks -----------------------------------------------------------------------------------------------------------


def assertion(name: str) -> str:
    """One assertion type."""
    kind = registries().assertions.find(name)
    assert kind is not None, name
    older = [old for old, new in ASSERTION_TYPES.items() if new == name]
    short = (kind.options.short or "").rstrip("_")
    lone = f"One-key form: `{name}: …` sets `{short}`." if short else ""
    names = f"Older names: {', '.join(f'`{old}`' for old in older)}." if older else ""
    facts = " ".join(one for one in (lone, names) if one)
    return paragraphs([summary_of(kind.options), facts, *option_tables(kind.options)])


def target(name: str) -> str:
    """One provider."""
    provider = registries().providers.find(name)
    assert provider is not None, name
    summary = (provider.settings.__doc__ or "").strip().split("\n", 1)[0]
    short = provider.settings.short
    lone = f"As a string: `{name}:…` sets `{short}`." if short else f"As a string: `{name}`."
    return paragraphs([summary, lone, *option_tables(provider.settings)])


def assertion_names() -> str:
    """Every type with its first sentence."""
    found = registries().assertions
    kinds = (found.find(name) for name in found)
    return table(
        ["type", "passes where"],
        ([f"[`{kind.name}`](#{_anchor(kind.name)})", summary_of(kind.options)] for kind in kinds if kind),
    )


def _anchor(name: str) -> str:
    """The end of a link to a heading that is the name: punctuation has no part in it."""
    return name.replace(":", "")


def not_yet(names: Iterable[str]) -> str:
    """Names that are refused with the code `not-yet`."""
    return ", ".join(f"`{name}`" for name in sorted(names)) + "."


@cache
def schema() -> Any:
    """The JSON Schema of eval files."""
    found = registries()
    return full_schema("eval", Vocabulary(found.assertions, found.providers))


def keys(spellings: Spellings, place: Any) -> str:
    """The keys of a mapping, with their older spellings."""
    properties = place["properties"]
    rows = (
        [f"`{key}`", older_keys(spellings, key, properties), properties[key].get("description", "")]
        for key in properties
        if key in spellings.canonical
    )
    return table(["key", "also written", "meaning"], rows)


def declared_keys(cls: type) -> str:
    """The keys that a class declares, with their older spellings."""
    shape, hints = shape_of(cls), get_type_hints(cls, include_extras=True)
    rows = (
        [f"`{key}`", ", ".join(f"`{one}`" for one in older_of(shape, rule.name, key)), doc_of(hints[rule.name])]
        for key, rule in shape.rules.items()
        if not rule.older
    )
    return table(["key", "also written", "meaning"], rows)


def older_keys(spellings: Spellings, key: str, properties: Mapping[str, Any]) -> str:
    """Every other spelling of a key, those inside an older block too."""
    others = {other: one.get("$ref", "") for other, one in properties.items() if other not in spellings.canonical}
    plain = [other for other, reference in others.items() if reference.endswith(f"/properties/{key}")]
    nested = [
        f"{outer}.{inner}" for outer, block in spellings.nested.items() for inner, new in block.items() if new == key
    ]
    return ", ".join(f"`{one}`" for one in [*plain, *nested])


def run_keys() -> str:
    """The keys of `run:`, with what other places call them."""
    nested = {inner: new for block in SUITE.nested.values() for inner, new in block.items()}
    run = schema()["$defs"]["run"]
    rows = []
    for key in (key for key in run["properties"] if key in RUN.canonical):
        older = [old for old, new in RUN.older.items() if new == key]
        moved = [f"execution.{inner}" for inner, new in nested.items() if RUN.older.get(new[4:], new[4:]) == key]
        meaning = run["properties"][key]["description"]
        rows.append([f"`{key}`", ", ".join(f"`{one}`" for one in [*older, *moved]), meaning])
    return table(["key", "also written", "meaning"], rows)


def target_keys() -> str:
    """The keys that every target takes."""
    rows = [
        [
            f"`{one.name}`",
            one.value,
            one.default,
            one.meaning + older_note(old for old, new in TARGET.older.items() if new == one.name),
        ]
        for one in options_of(AuthoredTarget)
    ]
    inner = (
        f"A mapping in `{name}` has these keys:\n\n{option_table(options_of(cls))}"
        for name, cls in (("retry", AuthoredRetry), ("rate", AuthoredRate), ("price", AuthoredPrice))
    )
    return paragraphs([table(["key", "value", "default", "meaning"], rows), *inner])


def codes(meanings: Mapping[str, str]) -> str:
    """A table of codes, each with an anchor."""
    return table(["code", "meaning"], ([f'<a id="{code}"></a>`{code}`', text] for code, text in meanings.items()))


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command by its name, with those of a group behind it: `prompt`, `prompt list` and so on."""
    yield from within(cli, click.Context(cli, info_name="agentv"))


def within(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """The commands of a group, and those inside them."""
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None, name
        inner = click.Context(found, info_name=name, parent=context)
        yield inner.command_path.removeprefix("agentv "), found
        if isinstance(found, click.Group):
            yield from within(found, inner)


def command(name: str) -> str:
    """One command of the command line; `prompt list` is one of the group `prompt`."""
    found: click.Command = cli
    context = click.Context(cli, info_name="agentv")
    for word in name.split():
        assert isinstance(found, click.Group), name
        inner = found.get_command(context, word)
        assert inner is not None, name
        found, context = inner, click.Context(inner, info_name=word, parent=context)
    arguments = [usage_of(one) for one in found.params if isinstance(one, click.Argument)]
    optional = isinstance(found, click.Group) and found.invoke_without_command
    group = (
        ["[OPTIONS]", "[COMMAND]"] if optional else ["COMMAND", "[ARGS]..."] if isinstance(found, click.Group) else []
    )
    usage = " ".join(["agentv", name, *group] if group else ["agentv", name, "[OPTIONS]", *arguments])
    rows = [
        [f"`{flag_of(one)}`", one.help or ""]
        for one in found.params
        if isinstance(one, click.Option) and not one.hidden
    ]
    epilog = (found.epilog or "").removeprefix("Example: ")
    said = "\n\n".join(" ".join(part.split()) for part in cleandoc(found.help or "").split("\n\n"))
    options = table(["option", "meaning"], rows) if rows else ""
    return paragraphs([f"```text\n{usage}\n```", said, options, f"Example: `{epilog}`"])


def usage_of(argument: click.Argument) -> str:
    """An argument as a usage line shows it."""
    shown = argument.metavar or (argument.name or "").upper()
    return shown if argument.required else f"[{shown}]"


def flag_of(option: click.Option) -> str:
    """An option with what follows it."""
    flags = ", ".join(sorted(option.opts, key=len))
    if option.is_flag or option.count:
        return flags
    value = "|".join(option.type.choices) if isinstance(option.type, click.Choice) else option.type.name.upper()
    value = option.metavar or value
    return f"{flags}[={value}]" if isinstance(option.flag_value, str) else f"{flags} {value}"


def paragraphs(parts: Iterable[str]) -> str:
    """Parts with an empty line between them."""
    return "\n\n".join(part for part in parts if part)


def operators() -> str:
    """The ways in which `agentv mutate` makes answers worse."""
    return table(("operator", "what is worse"), ((f"`{one.name}`", one.description) for one in OPERATORS.values()))


def tool_names() -> str:
    """Canonical names of tools, and the names in each known agent."""
    rows = ["| tool | " + " | ".join(KNOWN_AGENTS) + " |", "| --- |" + " --- |" * len(KNOWN_AGENTS)]
    for name, agents in TOOLS.items():
        cells = (", ".join(f"`{native}`" for native in agents.get(agent, ())) for agent in KNOWN_AGENTS)
        rows.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def complete(page: str) -> str:
    """A page with its generated parts.

    Raises:
        KeyError: nothing generates a part.
    """
    return PART.sub(lambda found: parts()[found["name"]], page)


@cache
def agent_features() -> str:
    """What each agent's adapter declares, and what a check of the installed ones showed."""
    checks = json.loads(CHECKS.read_text(encoding="utf-8"))
    rows = [
        "| provider | agent | tested versions | model API | no setting for | checked |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for provider in agent_providers():
        settings: Any = provider.settings
        check = checks.get(provider.name)
        seen = "not run"
        if check is not None:
            agent = check["agent"]
            gateway = "through the gateway" if agent["gateway"] else "not through the gateway"
            seen = f"{check['state']}: {agent['version']}, sandbox `{agent['sandbox']}`, model calls {gateway}"
        lacks = ", ".join(f"`{name}`" for name in settings.unsupported) or "–"
        tested = ", ".join(settings.program.tested)
        protocol = f"`{settings.protocol}`" if settings.protocol else "as its `model` says"
        rows.append(
            f"| [`{provider.name}`](#{provider.name}) | {settings.title} | {tested} | {protocol} | {lacks} | {seen} |"
        )
    return "\n".join(rows)


@cache
def parts() -> dict[str, str]:
    """Name → text, for every part that a page must have."""
    found = registries()
    root = schema()
    return {
        "assertion types": assertion_names(),
        "assertion keys": option_table(options_of(AuthoredSettings)),
        "assertions to come": not_yet(found.assertions.not_yet),
        **{f"assertion {name}": assertion(name) for name in found.assertions},
        "target keys": target_keys(),
        "targets to come": not_yet(found.providers.not_yet),
        "agents": agent_features(),
        **{f"target {name}": target(name) for name in found.providers},
        "suite keys": keys(SUITE, root),
        "suite keys to come": not_yet(SUITE.not_yet),
        "case keys": keys(CASE, root["$defs"]["case"]),
        "case keys to come": not_yet(CASE.not_yet),
        "turn keys": keys(TURN, root["$defs"]["turn"]),
        "default_test keys": keys(DEFAULT_TEST, root["$defs"]["default_test"]),
        "options keys": keys(OPTIONS, root["$defs"]["options"]),
        "exam keys": declared_keys(AuthoredExam),
        "exam defaults keys": declared_keys(AuthoredExamDefaults),
        "exam case keys": declared_keys(AuthoredExamCase),
        "exam judge keys": declared_keys(AuthoredExamJudge),
        "meta keys": declared_keys(AuthoredMeta),
        "triggering keys": declared_keys(AuthoredQueries),
        "activation keys": declared_keys(AuthoredActivation),
        "workspace keys": declared_keys(AuthoredWorkspace),
        "command keys": declared_keys(AuthoredCommand),
        "repository keys": declared_keys(AuthoredRepository),
        "environment keys": declared_keys(AuthoredEnvironment),
        "variant keys": declared_keys(AuthoredVariant),
        "user keys": declared_keys(AuthoredUser),
        "tool keys": declared_keys(AuthoredTool),
        "tool server keys": declared_keys(AuthoredServer),
        "run keys": run_keys(),
        "run keys to come": not_yet(RUN.not_yet),
        **{f"command {name}": command(name) for name, _ in commands()},
        "operators": operators(),
        "tool names": tool_names(),
        "codes of files": codes(FILES),
        "codes of runs": codes(RUNS),
        "python agentv": module_reference("agentv"),
        "python agentv.plugins": module_reference("agentv.plugins", without=["agentv"]),
        "python agentv.testing": module_reference("agentv.testing", without=["agentv", "agentv.plugins"]),
        "python agentv.testing.contract": module_reference("agentv.testing.contract"),
    }


def all_owners() -> dict[str, dict[str, str]]:
    """Kind → name → the extension, or the core, that has it."""
    found = owners()
    options = {f"{path} {name}" for path, command in commands() for one in command.params for name in one.opts}
    of_core: dict[str, Iterable[str]] = {
        COMMANDS: [path for path, _ in commands()],
        FLAGS: [name for name in options if " --" in name],
        EXECUTORS: [LOCAL],
        DIALECTS: FORMATS,
        CONFIG_KEYS: shape_of(AuthoredConfig).rules,
    }
    return found | {kind: dict.fromkeys(names, CORE) | found[kind] for kind, names in of_core.items()}


def owners_text() -> str:
    """The table of the names that extensions add, as its file holds it."""
    return json.dumps(all_owners(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    NAMES.write_text(owners_text(), encoding="utf-8")
