def f(context): return None
