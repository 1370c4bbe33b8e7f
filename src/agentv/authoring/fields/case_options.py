"""`options:` of a case and of `default_test`: what holds for all of its assertions."""

from __future__ import annotations

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import ExtraKeys, Reading
from agentv.authoring.fields.schema import AuthoredOptions
from agentv.authoring.source.nodes import MapNode, Node, is_empty, kind_of
from agentv.authoring.source.spellings import OPTIONS, translate
from agentv.lazy_dataclass import dataclass
from agentv.model.suite.assertion import Transform

_SCHEMA = shape_of(AuthoredOptions)
_EXTRA_KEYS = ExtraKeys(hinted=tuple(OPTIONS.known))


@dataclass(frozen=True, slots=True)
class CaseOptions:
    """The options of a case. None: not said.

    Attributes:
        judge: a name or an inline target.
        prompt: of the rubrics that have none of their own.
        transform: applied to the answer before it is graded.
    """

    judge: Node | None = None
    prompt: Node | None = None
    transform: Transform | None = None
    repeat: int | None = None

    def over(self, other: CaseOptions) -> CaseOptions:
        """These options, and the other ones where these say nothing."""
        return CaseOptions(
            self.judge or other.judge,
            self.prompt or other.prompt,
            self.transform or other.transform,
            self.repeat or other.repeat,
        )


NO_OPTIONS = CaseOptions()


def read_options(node: Node | None, where: str, reading: Reading) -> CaseOptions:
    """The options that a mapping holds; what is wrong with it is reported.

    Args:
        node: the value of `options`.
        where: whose options these are.
        reading: of the suite, or of the case.
    """
    if is_empty(node) or node is None:
        return NO_OPTIONS
    if not isinstance(node, MapNode):
        reading.report.error("bad-value", node, f"'options' must be a mapping, found {kind_of(node)}")
        return NO_OPTIONS
    translated = translate(node, OPTIONS, reading.report, for_run=reading.strict_env)
    what = f"'options' of {where}"
    read = _SCHEMA.decode(translated.items, translated.map, reading, what, extra=_EXTRA_KEYS)
    if read is INVALID:
        return NO_OPTIONS
    return CaseOptions(read.judge, read.prompt, read.transform, read.repeat)
