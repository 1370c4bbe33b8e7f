"""`--regrade`: the answers of another run, graded by the assertions of today."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from agentv.app.preparation import Prepared, find_run, root_of
from agentv.engine.conversation import first_request
from agentv.engine.kept import call_key
from agentv.errors import UsageError
from agentv.store.directory import JOURNAL
from agentv.store.recall import Recall


@contextmanager
def answers_to_regrade(prepared: Prepared) -> Iterator[Recall | None]:
    """The answers of the run that `--regrade` names; None where it is not asked for.

    Raises:
        UsageError: there is no such run, or it answers none of the trials.
        StoreError: its journal cannot be read.
    """
    named = prepared.settings.regrade
    if named is None:
        yield None
        return
    run = find_run(named, Path(root_of(prepared.suites)), doing="regrade")
    with closing(Recall(run / JOURNAL)) as earlier:
        if not any(call_key(trial.target, first_request(trial)) in earlier for trial in prepared.plan):
            message = f"the run {run.name} holds no answer to these cases on these targets"
            raise UsageError(message, "their inputs or settings are others now, so that they must be asked anew")
        yield earlier
