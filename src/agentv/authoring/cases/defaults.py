"""Suite-wide defaults of cases: `assert`, `input`, `input_files`, `default_test` (SPEC sections 3 and 7.4)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.cases.prompts import SuitePrompt, read_prompt, read_prompts
from agentv.authoring.fields.agentv import translation
from agentv.authoring.fields.case_keys import NO_OPTIONS, CaseOptions, merged_metadata, read_options, suite_metadata
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredDefaultTest, AuthoredSuite
from agentv.authoring.source.nodes import MapNode, Node, Place, Scalar, holds_placeholder, is_empty, kind_of, plain
from agentv.authoring.source.yaml import read_yaml
from agentv.model.values.values import EMPTY, Json, JsonObject

_REFERENCE = "ref://"
_ELSEWHERE = ("file://", _REFERENCE)
"""What a `default_test` begins with that stands in another place."""


class CaseDefaults(Struct, frozen=True):
    """Defaults of all cases, as nodes where a case's variables may still change them.

    Attributes:
        vars: `default_test.vars`, overridden by the variables of the command line.
        fixed: variables that no case can override: those of the command line.
        replaces: a case's own `evaluators` replace the suite's (in a file with `evalcases:`).
        expand: a list in `vars` expands to one case per item, unless the case says otherwise.
        prompted: the input comes from `prompts` or `prompt`, even if they are invalid.
        prompts: the valid ones.
        prompt: of cases without an input.
        options: of all cases.
        renders: a file with some of these defaults contains placeholders.
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
    prompt: SuitePrompt | None = None
    options: CaseOptions = NO_OPTIONS
    renders: bool = False


def read_defaults(
    authored: AuthoredSuite, root: MapNode, fixed: Mapping[str, Json], reading: Reading, *, replaces: bool
) -> CaseDefaults:
    """The defaults for cases in a suite's header.

    Args:
        authored: the header.
        root: its mapping, for positions.
        fixed: the variables of the command line.
        reading: of the suite.
        replaces: a case's own `evaluators` replace the suite's.
    """
    base = CaseDefaults(
        assert_=authored.assert_,
        input=None if is_empty(authored.input) else authored.input,
        input_files=None if is_empty(authored.input_files) else authored.input_files,
        vars=dict(fixed) or EMPTY,
        fixed=dict(fixed) or EMPTY,
        replaces=replaces,
        prompted="prompts" in root.items or "prompt" in root.items,
        prompt=read_prompt(authored.prompt, reading),
        prompts=read_prompts(authored.prompts, reading),
        metadata=suite_metadata(authored, root.keys, reading.report),
        threshold=0.0 if authored.require_all and authored.threshold is None else None,  # the gates decide
    )
    node = authored.default_test
    if node is None or is_empty(node):
        return base
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip().startswith(_ELSEWHERE):
        found = _from_file(node, reading)
        if found is None:
            return base
        renders = holds_placeholder(found)
        node, reading = found, reading.rendering(reading.renders or renders)
    else:
        renders = False
    if not isinstance(node, MapNode):
        reading.report.error("bad-value", node, f"'default_test' must be a mapping, found {kind_of(node)}")
        return base
    name, shape = f"'{reading.report.spelled(node, 'default_test')}'", shape_of(AuthoredDefaultTest)
    written = translation.default_test(node, reading)
    own = shape.decode(written.items, written, reading, name)
    if own is INVALID:
        own = shape.unread(written.items)
    return replace(
        base,
        options=read_options(own.options, name, reading),
        renders=renders,
        test_assert=own.assert_,
        vars={**_object(own.vars, "vars", reading), **fixed} or EMPTY,
        metadata=merged_metadata(base.metadata, _object(own.metadata, "metadata", reading)),
        threshold=base.threshold if "threshold" not in written.items else own.threshold,
        threshold_at=getattr(written.get("threshold"), "at", None),
        expand=own.expand is True,
    )


def _from_file(node: Scalar, reading: Reading) -> Node | None:
    """What the file holds that `default_test` names; None where it cannot be read, which is reported."""
    text = str(node.value).strip()
    if text.startswith(_REFERENCE):
        reading.report.error("not-yet", node, f"'{_REFERENCE}' is recognized but not supported yet")
        return None
    path = reading.find(Scalar(text, text, node.at), "file")
    content = reading.text_of(path, node) if path is not None else None
    if path is None or content is None:
        return None
    root, valid = read_yaml(path, content.encode(), reading.report)
    if root is None and valid:
        reading.report.error("missing-value", node, f"'{text}' is empty")
    return root


def _object(node: Node | None, key: str, reading: Reading) -> dict[str, Json]:
    if node is None or is_empty(node):
        return {}
    if not isinstance(node, MapNode):
        reading.report.error("bad-value", node, f"'{key}' must be a mapping, found {kind_of(node)}")
        return {}
    found: dict[str, Json] = plain(node)
    return found
