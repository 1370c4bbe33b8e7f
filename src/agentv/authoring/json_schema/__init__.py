"""The JSON Schema of authored files, derived from their declarations."""
