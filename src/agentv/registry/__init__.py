"""Registries of assertion types, target providers, extensions and plugins, and the declaration of their options."""
