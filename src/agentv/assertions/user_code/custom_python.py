"""Custom assertions in Python: checked by their syntax tree when loaded, run in a worker when graded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from agentv.assertions.services_for_workers import ADAPTERS
from agentv.assertions.user_code.calling import grade_in_worker
from agentv.assertions.user_code.custom_options import at_their_place, label_of, merge_config
from agentv.assertions.user_code.grading_result import from_python
from agentv.assertions.user_code.result import grade_of
from agentv.assertions.user_code.signature import BAD_FILE, Signature, read_signature
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.suite.suite import CODE_TIMEOUT_S
from agentv.model.values.values import JsonObject
from agentv.ports import CodeCall
from agentv.registry.fields import Issue


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
        issues += at_their_place(signature.validate(merged), options)
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
