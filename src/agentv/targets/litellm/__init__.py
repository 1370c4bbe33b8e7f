"""Models through the LiteLLM library."""
