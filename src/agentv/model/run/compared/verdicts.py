"""Verdicts and measures of comparisons, apart from all that only comparisons need."""

from __future__ import annotations

from typing import Literal

Verdict = Literal["better", "worse", "equivalent", "non-inferior", "inconclusive"]
"""What is shown of a candidate; `equivalent`: any difference is at most the margin; `non-inferior`: it is not worse by
more than the margin, and may be better."""

Withheld = Literal["errors", "measures", "settings"]
"""Why a verdict that the judged cases show is not given: it would not hold if the errored ones had failed, or passed;
one measure is better and the other worse; or the runs decided cases by different rules."""

Measure = Literal["mean score", "pass rate", "share of cases that passed"]
"""The pass rate is that of samples; the share of passed cases is compared where samples may end early."""
"""What decides: the mean scores of cases, and the shares of their samples that passed."""
