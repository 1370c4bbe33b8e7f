"""Explicit registries of assertion types and target providers, and how their options are declared."""
