/* builtins.c - Python's functions of numbers and lists: values, messages, memory that runs out.
 * tests/python/test_python_rows.py compares them with Python. */
#include "runtime/runtime_impl.h"

#include "test_alloc.h"

static cfx_datum run(const cfx_allocator *a, cfx_operator op, const cfx_datum *args, size_t n,
                     cfx_error *err)
{
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.allocator = a, .threads = 1}, err);
    cfx_datum result = rt ? cfx_operator_run(rt, op, args, n, err) : cfx_datum_invalid();
    cfx_runtime_free(rt);
    return result;
}

/* The row of a list of two numbers. */
static cfx_datum of_two(const cfx_allocator *a, cfx_operator op, cfx_datum x, cfx_datum y,
                        cfx_error *err)
{
    const cfx_datum both[] = {x, y};
    cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, both, 2, a, err);
    cfx_datum result = list.kind ? run(a, op, &list, 1, err) : list;
    if (list.kind)
        cfx_datum_release(list);
    return result;
}

TEST(values)
{
    cfx_error err = {0};
    cfx_datum d = of_two(NULL, CFX_OPID_builtin_min, cfx_datum_int(3), cfx_datum_float(2.5), &err);
    CHECK(d.kind == CFX_DATUM_FLOAT && d.as.f == 2.5);
    d = of_two(NULL, CFX_OPID_builtin_max, cfx_datum_int(3), cfx_datum_bool(true), &err);
    CHECK(d.kind == CFX_DATUM_INT && d.as.i == 3);
    d = of_two(NULL, CFX_OPID_builtin_sum, cfx_datum_int(3), cfx_datum_int(4), &err);
    CHECK(d.kind == CFX_DATUM_INT && d.as.i == 7);
    d = of_two(NULL, CFX_OPID_builtin_any, cfx_datum_int(0), cfx_datum_none(), &err);
    CHECK(d.kind == CFX_DATUM_BOOL && !d.as.b);
    d = of_two(NULL, CFX_OPID_math_gcd, cfx_datum_int(INT64_MIN), cfx_datum_int(48), &err);
    CHECK(d.kind == CFX_DATUM_INT && d.as.i == 16);
    CHECK_INT_EQ(CFX_OK, err.status);
}

/* Half goes to the even one; a decimal is rounded as what the float is exactly. */
TEST(rounding)
{
    static const struct { double x; int64_t digits; double y; } cases[] = {
        {2.675, 2, 2.67}, {0.125, 2, 0.12}, {-1250, -2, -1200}, {1e300, 5, 1e300}, {1.5, 400, 1.5},
        {1.5, -400, 0},
    };
    cfx_error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const cfx_datum args[] = {cfx_datum_float(cases[i].x), cfx_datum_int(cases[i].digits)};
        cfx_datum d = run(NULL, CFX_OPID_builtin_round, args, 2, &err);
        CHECK(d.kind == CFX_DATUM_FLOAT && d.as.f == cases[i].y);
    }
    const cfx_datum whole[] = {cfx_datum_int(-25), cfx_datum_int(-1)};
    cfx_datum d = run(NULL, CFX_OPID_builtin_round, whole, 2, &err);
    CHECK(d.kind == CFX_DATUM_INT && d.as.i == -20);
    const cfx_datum far[] = {cfx_datum_int(7), cfx_datum_int(-50)};
    d = run(NULL, CFX_OPID_builtin_round, far, 2, &err);
    CHECK(d.kind == CFX_DATUM_INT && d.as.i == 0);
}

static void expect_failure(cfx_operator op, cfx_datum x, const char *words)
{
    cfx_error err = {0};
    cfx_datum d = run(NULL, op, &x, 1, &err);
    CHECK(d.kind == CFX_DATUM_INVALID && err.status != CFX_OK);
    if (!CHECK(strstr(err.message, words)))
        printf("    %s\n", err.message);
}

