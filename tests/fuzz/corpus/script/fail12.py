def f(x):
    return [0] * 10**12
