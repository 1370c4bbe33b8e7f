"""The built-in assertion types, one module per family, and projects' custom types (SPEC sections 7 and 8)."""
