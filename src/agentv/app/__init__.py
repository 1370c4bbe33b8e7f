"""Use cases: one a module. Only here are the rooms joined."""
