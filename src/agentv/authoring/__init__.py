"""Reading of what people write: a Suite, or every diagnostic of its files."""
