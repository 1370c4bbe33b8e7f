def f(context): return 'a'
