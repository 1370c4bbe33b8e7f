"""Use cases, one per module or package. Only this package joins sibling packages."""
