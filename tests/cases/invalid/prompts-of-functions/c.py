raise ValueError('at import')
def f(context): pass
