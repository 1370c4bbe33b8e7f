"""The cases of `--last-failed`: each with the targets, prompts and variants with which it did not pass."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.suite.workspace import Variant

FailedKey = tuple[str, str, str, str | None, str, str | None]
"""Path and name of the suite, id and prompt of the case, names of the target and of the variant."""


class FailedTrials(Struct, frozen=True):
    """Trials that did not pass when they last ran. Paths are absolute."""

    keys: frozenset[FailedKey]
    _cases: frozenset[tuple[str, str, str, str | None]] = field(default=frozenset())

    @classmethod
    def of(cls, keys: Iterable[FailedKey]) -> FailedTrials:
        """The trials with these keys."""
        found = frozenset(keys)
        return cls(found, frozenset(key[:4] for key in found))

    def takes_case(self, suite: Suite, case: Case) -> bool:
        """Whether the case did not pass with any target or variant."""
        return (suite.path, suite.name, case.id, case.prompt_id) in self._cases

    def takes(self, suite: Suite, case: Case, target: TargetSpec, variant: Variant | None) -> bool:
        """Whether the case did not pass with this target and variant.

        Where cases depend on each other, or their answers are compared, a case runs with all of them.
        """
        if suite.links or suite.compares:
            return True
        name = None if variant is None else variant.name
        return (suite.path, suite.name, case.id, case.prompt_id, target.name, name) in self.keys
