"""Contract suites: the tests that every plugin passes, for authors to run on their own with pytest.

Subclass `TargetContract`, `AssertionContract` or `ReportContract` in a class whose name begins with `Test`.
"""

from __future__ import annotations

from agentv.testing.contract.assertions import AssertionContract
from agentv.testing.contract.reports import ReportContract
from agentv.testing.contract.targets import TargetContract

__all__ = ["AssertionContract", "ReportContract", "TargetContract"]
