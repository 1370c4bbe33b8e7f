"""Claude models, by the Messages API."""
