"""`depends_on` and `conversation_id`: dependencies between the cases of a suite (SPEC section 4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice, pairwise

from msgspec import Struct, field

from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, Node, Scalar, is_empty, kind_of, span_of
from agentv.authoring.source.report import Report
from agentv.model.suite.conversation import Dependency, Link
from agentv.model.suite.suite import Case
from agentv.model.values.span import Span

SHOWN = 100
"""Unknown ids, and circles, that are reported one by one."""

STEPS = 10
"""Cases of a circle that are named."""

COMPARED = 20_000
"""Ids among which the nearest one is looked for."""


def read_dependencies(node: Node, reading: Reading) -> tuple[Dependency, ...]:
    """The ids of `depends_on`: one, or a list of them. What is wrong is reported and left out."""
    if is_empty(node) and not isinstance(node, Scalar):
        return ()
    found: dict[str, Dependency] = {}
    for item in node.items if isinstance(node, ListNode) else [node]:
        if isinstance(item, Scalar) and item.value is not None and item.text.strip():
            found.setdefault(item.text, Dependency(item.text, span_of(item.at)))
        else:
            message = f"'depends_on' must be the id of a case, or a list of ids, found {kind_of(item)}"
            reading.report.error("bad-value", item, message)
    return tuple(found.values())


class Links(Struct):
    """Collects the links between the cases of a suite. Only cases with links are held.

    Attributes:
        unread: ids of invalid cases, which are therefore not unknown ids.
        lost: a case is invalid and its id could not be read, so no id can be reported as unknown.
    """

    unread: Collection[str] = ()
    lost: bool = False
    _depends_on: dict[str, tuple[Dependency, ...]] = field(default_factory=dict)
    _follows: dict[str, tuple[str, str]] = field(default_factory=dict)
    _last: dict[str, _Member] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether no case has links."""
        return not self._depends_on and not self._last

    def note(self, case: Case, report: Report) -> None:
        """One more case, in the order of the file."""
        if case.depends_on:
            self._depends_on[case.id] = case.depends_on
        if case.conversation_id is None:
            return
        before = self._last.get(case.conversation_id)
        member = _Member.of(case, before.story if before is not None else "")
        if before is not None:
            self._follows[case.id] = (before.id, before.story)
            _compare(member, before, case.conversation_id, case.span, report)
        self._last[case.conversation_id] = member

    def checked(
        self, known: Callable[[str], bool], ids: Callable[[], Iterable[str]], report: Report
    ) -> dict[str, Link]:
        """The links of every case that has some, or that others of its conversation follow.

        Args:
            known: whether a case of the suite has this id.
            ids: all of them, for the hint at an unknown one.
            report: gets the unknown ids, and every circle once.
        """
        self._report_unknown(known, ids, report)
        links = {
            case: Link(tuple(one.id for one in self._depends_on.get(case, ())), *self._follows.get(case, (None, "")))
            for case in {**self._follows, **self._depends_on}
        }
        for circle in islice(circles(links), SHOWN):
            self._report_circle(circle, report)
        return links

    def _report_unknown(self, known: Callable[[str], bool], ids: Callable[[], Iterable[str]], report: Report) -> None:
        if self.lost:
            return
        named = (one for several in self._depends_on.values() for one in several)
        unknown = [one for one in named if not known(one.id) and one.id not in self.unread]
        near = list(islice(ids(), COMPARED)) if unknown else []
        for dependency in unknown[:SHOWN]:
            message = f"no case of this suite has the id '{dependency.id}'"
            report.error("unknown-case", dependency.span, message, hint=did_you_mean(dependency.id, near))
        if len(unknown) > SHOWN:
            message = f"'depends_on' lists {len(unknown):,} ids that do not exist; showing the first {SHOWN}"
            report.error("unknown-case", unknown[0].span, message)

    def _report_circle(self, circle: list[str], report: Report) -> None:
        """Report a circle at a `depends_on` that is part of it: conversations alone never close one."""
        begin = next(
            at for at, case in enumerate(circle) if self._place_of_dependency(case, circle[(at + 1) % len(circle)])
        )
        turned = [*circle[begin:], *circle[:begin], circle[begin]]
        steps = [self._shown(case, needed) for case, needed in islice(pairwise(turned), STEPS)]
        if len(circle) > STEPS:
            steps.append(f"… {len(circle) - STEPS:,} more … → ")
        at = self._place_of_dependency(turned[0], turned[1])
        message = f"'{turned[0]}' depends on itself: {''.join(steps)}{turned[0]}"
        report.error("dependency-cycle", at.span if at is not None else None, message)

    def _shown(self, case: str, needed: str) -> str:
        return f"{case} → " if self._place_of_dependency(case, needed) else f"{case} → (before it in its conversation) "

    def _place_of_dependency(self, case: str, needed: str) -> Dependency | None:
        """Where the file says that a case depends on another."""
        return next((one for one in self._depends_on.get(case, ()) if one.id == needed), None)


class _Member(Struct, frozen=True):
    """What all cases of a conversation must have in common, and the hash of those up to this one."""

    id: str
    target: str | None
    repeat: int | None
    story: str

    @classmethod
    def of(cls, case: Case, history: str) -> _Member:
        digest = sha256(f"{history}{case.sha256}".encode()).hexdigest()
        return cls(case.id, case.target.name if case.target else None, case.repeat, digest)


def _compare(member: _Member, before: _Member, conversation: str, span: Span | None, report: Report) -> None:
    """A case goes on where the one before it ended: on the same target, sample for sample."""
    for key, own, other in (
        ("target", member.target, before.target),
        ("repeat", member.repeat, before.repeat),
    ):
        if own != other:
            found = " and ".join("the suite's value" if one is None else str(one) for one in (other, own))
            message = (
                f"'{before.id}' and '{member.id}' belong to one conversation, '{conversation}', "
                f"but their '{key}' differs: {found}"
            )
            report.error(
                "torn-conversation", span, message, hint=f"use the same '{key}' in all cases of a conversation"
            )


def circles(links: Mapping[str, Link]) -> Iterator[list[str]]:
    """Every circle that a walk along the links closes, each in the order of its steps.

    Without recursion: a conversation may have more cases than Python has frames.
    """
    done: set[str] = set()
    for start in links:
        path: dict[str, Iterator[str]] = {}
        step: str | None = start
        while step is not None or path:
            if step is not None and step not in done:
                path[step] = iter(links[step].needs if step in links else ())
            last = next(reversed(path), None)
            if last is None:
                break
            step = next(path[last], None)
            if step is None:
                done.add(last)
                del path[last]
            elif step in path:
                yield [*path][[*path].index(step) :]
                step = None
