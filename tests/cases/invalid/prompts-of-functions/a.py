def f(context): raise ValueError('no')
