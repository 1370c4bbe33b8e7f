"""Requirements for every assertion type, as tests that a subclass inherits."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from collections.abc import Sequence
from typing import Any, get_type_hints

from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.values.message import Message
from agentv.registry.fields import Declared, DeclaredAssertion, Doc, options_of


def check_declaration(declared: Declared) -> None:
    """Check the class of options, and that instances can be compared and sent to another machine.

    Raises:
        AssertionError: something is wrong; says what.
    """
    cls = type(declared)
    parameters = getattr(cls, "__struct_config__", None) or getattr(cls, "__dataclass_params__", None)
    assert parameters is not None, f"{cls.__name__} must be a dataclass"
    assert parameters.frozen, f"{cls.__name__} must be frozen: @dataclass(frozen=True, slots=True)"
    text = (cls.__doc__ or "").strip()
    assert text, f"{cls.__name__} must have a docstring: its first line is the description"
    assert not text.startswith(f"{cls.__name__}("), f"{cls.__name__} must have a docstring of its own"
    hints = get_type_hints(cls, include_extras=True)
    for name in options_of(cls):
        assert any(isinstance(about, Doc) for about in getattr(hints[name], "__metadata__", ())), (
            f"{cls.__name__}.{name} must say what it means: Annotated[…, Doc('…')]"
        )
    assert list(declared.validate()) == [], "these options must be right"
    assert pickle.loads(pickle.dumps(declared)) == declared, "options must survive pickle"  # noqa: S301  # our own bytes


ODD_TEXTS = ("", " ", "\n\n", "\x00", "é\u0301\u202e", "{{ x }}", "a" * 100_000, '{"a": [1, 2]}', "-" * 1000)
"""Answers that a model may give and nobody expects."""


class AssertionContract:
    """Tests of one assertion type that looks at the answer's text. Override `examples`."""

    def examples(self) -> Sequence[tuple[DeclaredAssertion, str, bool]]:
        """Options, an answer, and whether it passes: at least one that does and one that does not."""
        raise NotImplementedError("override examples(): (options, answer, whether it passes)")

    def context(self, output: str | None) -> AssertionContext:
        """The context of `grade`, besides the answer."""
        return AssertionContext((Message("user", "question"),), output)

    def test_options_are_declared_well(self) -> None:
        """They are a frozen dataclass, documented, and can be pickled."""
        for options, _, _ in self.examples():
            check_declaration(options)
            assert isinstance(options.label(), str), "label() must return text"

    def test_it_passes_and_fails_as_the_examples_say(self) -> None:
        """Each example's answer gets the verdict that the example names."""
        found = self.examples()
        assert {passes for _, _, passes in found} == {True, False}, "give an example that passes and one that fails"
        for options, output, passes in found:
            grade = self._graded(options, output)
            assert grade.error is None, f"{output!r} errored: {grade.error}"
            assert grade.passed is passes, f"{output!r} with {options} gave {grade}"

    def test_no_answer_is_an_error_and_no_verdict(self) -> None:
        """An answer that cannot be graded neither passes nor fails: `Grade.errored`."""
        for options, _, _ in self.examples():
            assert self._graded(options, None).error is not None, "without an answer it must return Grade.errored(…)"

    def test_no_answer_makes_it_raise(self) -> None:
        """Whatever text a model gives, the result is a grade between 0 and 1."""
        for options, _, _ in self.examples():
            for text in ODD_TEXTS:
                grade = self._graded(options, text)
                assert 0 <= grade.score <= 1, f"the score is {grade.score}"

    def test_it_is_stateless(self) -> None:
        """The same answer gets the same grade again."""
        for options, output, _ in self.examples():
            assert self._graded(options, output) == self._graded(options, output), "a second grade differs"

    def _graded(self, options: DeclaredAssertion, output: str | None) -> Grade:
        grade: Any = getattr(options, "grade")(self.context(output))  # noqa: B009  # a subclass declares it
        if inspect.isawaitable(grade):
            grade = asyncio.run(_awaited(grade))
        assert isinstance(grade, Grade), f"grade() must return a Grade, and returned {grade!r}"
        return grade


async def _awaited(grade: Any) -> Any:
    return await grade
