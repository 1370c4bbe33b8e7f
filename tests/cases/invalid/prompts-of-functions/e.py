def f(vars): return {'prompt': 'a', 'config': {'t': 1}}
