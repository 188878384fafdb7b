match x, *y:
    case 1 | -2.5 | 3 + 4j | "a" | None | a.b:
        pass
    case [a, *_, (b), (c,), []] | (d as e) if f:
        pass
    case {"a": 1, a.b: {}, **rest}:
        pass
    case A(), A.B(1, c=d, e=_):
        pass
match = match(case)[type]; type = match
