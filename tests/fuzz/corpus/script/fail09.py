def f(x):
    return 10 ** 30
