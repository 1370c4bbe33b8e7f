"""No name that plugin authors import is removed."""

import agentv.plugins
from agentv.testing import contract

NAMES = """
Alias AsWritten AssertionContext Between Block CallFailure CallTimeTemplate Ceiling Check Count DeclaredAssertion Doc
DocumentBlock DocumentDialect Embedder Embeddings Executor Failure FileBlock FilePath Fraction FromEnvironment Grade ImageBlock Issue
Message Nonempty ProviderSettings RetrievedText RunData SampleDialect Seconds Secret Target TargetRequest TargetResponse TargetSpec Text TextBlock
Texts TokenUsage ToolCall Translation UsageError Verbatim node_of plain
"""


def test_every_name_is_there():
    assert sorted(agentv.plugins.__all__) == NAMES.split()
    assert [name for name in NAMES.split() if not hasattr(agentv.plugins, name)] == []


def test_the_contract_suites_are_there_and_pytest_collects_none_of_them():
    assert contract.__all__ == ["AssertionContract", "ReportContract", "TargetContract"]
    assert not any(name.startswith("Test") for name in contract.__all__)
