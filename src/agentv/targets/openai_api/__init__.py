"""OpenAI's API as many servers speak it: chat completions, responses and embeddings."""
