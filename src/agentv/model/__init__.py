"""The data model: frozen structs that all other packages create or read.

msgspec is the only third-party library that the model imports. Every command defines hundreds of classes when it
starts, and defining a dataclass takes fifty times as long as defining a struct, because Python compiles each generated
method. Only `AssertionContext` is a dataclass, because it caches computed properties. Options of assertions and
providers are dataclasses too, because plugins declare theirs that way.
"""
