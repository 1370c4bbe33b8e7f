def f(output):
    return output
