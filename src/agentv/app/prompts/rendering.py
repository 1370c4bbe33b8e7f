"""`agentv prompt render`: what a model would see of one case. Nothing is called."""

from __future__ import annotations

from agentv.app.prompts.examining import Examiner
from agentv.app.prompts.library import LibraryPrompt
from agentv.authoring.prompt_library.files import exam_of
from agentv.errors import LoadError, UsageError
from agentv.model.suite.library import Rendered
from agentv.model.suite.suite import Suite


def render(prompt: LibraryPrompt, case_id: str | None, examiner: Examiner) -> Rendered:
    """The messages of a case; the only one's, where nothing is said.

    Raises:
        LoadError: the exam is wrong.
        UsageError: there is no exam or no such case, or there are several and none is named.
    """
    suite = exam_suite(prompt, examiner)
    cases = {case.id: case for case in suite.cases}
    own = [case.id for case in suite.cases if not case.asks_judge]
    if case_id is None and len(own) == 1:
        case_id = own[0]
    if case_id is None:
        raise UsageError(f"'{prompt.id}' has {len(own)} cases; choose one with --case", _listed(own))
    case = cases.get(case_id)
    if case is None:
        from agentv.authoring.source.nearest import did_you_mean

        raise UsageError(f"'{prompt.id}' has no case '{case_id}'", did_you_mean(case_id, cases) or _listed(own))
    return Rendered(prompt.id, case.id, case.input)


def exam_suite(prompt: LibraryPrompt, examiner: Examiner) -> Suite:
    """The exam of a prompt.

    Raises:
        LoadError: it is wrong.
        UsageError: the prompt has no exam.
    """
    exam = exam_of(prompt.directory)
    if exam is None:
        raise UsageError(f"'{prompt.id}' has no exam", f"create one with agentv prompt init {prompt.id}")
    suite, found = examiner.load(exam)
    if suite is None:
        raise LoadError(found)
    return suite


def _listed(cases: list[str]) -> str:
    return f"there are {', '.join(cases[:20])}" + (f" and {len(cases) - 20} more" if len(cases) > 20 else "")
