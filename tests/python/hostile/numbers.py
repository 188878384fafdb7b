"""Numbers of Python: kinds, powers, division, rounding, bools, large ints, and how they print."""
import cmath
import decimal
import fractions
import math
import operator

import torch

from . import equal, refused

ONE = torch.tensor([1.0, 2.0])
FIVE = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
SEVEN = torch.arange(7.0)


@equal(ONE, FIVE, SEVEN)
def power_of_two(x):
    n = 2 ** (len(x) - 5)
    return n, isinstance(n, int), x * n


@equal((ONE, 3), (ONE, -3), (ONE, 0))
def power_of_an_input(x, n):
    return 2 ** n, (-2) ** n, n ** 2, 1 ** n


@equal((2, 3), (2, -1), (0, 0), (-8, 2))
def integer_power(a, b):
    return a ** b


@equal((-8.0, 2.0), (4.0, 0.5), (-8.0, 0.5))
def float_power(a, b):
    return a ** b


@equal((0.0, 1), (2.0, -2))
def float_to_an_int(a, b):
    return a ** b


@equal((7, 2), (-7, 2), (7, -2), (-7, -2))
def floor_and_modulo(a, b):
    return a // b, a % b, divmod(a, b), -a // b, a // -b


@equal((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (0.0, -3.0), (-0.0, 3.0))
def float_floor_and_modulo(a, b):
    return a // b, a % b, divmod(a, b), math.fmod(a, b)


@equal((0.5,), (1.5,), (2.5,), (-0.5,), (2.675,), (1e20,))
def rounds(a):
    return round(a), round(a, 0), round(a, 2), int(a), math.floor(a), math.ceil(a), math.trunc(a)


@equal((15,), (25,), (-15,), (1234567,))
def rounds_integers(n):
    return round(n), round(n, -1), round(n, -2), round(n, 3)


@equal((True, 2), (False, 3))
def bool_arithmetic(flag, n):
    return flag + n, flag * n, flag + flag, -flag, +flag, flag / 2, flag // 1, flag ** 2


@equal((True, False), (False, False), (True, True))
def bool_operators(a, b):
    return a & b, a | b, a ^ b, not a, a and b, a or b, a < b, a == 1


@equal((True,), (False,))
def bool_inverted(a):
    return operator.invert(int(a)), operator.not_(a), operator.pos(a), abs(a)


@equal((2 ** 40, 2 ** 40), (3, 5), (-(2 ** 62), 4))
def integers_beyond_64_bits(a, b):
    return a * b, a * b - a * b + 1, (a * b) // 3


@equal((62,), (63,), (64,), (100,), (3,))
def shifts(n):
    return 1 << n, (1 << n) >> (n - 1), -1 >> n


@equal((20,), (25,), (3,))
def factorial_in_a_loop(n):
    total = 1
    for i in range(n):
        total = total * (i + 1)
    return total


@equal((2 ** 53,), (2 ** 53 + 1,), (10,))
def int_to_float(n):
    return float(n), n / 1, n + 0.0, n == float(n), n / 3


@equal((1,), (2,), (-3,))
def true_division_is_float(n):
    return n / 1, 4 / 2, n * 2 / 2, isinstance(n / 1, float)


@equal((1.0,), (2.5,), (1e16,), (1e-7,), (float("inf"),), (float("nan"),), (-0.0,))
def float_formats(a):
    return f"{a}", f"{a:.2f}", f"{a:e}", f"{a:g}", str(a), repr(a), "%.3f" % a, f"{a!r:>8}"


@equal((1,), (-255,), (10 ** 20,))
def int_formats(n):
    return f"{n}", f"{n:5d}", f"{n:+}", f"{n:,}", f"{n:x}", hex(n), "%d" % n, f"{n:#b}"


@equal((1, 1.0), (2, 2.5), (True, 1))
def mixed_comparison(a, b):
    return a == b, a is b, a < b, hash(a) == hash(b)


@equal((float("nan"),), (1.0,))
def not_a_number(a):
    return a == a, a != a, min(a, 1.0), max(1.0, a), sorted([2.0, a, 1.0])[0] == 1.0, a in [a]


@equal((0.0, -0.0), (-0.0, 0.0), (1.0, 2.0))
def signed_zeros(a, b):
    return a == b, math.copysign(1, a), math.atan2(a, b), a + b, -a, min(a, b), str(a * b)


@equal((3, 2), (0, 5), (-7, 3))
def minimum_keeps_the_kind(a, b):
    return min(a, b, 1.5), max(a, float(b)), min([a, b]), max((b, a))


@equal((3, 2), (0, 5), (4, 4))
def key_of_a_dict_by_data(a, b):
    return {a: 1}.get(b)


@equal((3, 2), (0, -5), (-2, 2))
def largest_by_a_builtin(a, b):
    return max([a, b], key=abs), min([a, b, 1], key=abs)


@equal((1.7,), (-1.7,), (3.0,))
def int_of_a_float(a):
    return int(a), bool(a), int(a) // 2, a.is_integer(), float(int(a))


@equal(torch.tensor(3), torch.tensor(-2))
def item_kinds(t):
    n = t.item()
    f = t.float().item()
    b = (t > 0).item()
    return n, f, b, n + f, n + b, isinstance(b, int), isinstance(n, float)


@equal(torch.tensor(3.7), torch.tensor(-2.2))
def int_of_a_tensor(t):
    return int(t), float(t), bool(t), round(t.item(), 1), int(t) + 0.5


@equal(torch.tensor([1, 2, 3]), torch.tensor([250, 7, 1]))
def small_integers_wrap(t):
    u = t.to(torch.uint8)
    return u + 10, u * 2, u - 5, -u, u.sum()


@equal((torch.tensor([1, 2]), 2.5), (torch.tensor([3, 4]), 2), (torch.tensor([3, 4]), True))
def promotion_by_a_number(t, n):
    return t + n, t * n, t / n, t // n, n - t, t ** n


@equal((torch.tensor([1.0, 2.0], dtype=torch.float16), 3), (torch.tensor([7.0]), 1))
def promotion_by_python_ints(t, n):
    return t + n, t * 1.5, (t > n) + 1, t + torch.tensor(2.0, dtype=torch.float64)


@equal((torch.tensor([7, -7]), 2), (torch.tensor([7, -7]), -2))
def tensor_floor_and_modulo(t, n):
    return t // n, t % n, torch.fmod(t, n), torch.remainder(t, n), n // t, n % t


@equal((torch.tensor([7, -7]),), (torch.tensor([0, 3]),))
def integer_division_by_zero_of_tensors(t):
    return 6.0 / t, t / 0


@equal((torch.tensor([7, -7]), 0), (torch.tensor([7, -7]), 3))
def integer_floor_division_by_zero(t, n):
    return t // n


@equal((3, 4), (0, 0), (-3, 4))
def complex_numbers(a, b):
    z = complex(a, b)
    return z, abs(z), z.real, z.imag, z.conjugate(), z * z, cmath.sqrt(z), z == a


@equal((ONE, 2), (FIVE, 3))
def len_is_an_int(x, n):
    k = len(x) // n
    return k, len(x) / n, x[:k], (len(x) + n) % 3, len(x) * 1.0, -len(x) // 2


@equal(ONE, FIVE)
def sizes_as_numbers(x):
    h = x.shape[0]
    return h ** 0.5, math.sqrt(h), h ** -1, h / 2, int(h / 2), round(h / 2), h // -2, ~h


@equal(ONE, FIVE)
def sum_of_sizes(x):
    return sum(x.shape), math.prod(x.shape), max(x.shape), x.numel() * 2 ** 62


@equal((3,), (10,))
def bit_methods(n):
    return n.bit_length(), n.bit_count(), (n).to_bytes(2, "big"), n.real, n.numerator


@equal((0.1, 3), (2.5, 0))
def float_methods(a, n):
    return a.hex(), a.as_integer_ratio(), math.ldexp(a, n), math.frexp(a), math.modf(a)


@equal((ONE, 3), (FIVE, 7))
def fractions_of_numbers(x, n):
    return x * float(fractions.Fraction(1, 3) + fractions.Fraction(1, 6))


@equal((ONE, 3), (FIVE, 7))
def decimals(x, n):
    return x * float(decimal.Decimal("0.1") + decimal.Decimal("0.2"))


@equal(("12", "3.5"), ("-7", "1e3"), ("0", "nan"))
def numbers_of_texts(a, b):
    return int(a), float(b), int(a, 16), a * 2


@equal((5, 2), (9, 4))
def gcd_and_comb(a, b):
    return math.gcd(a, b), math.comb(a, b), math.isqrt(a), math.factorial(b), math.lcm(a, b)


@refused((5,), (9,))
def range_of_a_number(n):
    r = range(0, n, 2)  # refuse
    return len(r), r[-1], list(r), n in r, sum(r), r.index(4)


@equal((3, 3), (3, 4), (257, 257), (-6, -6))
def identity_of_numbers(a, b):
    return a == b, a is None, (a, b) == (b, a)


@equal((1e308,), (1.0,))
def float_overflow(a):
    return a * 10, a * 10 - a * 10, a / 1e-10, -a * 10


@equal((1e308,), (1.0,))
def float_power_overflow(a):
    return a ** 2


@equal((10 ** 400,), (3,))
def large_int_to_float(n):
    return n / 7


@equal((5, 3), (-5, 3), (2 ** 70, 3))
def bit_operators(a, b):
    return a & b, a | b, a ^ b, ~a, a << b, a >> b


@equal((2, 10, 7), (3, -1, 11))
def modular_power(a, b, c):
    return pow(a, b, c)


@equal((1.5, 2), (3, 2.5))
def augmented_changes_the_kind(a, b):
    a += b
    a *= 2
    a //= 3
    b /= 1
    b **= 2
    return a, b


@equal((3,), (8,))
def number_changes_kind_in_a_branch(n):
    if n > 5:
        k = n / 2
    else:
        k = float(n)
    return k, k * 2


@equal((3,), (8,))
def int_or_float_by_data(n):
    if n > 5:
        k = n / 2
    else:
        k = n
    return k


@equal((3,), (8,))
def kind_changes_in_a_loop(n):
    k = 1
    while k < n:
        k = k * 1.5
    return k


@equal((0,), (3,))
def kind_depends_on_the_rounds(n):
    k = 1
    for _ in range(n):
        k = k / 2
    return k


@equal((7,), (100,))
def digits(n):
    total = 0
    while n:
        n, d = divmod(n, 10)
        total += d
    return total


@equal((3, 4.0), (0, 0.0))
def truth_of_numbers(a, b):
    return a or "zero", b and "some", not b, bool(a) + bool(b), a if b else -1
