"""The model: frozen Structs that all other packages produce or use.

msgspec is the one library that the model knows: hundreds of classes are made whenever a command starts, and a dataclass
takes fifty times as long, because each of its methods is compiled. `AssertionContext` alone is a dataclass, since it
keeps what it has computed. Options of assertions and providers are dataclasses, as plugins declare them.
"""
