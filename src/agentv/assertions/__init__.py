"""The built-in assertion types, a family a file, and how projects add their own (SPEC sections 7 and 8)."""
