"""`agentv lsp`: the language server, which editors start."""
