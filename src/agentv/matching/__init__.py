"""Match answers against regular expressions and JSON Schemas, in bounded time."""
