"""Models that the library LiteLLM knows."""
