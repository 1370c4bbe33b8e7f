"""The public names for plugins, importable from here even when modules inside agentv move."""

from __future__ import annotations

from agentv.authoring.dialects.recognition import DocumentDialect, SampleDialect, Translation
from agentv.authoring.source.nodes import node_of, plain
from agentv.errors import UsageError
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import Block, DocumentBlock, FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.response import CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.usage import Ceiling, TokenUsage
from agentv.ports import Embedder, Executor, Target, TargetRequest
from agentv.registry.fields import (
    Alias,
    AsWritten,
    Between,
    CallTimeTemplate,
    Count,
    DeclaredAssertion,
    Doc,
    FilePath,
    Fraction,
    FromEnvironment,
    Issue,
    Nonempty,
    Seconds,
    Secret,
    Text,
    Texts,
    Verbatim,
)
from agentv.registry.types import ProviderSettings, RunData

__all__ = ["Alias", "AsWritten", "AssertionContext", "Between", "Block", "CallFailure", "CallTimeTemplate"]
__all__ += ["Ceiling", "Check", "Count", "DeclaredAssertion", "Doc", "DocumentBlock", "DocumentDialect", "Embedder"]
__all__ += ["Embeddings", "Executor", "Failure", "FileBlock", "FilePath", "Fraction", "FromEnvironment", "Grade"]
__all__ += ["ImageBlock", "Issue", "Message", "Nonempty", "ProviderSettings", "RetrievedText", "RunData"]
__all__ += ["SampleDialect", "Seconds", "Secret", "Target", "TargetRequest", "TargetResponse", "TargetSpec", "Text"]
__all__ += ["TextBlock", "Texts", "TokenUsage", "ToolCall", "Translation", "UsageError", "Verbatim", "node_of"]
__all__ += ["plain"]
