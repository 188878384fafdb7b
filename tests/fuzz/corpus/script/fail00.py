def f(x):
    return x + {"a": 1}["b"]
