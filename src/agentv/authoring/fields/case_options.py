"""`options:` of a case and of `default_test`, which apply to all of its assertions."""

from __future__ import annotations

from msgspec import Struct, field

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading, RubricOptions
from agentv.authoring.fields.schema import AuthoredOptions
from agentv.authoring.source.nodes import MapNode, Node, is_empty, kind_of
from agentv.model.suite.assertion import Transform

_SCHEMA = shape_of(AuthoredOptions)


class CaseOptions(Struct, frozen=True):
    """The options of a case. None: not set.

    Attributes:
        judge: a name or an inline target.
        of_suite: the judge is the suite's, not a case's.
        rubric: options of rubrics that have none of their own, with their positions.
        transform: applied to the answer before it is graded.
    """

    judge: Node | None = None
    of_suite: bool = False
    rubric: RubricOptions = field(default_factory=dict)
    transform: Transform | None = None
    repeat: int | None = None

    def over(self, other: CaseOptions) -> CaseOptions:
        """These options, and the other ones where these say nothing."""
        if self is NO_OPTIONS and other is NO_OPTIONS:
            return self  # as in most cases
        return CaseOptions(
            self.judge or other.judge,
            self.judge is None,
            self.rubric or other.rubric,
            self.transform or other.transform,
            self.repeat or other.repeat,
        )


NO_OPTIONS = CaseOptions()


def read_options(node: Node | None, where: str, reading: Reading) -> CaseOptions:
    """Read the options of a mapping; mistakes are reported.

    Args:
        node: the value of `options`.
        where: owner of the options.
        reading: of the suite, or of the case.
    """
    if is_empty(node) or node is None:
        return NO_OPTIONS
    if not isinstance(node, MapNode):
        reading.report.error("bad-value", node, f"'options' must be a mapping, found {kind_of(node)}")
        return NO_OPTIONS
    read = _SCHEMA.decode(node.items, node, reading, f"'options' of {where}")
    if read is INVALID:
        return NO_OPTIONS
    key = node.get("prompt")
    rubric = {} if key is None or read.prompt is None else {"prompt": (read.prompt, key.at)}
    return CaseOptions(read.judge, False, rubric, read.transform, read.repeat)
