"""Suite-wide defaults of cases: `assert`, `input`, `input_files`, `default_test` (SPEC sections 3 and 7.4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from agentv.authoring.cases.prompts import SuitePrompt, read_prompts
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredCase, AuthoredSuite
from agentv.authoring.source.nodes import MapNode, Node, Place, is_empty, kind_of, plain
from agentv.authoring.source.spellings import DEFAULT_TEST, Translated, translate
from agentv.lazy_dataclass import dataclass
from agentv.model.values.values import EMPTY, Json, JsonObject


@dataclass(frozen=True, slots=True)
class CaseDefaults:
    """What holds for all cases, as nodes where a case's variables may still change it.

    Attributes:
        vars: `default_test.vars`, with the variables of the command line over them.
        fixed: variables that no case can change: those of the command line.
        replaces: a case's own `evaluators` replace the suite's (a file spelled `evalcases:`, seed 002).
        expand: a list in `vars` stands for one case for each of its items, where the case does not say otherwise.
        prompted: the input comes from `prompts`, even where they are wrong.
        prompts: those that are right.
    """

    assert_: Node | None = None
    test_assert: Node | None = None
    input: Node | None = None
    input_files: Node | None = None
    vars: JsonObject = EMPTY
    fixed: JsonObject = EMPTY
    metadata: JsonObject = EMPTY
    threshold: float | None = None
    threshold_at: Place | None = None
    replaces: bool = False
    expand: bool = False
    prompted: bool = False
    prompts: tuple[SuitePrompt, ...] = ()


def read_defaults(
    authored: AuthoredSuite, written: Collection[str], fixed: Mapping[str, Json], reading: Reading
) -> CaseDefaults:
    """What a suite's head says for its cases.

    Args:
        authored: the head.
        written: its keys as they are spelled.
        fixed: the variables of the command line.
        reading: of the suite.
    """
    base = CaseDefaults(
        assert_=authored.assert_,
        input=None if is_empty(authored.input) else authored.input,
        input_files=None if is_empty(authored.input_files) else authored.input_files,
        vars=dict(fixed) or EMPTY,
        fixed=dict(fixed) or EMPTY,
        replaces="evalcases" in written,
        prompted="prompts" in written,
        prompts=read_prompts(authored.prompts, reading),
    )
    node = authored.default_test
    if node is None or is_empty(node):
        return base
    if not isinstance(node, MapNode):
        reading.report.error("bad-value", node, f"'default_test' must be a mapping, found {kind_of(node)}")
        return base
    translated = translate(node, DEFAULT_TEST, reading.report)
    _refuse_others(translated, reading.report.spelled(node, "default_test"), reading)
    return replace(
        base,
        test_assert=translated.items.get("assert"),
        vars={**_object(translated.items.get("vars"), "vars", reading), **fixed} or EMPTY,
        metadata=_object(translated.items.get("metadata"), "metadata", reading) or EMPTY,
        threshold=_threshold(translated.items.get("threshold"), reading),
        threshold_at=getattr(translated.items.get("threshold"), "at", None),
        expand=_expand(translated.items.get("expand"), reading),
    )


def _refuse_others(translated: Translated, name: str, reading: Reading) -> None:
    for key in translated.items:
        if key not in DEFAULT_TEST.canonical and not key.startswith("x-"):
            reading.unknown_key(key, translated.map, DEFAULT_TEST.known, f"'{name}'")
    if not is_empty(translated.items.get("options")):
        at = translated.map.keys["options"]
        reading.report.error("not-yet", at, f"'options' of '{name}' is recognized but not supported yet")


def _object(node: Node | None, key: str, reading: Reading) -> dict[str, Json]:
    if node is None or is_empty(node):
        return {}
    if not isinstance(node, MapNode):
        reading.report.error("bad-value", node, f"'{key}' must be a mapping, found {kind_of(node)}")
        return {}
    found: dict[str, Json] = plain(node)
    return found


def _threshold(node: Node | None, reading: Reading) -> float | None:
    if node is None:
        return None
    read = shape_of(AuthoredSuite).rules["threshold"].kind.read(node, reading, "threshold")
    return None if read is INVALID or read is None else float(read)


def _expand(node: Node | None, reading: Reading) -> bool:
    if node is None:
        return False
    return shape_of(AuthoredCase).rules["expand"].kind.read(node, reading, "expand") is True
