"""`retry` and `rate`: retries of a call, and the rate limit of a target (SPEC sections 3 and 12)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from agentv.authoring.source.nodes import MapNode, Node, Place
from agentv.authoring.source.report import Report
from agentv.model.suite.suite import Rate, Retry
from agentv.model.values.price import Price
from agentv.registry.fields import Alias, Between, Declared, Doc, Issue

Milliseconds = Annotated[float, Between(0)]
Status = Annotated[int, Between(100, 599)]
Usd = Annotated[float, Between(0)]
PerMinute = Annotated[float, Between(0.01)]


@dataclass(frozen=True, slots=True)
class AuthoredRetry(Declared):
    """When a call without an answer is made again."""

    max_retries: Annotated[
        Annotated[int, Between(0, 100)] | None,
        Alias(("maxRetries",)),
        Doc("attempts after the first, 3; rate limits do not count; 0: never retry"),
    ] = None
    retry_initial_delay_ms: Annotated[
        Milliseconds | None,
        Alias(("initial_delay_ms",)),
        Doc("maximum wait after the first attempt, 1000; the actual wait is a random share of it"),
    ] = None
    retry_max_delay_ms: Annotated[
        Milliseconds | None, Alias(("max_delay_ms",)), Doc("maximum wait after any attempt, 60000")
    ] = None
    retry_backoff_factor: Annotated[
        Annotated[float, Between(1)] | None,
        Alias(("backoff_factor",)),
        Doc("factor by which the wait grows each time, 2"),
    ] = None
    retry_status_codes: Annotated[
        tuple[Status, ...] | None,
        Alias(("status_codes",)),
        Doc("HTTP statuses to retry; default: 408, 409, 429 and 500 or higher"),
    ] = None

    def validate(self) -> Iterable[Issue]:
        """A first wait that is longer than the longest."""
        first, longest = self.retry_initial_delay_ms, self.retry_max_delay_ms
        if first is not None and longest is not None and first > longest:
            message = f"the first wait of {first:g} ms is longer than the maximum, {longest:g} ms"
            yield Issue(("retry_initial_delay_ms",), message)

    def over(self, base: Retry) -> Retry:
        """These settings, with the base's for those that are not set."""
        first, longest = self.retry_initial_delay_ms, self.retry_max_delay_ms
        return Retry(
            max_retries=base.max_retries if self.max_retries is None else self.max_retries,
            initial_delay_ms=base.initial_delay_ms if first is None else first,
            max_delay_ms=base.max_delay_ms if longest is None else longest,
            backoff_factor=base.backoff_factor if self.retry_backoff_factor is None else self.retry_backoff_factor,
            status_codes=base.status_codes if self.retry_status_codes is None else self.retry_status_codes,
        )


@dataclass(frozen=True, slots=True)
class AuthoredRate(Declared):
    """Rate limit of a target."""

    requests_per_minute: Annotated[PerMinute | None, Alias(("rpm", "requests")), Doc("maximum calls per minute")] = None
    tokens_per_minute: Annotated[
        PerMinute | None, Alias(("tpm", "tokens")), Doc("maximum tokens per minute, input and output")
    ] = None

    def validate(self) -> Iterable[Issue]:
        """A rate that limits nothing."""
        if self.requests_per_minute is None and self.tokens_per_minute is None:
            message = "a rate needs 'requests_per_minute' or 'tokens_per_minute'"
            yield Issue((), message, "missing-key")

    @property
    def rate(self) -> Rate:
        """The rate limit for the engine."""
        return Rate(self.requests_per_minute, self.tokens_per_minute)


@dataclass(frozen=True, slots=True)
class AuthoredPrice(Declared):
    """Price of a target's tokens."""

    input: Annotated[Usd, Doc("US dollars per million input tokens")]
    output: Annotated[Usd, Doc("US dollars per million output tokens")]
    cached_input: Annotated[
        Usd | None, Doc("US dollars per million input tokens read from a cache; default: as `input`")
    ] = None

    @property
    def price(self) -> Price:
        """The price for the engine."""
        return Price(self.input, self.output, self.cached_input)


FLAT = frozenset(
    {
        "max_retries",
        "maxRetries",
        "retry_initial_delay_ms",
        "retry_max_delay_ms",
        "retry_backoff_factor",
        "retry_status_codes",
    }
)
"""Keys of `retry` that AgentV writes beside the settings of a target, and promptfoo one of them."""


def gathered(node: MapNode, report: Report) -> MapNode:
    """The target with its flat keys of `retry` moved under `retry`."""
    flat = {key: one for key, one in node.items.items() if key in FLAT}
    if not flat:
        return node
    own = node.get("retry")
    inside: dict[str, Node] = dict(own.items) if isinstance(own, MapNode) else {}
    places: dict[str, Place] = dict(own.keys) if isinstance(own, MapNode) else {}
    for key, one in flat.items():
        if own is not None and (key in inside or not isinstance(own, MapNode)):
            message = f"'{key}' is set both here and in 'retry'; keep one of them"
            report.error("two-spellings", node.keys[key], message)
        else:
            report.older(key, f"retry.{key}" if key != "maxRetries" else "retry.max_retries", node.keys[key])
            inside[key], places[key] = one, node.keys[key]
    at = own.at if isinstance(own, MapNode) else node.keys[next(iter(flat))]
    items = {key: one for key, one in node.items.items() if key not in FLAT}
    keys = {key: place for key, place in node.keys.items() if key not in FLAT}
    return MapNode({**items, "retry": MapNode(inside, places, at)}, {**keys, "retry": keys.get("retry", at)}, node.at)
