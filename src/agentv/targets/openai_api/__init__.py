"""Targets with OpenAI's API (chat completions, responses, embeddings), which many servers offer."""
