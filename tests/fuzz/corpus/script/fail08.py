def f(x):
    raise ValueError("no " + str(3))
