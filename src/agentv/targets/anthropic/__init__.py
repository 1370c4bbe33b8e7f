"""Claude models through Anthropic's SDK."""
