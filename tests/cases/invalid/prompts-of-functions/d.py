def f(one, two): return 'a'
