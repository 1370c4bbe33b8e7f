"""Runs for HTML reports: one with everything that a report shows, and texts that try to inject markup."""

from msgspec.structs import replace

from agentv.extensions.view.pages.page import HtmlReport
from agentv.model.run.grade import Check
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import Attempt, TargetResponse
from agentv.model.values.usage import TokenUsage
from doubles.trials import ROOT, finished, graded, scored, trial
from doubles.views import RESULTS

RUN_ID = "20261122T100000Z-7f3a"
RECORD = {
    "run_id": RUN_ID,
    "started": "2026-11-22T10:00:00Z",
    "agentv": "0.6.0",
    "settings": {"judge": "haiku", "filter": "refund*"},
    "suites": [{"name": "refunds", "path": "evals/refund.eval.yaml", "metadata": {"kept": "to itself"}}],
}

HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 1</script>",
    "</SCRIPT\n><img src=x onerror='window.hacked = 1'>",
    "<!-- <script> ",
    "javascript:window.hacked=1",
    "\u202egnp.exe \u2066 back",
    "\ud800 half \udfff",
    "\x1b[31mred\x00\r\nnext \u2028 line",
    '"]}</style><svg onload=window.hacked=1>',
    "{{constructor.constructor('window.hacked=1')()}}",
]


def hostile_trial(number, text):
    """Return a trial with the text in every place that can hold text."""
    subject = trial(f"{number}{text}", suite=f"s{text}", target=f"t{text}", tags=(text,), metadata={text: text})
    return finished(
        "failed",
        trial=subject,
        output=text,
        input=(Message("user", text, name=text, tool_calls=(ToolCall(text, {text: text}, output=text),)),),
        scores=[replace(graded(0.2, False, Check(text, False, text), name=text), grade=_grade(text))],
    )


def _grade(text):
    return replace(graded(0.2, False, Check(text, False, text)).grade, reason=f"because {text}", details={text: text})


def conversation():
    called = Message(
        "assistant", "Let me look.", tool_calls=(ToolCall("find_order", {"id": "4711"}, duration_ms=182.0),)
    )
    said = (called, Message("tool", '{"status":"shipped"}'), Message("assistant", "It was shipped."))
    return finished(
        "failed",
        trial=trial("looks-it-up", suite="agent", tags=("tools",)),
        output="It was shipped.",
        turns=(TargetResponse("It was shipped.", said, TokenUsage(300, 40, 340), 0.0003, 1200.0),),
        retries=(Attempt("rate-limited", "no room", 120.0, 1000.0),),
        attempts=2,
    )


def samples(*passed, name="says-it-often", aggregate="mean"):
    for number, one in enumerate(passed, 1):
        subject = trial(name, sample=number, repeat=len(passed), aggregate=aggregate)
        yield finished("passed" if one else "failed", trial=subject, scores=[scored(one)])


def early_stopped_samples(name, *passed, repeat=12):
    """Return the samples of a case that may stop early."""
    for number, one in enumerate(passed, 1):
        subject = trial(name, sample=number, repeat=repeat, alpha=0.05)
        yield finished("passed" if one else "failed", trial=subject, scores=[scored(one)])


def everything():
    return [*(one for one in RESULTS if one.trial.repeat == 1), conversation(), *samples(True, True, False, True, True)]


def report(results, *, run_id=RUN_ID, summary=None, record=None):
    return HtmlReport(run_id, RECORD if record is None else record, summary, results, ROOT)