TEST(messages)
{
    cfx_error err = {0};
    cfx_datum none = cfx_datum_seq(CFX_DATUM_LIST, NULL, 0, NULL, &err);
    cfx_datum inner = cfx_datum_seq(CFX_DATUM_LIST, &none, 1, NULL, &err);
    expect_failure(CFX_OPID_builtin_sum, cfx_datum_int(3), "'int' object is not iterable");
    expect_failure(CFX_OPID_builtin_max, inner, "max() arg is an empty sequence");
    expect_failure(CFX_OPID_builtin_min, none, "expected at least 1 argument");
    expect_failure(CFX_OPID_builtin_round, cfx_datum_none(), "__round__");
    expect_failure(CFX_OPID_builtin_round, cfx_datum_float(1e300), "to integer");
    expect_failure(CFX_OPID_math_isqrt, cfx_datum_int(-1), "nonnegative");
    expect_failure(CFX_OPID_math_isqrt, cfx_datum_float(1), "as an integer");
    expect_failure(CFX_OPID_math_exp, cfx_datum_float(1000), "math range error");
    expect_failure(CFX_OPID_math_acos, cfx_datum_float(2), "math domain error");
    cfx_datum_release(inner);
    cfx_datum_release(none);
}

/* Of a tensor that has no elements yet, nobody can say that it lies outside. */
TEST(what_is_not_known_yet_is_not_refused)
{
    static const cfx_operator ops[] = {CFX_OPID_math_atanh, CFX_OPID_math_acosh, CFX_OPID_math_exp,
                                       CFX_OPID_math_log1p, CFX_OPID_math_sqrt};
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_datum x = cfx_datum_tensor(cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, NULL, 0, NULL, &err));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const cfx_datum d = cfx_operator_infer(rt, NULL, ops[i], &x, 1, &err);
        CHECK_STR_EQ("", err.message);
        CHECK(d.kind == CFX_DATUM_FLOAT && d.symbolic);
    }
    cfx_datum_release(x);
    cfx_runtime_free(rt);
}

/* The order of sizes that nobody knows is not known, and so is no item. */
TEST(sorted_sizes_are_unknown)
{
    cfx_error err = {0};
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    const cfx_datum both[] = {cfx_datum_parse(dims, "N", 1, NULL, &err), cfx_datum_int(3)};
    cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, both, 2, NULL, &err);
    size_t n;
    CHECK_STR_EQ("", err.message);
    cfx_datum sorted = cfx_operator_infer(rt, dims, CFX_OPID_builtin_sorted, &list, 1, &err);
    const cfx_datum *items = cfx_datum_items(sorted, &n);
    CHECK_STR_EQ("", err.message);
    if (CHECK(items && n == 2))
        CHECK(items[0].kind == CFX_DATUM_INT && items[0].symbolic && items[1].symbolic);
    cfx_datum_release(sorted);
    cfx_datum_release(list);
    cfx_runtime_free(rt);
    cfx_dims_free(dims);
}

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    (void)arg;
    cfx_datum d = of_two(a, CFX_OPID_builtin_sum, cfx_datum_int(1), cfx_datum_float(2), &err);
    if (d.kind)
        cfx_datum_release(d);
    const cfx_datum pair[] = {cfx_datum_int(-7), cfx_datum_int(2)};
    d = err.status == CFX_OK ? run(a, CFX_OPID_builtin_divmod, pair, 2, &err) : d;
    if (d.kind == CFX_DATUM_TUPLE)
        cfx_datum_release(d);
    if (err.status == CFX_OK)
        d = of_two(a, CFX_OPID_builtin_sorted, cfx_datum_int(3), cfx_datum_float(2), &err);
    if (d.kind == CFX_DATUM_LIST)
        cfx_datum_release(d);
    const cfx_datum type = cfx_datum_dtype(CFX_DTYPE_FLOAT16);
    d = err.status == CFX_OK ? run(a, CFX_OPID_finfo, &type, 1, &err) : d;
    if (d.kind == CFX_DATUM_DICT)
        cfx_datum_release(d);
    return err.status;
}

TEST(out_of_memory) { CHECK(test_oom_sweep(sweep, NULL) > 3); }
