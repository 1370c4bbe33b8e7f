"""Use cases, one a module or package. Only here are siblings joined."""
