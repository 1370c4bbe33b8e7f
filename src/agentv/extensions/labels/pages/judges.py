"""How well judges agree with people, in a run or by all labels of a project."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from msgspec import Struct

from agentv.app.results.project import check_files, stamp_of
from agentv.extensions.labels.checking import NoLabelsError, check_judges, check_labels
from agentv.extensions.labels.pages.labelling import label_store
from agentv.extensions.labels.reports.judge_check import judge_check_content
from agentv.store.files.directory import is_being_written
from agentv.web.answers import RefusedError
from agentv.web.endpoints import Call, Endpoint, ProjectContext


class JudgesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which judges.

    Attributes:
        run: that they graded; empty: by all labels of the project alone.
        assertion: only the judge of this assertion; empty: of all.
    """

    run: str = ""
    assertion: str = ""


def _judges(context: ProjectContext, call: Call) -> dict[str, Any]:
    kept, run, assertion = label_store(context, call), call.query.run, call.query.assertion or None
    try:
        if not run:
            missing = NoLabelsError("nobody has labelled answers yet", "label answers: agentv label RUN")
            return dict(judge_check_content(check_labels(kept.read(), assertion, missing)))
        path = context.project.run(run)
        check_files(path)
        return dict(judge_check_content(check_judges(str(path), assertion, kept)))
    except NoLabelsError as error:
        raise RefusedError(404, "no-labels", f"{error}; {error.hint}" if error.hint else str(error)) from error


def _state(context: ProjectContext, call: Call) -> str:
    """All labels, and the files of the run."""
    labels = sha256(repr(label_store(context, call).read()).encode(errors="surrogatepass")).hexdigest()
    if not call.query.run:
        return labels
    path = context.project.run(call.query.run)
    return f"{labels} {stamp_of(path)} {is_being_written(path)}"


JUDGES = (
    Endpoint(
        "/api/judges",
        "How well judges agree with people: what `agentv judge check --json` prints.",
        dict[str, Any],
        _judges,
        JudgesQuery,
        state=_state,
        kept=True,
    ),
)
