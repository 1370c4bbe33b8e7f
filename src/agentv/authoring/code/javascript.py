"""Uses of JavaScript in a suite, and the runtime that they need, looked for before the first call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, Severity
from agentv.model.suite.assertion import Transform
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.span import Span
from agentv.registry.fields import JavaScriptSource, is_declared, options_of

_CODE = "no-javascript-runtime"
_KINDS = frozenset({"javascript", "javascript-file"})


def report_missing_runtime(
    uses: Iterable[Span | None], env: Mapping[str, str], report: Report, severity: Severity
) -> None:
    """Report, where JavaScript is first used, that no runtime for it is installed.

    Args:
        uses: positions; None for a target of the command line.
        env: the environment in which the runtime is looked for.
        report: gets the diagnostic.
        severity: an error where the code will run now.
    """
    if any(one.code == _CODE for one in report.diagnostics):  # a prompt in JavaScript was to be written
        return
    places = list(dict.fromkeys(uses))
    if not places:
        return
    from agentv.user_code.javascript.runtime import HOW_TO_GET, find_runtime

    found = find_runtime(env.get("PATH", ""))
    if not isinstance(found, str):
        return
    notes = ("other places of this suite use JavaScript, too",) if len(places) > 1 else ()
    message = f"this needs a JavaScript runtime; {found}"
    report.add(Diagnostic(_CODE, message, places[0], severity, HOW_TO_GET, notes))


def runs_javascript(spec: TargetSpec) -> bool:
    """Whether calls of a target run JavaScript inside agentv."""
    settings = spec.settings
    return is_declared(settings) and any(_is_javascript(getattr(settings, name)) for name in options_of(settings))


def _is_javascript(value: object) -> bool:
    return isinstance(value, JavaScriptSource) or (isinstance(value, Transform) and value.kind in _KINDS)
