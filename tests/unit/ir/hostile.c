/* hostile.c - calls that once crashed, or gave what they should have refused: found by prop_ops. */
#include "check.h"

#include <cfx/embed/tensor.h>
#include <cfx/runtime.h>
#include <math.h>
#include <stdint.h>

static cfx_runtime *rt;
static cfx_error err;

static cfx_datum filled(cfx_dtype dtype, const int64_t *sizes, size_t ndim, cfx_datum value)
{
    cfx_tensor *t = cfx_tensor_new(dtype, sizes, ndim, NULL, NULL);
    for (int64_t i = 0; t && i < cfx_tensor_numel(t); i++)
        cfx_datum_store(value, dtype,
                        (char *)cfx_tensor_data(t) + (size_t)i * cfx_dtype_size(dtype));
    return cfx_datum_tensor(t);
}

static cfx_datum list(const int64_t *numbers, size_t n)
{
    cfx_datum items[8];
    for (size_t i = 0; i < n; i++)
        items[i] = cfx_datum_int(numbers[i]);
    return cfx_datum_seq(CFX_DATUM_LIST, items, n, NULL, NULL);
}

/* Calls `op`, releases the arguments. */
static cfx_datum call(cfx_operator op, cfx_datum *args, size_t n)
{
    err = (cfx_error){0};
    rt = rt ? rt : cfx_runtime_new(NULL, NULL);
    cfx_datum result = cfx_operator_run(rt, op, args, n, &err);
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(args[i]);
    return result;
}
#define CALL(op, ...)                                                                \
    call(CFX_OPID_##op, (cfx_datum[]){__VA_ARGS__},                                  \
         sizeof((cfx_datum[]){__VA_ARGS__}) / sizeof(cfx_datum))
/* The call fails so. */
#define REFUSED(status_, ...) (CALL(__VA_ARGS__).kind == CFX_DATUM_INVALID && err.status == status_)

#define SIZES(...) (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / 8
#define ONES(dtype, ...) filled(CFX_DTYPE_##dtype, SIZES(__VA_ARGS__), cfx_datum_int(1))
#define MISSING cfx_datum_scalar(CFX_DATUM_INVALID, 0)

TEST(memory_formats_are_checked)
{
    cfx_datum beyond = cfx_datum_scalar(CFX_DATUM_MEMORY_FORMAT, CFX_MEMORY_FORMAT_COUNT);
    CHECK(REFUSED(CFX_E_TYPE, clone, ONES(FLOAT32, 2, 2), beyond));
    CHECK(REFUSED(CFX_E_TYPE, cast_int, ONES(FLOAT32, 2), cfx_datum_float(2)));
    CHECK(REFUSED(CFX_E_TYPE, empty_like, ONES(FLOAT32, 2), MISSING, MISSING, MISSING, MISSING,
                  cfx_datum_bool(true)));
}

TEST(a_mask_may_be_spread_over_nothing)
{
    cfx_datum y = CALL(masked_select, filled(CFX_DTYPE_FLOAT32, SIZES(0, 3), cfx_datum_int(0)),
                       ONES(BOOL, 1, 3));
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK_INT_EQ(0, cfx_tensor_numel(y.as.tensor));
    cfx_datum_release(y);
}

TEST(max_unpool2d_refuses_complex_numbers)
{
    CHECK(REFUSED(CFX_E_UNSUPPORTED, max_unpool2d, ONES(COMPLEX64, 1, 1, 2, 2),
                  ONES(INT64, 1, 1, 2, 2), list(SIZES(4, 4))));
}

TEST(means_of_integers_wrap)
{
    cfx_datum y = CALL(avg_pool2d,
                       filled(CFX_DTYPE_INT64, SIZES(1, 1, 2, 2), cfx_datum_int(INT64_MAX)),
                       list(SIZES(2, 2)), MISSING, MISSING, MISSING, MISSING, cfx_datum_int(-1));
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK_INT_EQ(4, *(const int64_t *)cfx_tensor_data(y.as.tensor));
    cfx_datum_release(y);
    y = CALL(avg_pool2d, filled(CFX_DTYPE_INT64, SIZES(1, 1, 1, 1), cfx_datum_int(INT64_MIN)),
             list(SIZES(1, 1)), MISSING, MISSING, MISSING, MISSING, cfx_datum_int(-1));
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK(*(const int64_t *)cfx_tensor_data(y.as.tensor) == INT64_MIN);
    cfx_datum_release(y);
}

TEST(the_smallest_numbers_are_no_symbols)
{
    CHECK(REFUSED(CFX_E_INDEX, narrow, ONES(FLOAT32, 4), cfx_datum_int(0),
                  cfx_datum_int(INT64_MIN + 1), cfx_datum_int(3)));
    CHECK(REFUSED(CFX_E_SHAPE, zeros, list(SIZES(2, INT64_MIN))));
    cfx_datum y = CALL(slice, ONES(FLOAT32, 4), cfx_datum_int(0), cfx_datum_int(INT64_MIN),
                       cfx_datum_int(INT64_MAX));
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK_INT_EQ(4, cfx_tensor_numel(y.as.tensor));
    cfx_datum_release(y);
}

TEST(what_is_missing_is_named)
{
    CHECK(REFUSED(CFX_E_TYPE, sym_ite, cfx_datum_bool(false), cfx_datum_int(1)));
    CHECK_STR_EQ("sym_ite(False, 1): missing argument 'f'", err.message);
}

TEST(a_number_is_no_tensor_of_several)
{
    CHECK(REFUSED(CFX_E_TYPE, leaky_relu, ONES(FLOAT32, 3), ONES(FLOAT32, 3)));
    cfx_datum y = CALL(clamp, ONES(FLOAT32, 3), ONES(FLOAT32, 3));
    CHECK(y.kind == CFX_DATUM_TENSOR);
    cfx_datum_release(y);
}

TEST(repeats_must_give_the_size_that_is_told)
{
    CHECK(REFUSED(CFX_E_SHAPE, repeat_interleave, ONES(FLOAT32, 3), cfx_datum_int(2),
                  cfx_datum_int(0), cfx_datum_int(5)));
}

TEST(a_convolution_of_no_channels_is_its_bias)
{
    cfx_datum y = CALL(conv_transpose2d, ONES(FLOAT32, 1, 0, 3, 3), ONES(FLOAT32, 0, 2, 1, 1),
                       ONES(FLOAT32, 2));
    CHECK(y.kind == CFX_DATUM_TENSOR || err.message[0]);
    cfx_datum_release(y);
}

TEST(targets_must_be_as_many_as_losses)
{
    CHECK(REFUSED(CFX_E_SHAPE, cosine_embedding_loss, ONES(FLOAT32, 3, 4), ONES(FLOAT32, 3, 4),
                  ONES(INT64, 2)));
    cfx_datum y = CALL(cosine_embedding_loss, ONES(FLOAT32, 1, 4), ONES(FLOAT32, 1, 4),
                       ONES(INT64, 3), MISSING, cfx_datum_int(0));
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK_INT_EQ(3, cfx_tensor_numel(y.as.tensor));
    CHECK(((const float *)cfx_tensor_data(y.as.tensor))[2] < 1e-6f);
    cfx_datum_release(y);
}

TEST(distances_of_several_types_are_of_the_widest)
{
    cfx_datum y = CALL(triplet_margin_loss, ONES(INT8, 2, 3), ONES(BFLOAT16, 2, 3),
                       ONES(INT8, 2, 3));
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK_INT_EQ(CFX_DTYPE_FLOAT32, cfx_tensor_dtype(y.as.tensor));
    cfx_datum_release(y);
}

TEST(a_dilation_may_be_of_any_size)
{
    const int64_t far = INT64_MAX - 1;
    cfx_datum y = CALL(max_pool2d, ONES(INT64, 1, 1, 3, 3), list(SIZES(1, 1)), MISSING, MISSING,
                       list(SIZES(far, far)), MISSING, cfx_datum_bool(true));
    CHECK(y.kind == CFX_DATUM_TUPLE || err.message[0]);
    cfx_datum_release(y);
}

TEST(random_numbers_are_not_complex)
{
    CHECK(REFUSED(CFX_E_UNSUPPORTED, random_, ONES(COMPLEX64, 3), cfx_datum_int(0),
                  cfx_datum_int(5)));
}

TEST(strides_that_overflow_match_nothing)
{
    CHECK(REFUSED(CFX_E_SHAPE, _assert_tensor_metadata, ONES(FLOAT64, 2, 2), MISSING,
                  list(SIZES((int64_t)1 << 62, 1))));
}

TEST(resizing_takes_any_scale)
{
    const double scales[] = {1e-300, 1e300, 1e-20, -1e20};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        cfx_datum y = CALL(upsample_bicubic2d, ONES(FLOAT32, 1, 1, 3, 3), list(SIZES(4, 4)),
                           cfx_datum_bool(false), MISSING, cfx_datum_float(scales[i]),
                           cfx_datum_float(scales[i]));
        CHECK(y.kind == CFX_DATUM_TENSOR || err.message[0]);
        cfx_datum_release(y);
    }
    cfx_runtime_free(rt);
    rt = NULL;
}

TEST(a_text_is_no_number)
{
#define TEXT(s) cfx_datum_from_text(CFX_DATUM_STR, s, sizeof s - 1, NULL, NULL)
    CHECK(REFUSED(CFX_E_TYPE, sum, ONES(FLOAT32, 2, 2), TEXT("a")));
    CHECK(REFUSED(CFX_E_TYPE, diagonal, ONES(FLOAT32, 2, 2), TEXT("a")));
    CHECK_STR_EQ("diagonal(float32[2, 2]): argument 'offset' must be int, not str", err.message);
    CHECK(REFUSED(CFX_E_TYPE, conv_transpose1d, ONES(FLOAT32, 1, 1, 4), ONES(FLOAT32, 1, 1, 3),
                  cfx_datum_none(), cfx_datum_int(1), TEXT("same")));
    cfx_datum items[] = {TEXT("a")};
    cfx_datum texts = cfx_datum_seq(CFX_DATUM_LIST, items, 1, NULL, NULL);
    cfx_datum_release(items[0]);
    CHECK(REFUSED(CFX_E_TYPE, zeros, texts));
    cfx_datum y = CALL(conv1d, ONES(FLOAT32, 1, 1, 4), ONES(FLOAT32, 1, 1, 3), cfx_datum_none(),
                       cfx_datum_int(1), TEXT("same"));
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK_INT_EQ(4, cfx_tensor_numel(y.as.tensor));
    cfx_datum_release(y);
    y = CALL(l1_loss, ONES(FLOAT32, 2), ONES(FLOAT32, 2), TEXT("none"));
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK_INT_EQ(2, cfx_tensor_numel(y.as.tensor));
    cfx_datum_release(y);
#undef TEXT
}

TEST(remainders_at_the_end_of_what_fits)
{
    CHECK_INT_EQ(1, CALL(remainder, cfx_datum_int(INT64_MIN), cfx_datum_int(3)).as.i);
    CHECK_INT_EQ(0, CALL(remainder, cfx_datum_int(INT64_MIN), cfx_datum_int(-1)).as.i);
    CHECK_INT_EQ(-1, CALL(remainder, cfx_datum_int(5), cfx_datum_int(-3)).as.i);
    CHECK_INT_EQ(INT64_MAX - 1,
                 CALL(remainder, cfx_datum_int(-1), cfx_datum_int(INT64_MAX)).as.i);
}

/* Complex numbers 24 bytes apart: the part of an array of structs. */
static cfx_datum spaced(double *memory, int64_t n)
{
    for (int64_t i = 0; i < 3 * n; i++)
        memory[i] = i % 3 == 0;
    return cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_COMPLEX128, (int64_t[]){1, 1, n},
                                                   (int64_t[]){24 * n, 24 * n, 24}, 3, memory,
                                                   false, NULL, NULL, NULL, NULL));
}

TEST(strides_need_not_be_whole_elements)
{
    enum { N = 400 };
    static double memory[3 * N];
    static double weight[3 * 3];
    cfx_datum index = filled(CFX_DTYPE_INT64, SIZES(1, 1, N), cfx_datum_int(0));
    for (int64_t i = 0; i < N; i++)
        ((int64_t *)cfx_tensor_data(index.as.tensor))[i] = i;
    cfx_datum mean = cfx_datum_from_text(CFX_DATUM_STR, "mean", 4, NULL, NULL);
    cfx_datum y = CALL(scatter_reduce_, spaced(memory, N), cfx_datum_int(2), index,
                       filled(CFX_DTYPE_COMPLEX128, SIZES(1, 1, N), cfx_datum_int(4)), mean,
                       cfx_datum_bool(false));
    CHECK_STR_EQ("", err.message);
    cfx_datum_release(y);
    CHECK(memory[0] == 4 && memory[2] == 0 && memory[3 * N - 3] == 4 && memory[3 * N - 1] == 0);
    y = CALL(conv1d, spaced(memory, N), spaced(weight, 3));
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    const double *sums = cfx_tensor_data(y.as.tensor);
    CHECK(sums[0] == 3 && sums[1] == 0 && sums[2 * (N - 3)] == 3);
    cfx_datum_release(y);
}

/* Not even by way of another: it could be neither printed nor freed. */
TEST(a_list_never_holds_itself)
{
    const cfx_datum zero = cfx_datum_int(0);
    rt = rt ? rt : cfx_runtime_new(NULL, NULL);
    cfx_datum x = cfx_datum_seq(CFX_DATUM_LIST, &zero, 1, NULL, NULL);
    cfx_datum tuple = cfx_datum_seq(CFX_DATUM_TUPLE, &x, 1, NULL, NULL);
    CHECK(REFUSED(CFX_E_VALUE, setitem, cfx_datum_retain(x), zero, cfx_datum_retain(x)));
    CHECK(REFUSED(CFX_E_VALUE, setitem, cfx_datum_retain(x), zero, tuple));
    cfx_datum pair = cfx_datum_seq(CFX_DATUM_TUPLE, (cfx_datum[]){zero, zero}, 2, NULL, NULL);
    cfx_datum done = CALL(setitem, cfx_datum_retain(x), zero, pair);
    CHECK(done.kind == CFX_DATUM_NONE);
    size_t n;
    CHECK_INT_EQ(CFX_DATUM_TUPLE, cfx_datum_items(x, &n)[0].kind);
    cfx_datum_release(x);
}

static cfx_datum list_of(cfx_datum a, cfx_datum b)
{
    const cfx_datum items[] = {a, b};
    cfx_datum made = cfx_datum_seq(CFX_DATUM_LIST, items, 2, NULL, NULL);
    cfx_datum_release(a);
    cfx_datum_release(b);
    return made;
}

/* l = [None]; l[0] = [1]: each list can take others, so long as they do not nest endlessly. */
TEST(a_list_takes_a_list)
{
    const cfx_datum zero = cfx_datum_int(0);
    rt = rt ? rt : cfx_runtime_new(NULL, NULL);
    cfx_datum first = list_of(zero, zero);
    cfx_datum inner = cfx_datum_retain(first);
    int deep = 1;
    for (; deep < 1000; deep++) {  /* [[[...]]], from the outside in */
        cfx_datum next = list_of(zero, zero);
        cfx_error why = {0};
        const cfx_datum args[] = {inner, zero, next};
        cfx_datum done = cfx_operator_run(rt, CFX_OPID_setitem, args, 3, &why);
        cfx_datum_release(inner);
        inner = next;
        if (done.kind == CFX_DATUM_INVALID) {
            CHECK_INT_EQ(CFX_E_LIMIT, why.status);
            break;
        }
    }
    CHECK(deep >= 32 && deep < 1000);
    /* What failed has changed nothing: it goes where there is room. */
    CHECK(CALL(setitem, cfx_datum_retain(first), zero, cfx_datum_retain(inner)).kind ==
          CFX_DATUM_NONE);
    CHECK(CALL(setitem, cfx_datum_retain(inner), zero, list_of(zero, zero)).kind ==
          CFX_DATUM_NONE);
    CHECK(REFUSED(CFX_E_VALUE, setitem, cfx_datum_retain(inner), zero, cfx_datum_retain(first)));
    cfx_datum_release(inner);
    cfx_datum_release(first);
}

TEST(lists_in_many_places_are_looked_at_once)
{
    const cfx_datum zero = cfx_datum_int(0);
    rt = rt ? rt : cfx_runtime_new(NULL, NULL);
    cfx_datum many = list_of(zero, zero);
    cfx_datum pairs = cfx_datum_seq(CFX_DATUM_TUPLE, &zero, 1, NULL, NULL);
    for (int i = 0; i < 60; i++) {  /* 2^60 ways to the innermost */
        const cfx_datum both[] = {pairs, pairs};
        many = list_of(many, cfx_datum_retain(many));
        cfx_datum next = cfx_datum_seq(CFX_DATUM_TUPLE, both, 2, NULL, NULL);
        cfx_datum_release(pairs);
        pairs = next;
    }
    cfx_datum taker = list_of(zero, zero);
    CHECK(CALL(setitem, cfx_datum_retain(taker), zero, cfx_datum_retain(many)).kind ==
          CFX_DATUM_NONE);
    CHECK(REFUSED(CFX_E_VALUE, setitem, many, zero, cfx_datum_retain(taker)));
    cfx_datum small = list_of(zero, zero);
    for (int i = 0; i < 40; i++) {  /* then little room is left */
        cfx_datum outer = list_of(zero, zero);
        CHECK(CALL(setitem, cfx_datum_retain(outer), zero, cfx_datum_retain(small)).kind ==
              CFX_DATUM_NONE);
        cfx_datum_release(small);
        small = outer;
    }
    size_t n;
    cfx_datum at = small;
    for (int i = 0; i < 30; i++)
        at = cfx_datum_items(at, &n)[0];
    CHECK(REFUSED(CFX_E_LIMIT, setitem, cfx_datum_retain(at), zero, taker));
    CHECK(REFUSED(CFX_E_LIMIT, setitem, cfx_datum_retain(at), zero, pairs));
    cfx_datum_release(small);
}

/* A list that a graph has as a constant is a new one each time: who gets it may change it. */
TEST(what_a_run_changes_is_not_there_for_the_next)
{
    static const char text[] = "graph():\n"
                               "  %x = placeholder[target=x]()\n"
                               "  %all = call_function[target=cfx.ops.list]([[1, 2], {\"a\": 3}])\n"
                               "  %l = call_function[target=cfx.ops.getitem](%all, 0)\n"
                               "  %old = call_function[target=cfx.ops.getitem](%l, 0)\n"
                               "  %set = call_function[target=cfx.ops.setitem](%l, 0, [%x, [4]])\n"
                               "  %d = call_function[target=cfx.ops.getitem](%all, 1)\n"
                               "  %was = call_function[target=cfx.ops.getitem](%d, \"a\")\n"
                               "  %put = call_function[target=cfx.ops.setitem](%d, \"a\", %l)\n"
                               "  output([%old, %was, [5, 6]])\n";
    const cfx_datum x = cfx_datum_int(9);
    const cfx_datum zero = cfx_datum_int(0);
    rt = rt ? rt : cfx_runtime_new(NULL, NULL);
    cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, NULL, NULL, NULL);
    cfx_program *p = g ? cfx_program_new(g, NULL, NULL, NULL) : NULL;
    for (int i = 0; p && i < 2; i++) {
        size_t n;
        size_t m;
        cfx_datum got = cfx_program_run(p, rt, &x, 1, NULL);
        REQUIRE(got.kind == CFX_DATUM_LIST);
        const cfx_datum *items = cfx_datum_items(got, &n);
        CHECK_INT_EQ(1, items[0].as.i);
        CHECK_INT_EQ(3, items[1].as.i);
        CHECK_INT_EQ(5, cfx_datum_items(items[2], &m)[0].as.i);
        CALL(setitem, cfx_datum_retain(items[2]), zero, x);
        cfx_datum_release(got);
    }
    CHECK(p != NULL);
    cfx_program_free(p);
    cfx_graph_release(g);
}

TEST(an_expanded_tensor_is_not_written_to)
{
    cfx_datum x = CALL(expand, ONES(FLOAT32, 3), list(SIZES(4, 3)));
    cfx_datum all = cfx_datum_scalar(CFX_DATUM_ELLIPSIS, 0);
    CHECK(REFUSED(CFX_E_SHAPE, setitem, cfx_datum_retain(x), all, cfx_datum_int(2)));
    cfx_datum done = CALL(setitem, cfx_datum_retain(x), cfx_datum_int(0), cfx_datum_int(2));
    CHECK(done.kind == CFX_DATUM_NONE);
    CHECK(((const float *)cfx_tensor_data(x.as.tensor))[2] == 2);
    cfx_datum_release(x);
}

TEST(nan_to_num_leaves_finite_numbers)
{
    const double given[] = {5, -5, INFINITY, -INFINITY, NAN};
    const double want[] = {5, -5, 1, -1, 0};
    static const cfx_dtype dtypes[] = {CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT64, CFX_DTYPE_COMPLEX128};
    for (size_t k = 0; k < 3; k++) {
        cfx_datum x = filled(dtypes[k], SIZES(5), cfx_datum_int(0));
        for (size_t i = 0; i < 5; i++)
            cfx_datum_store(cfx_datum_float(given[i]), dtypes[k],
                            (char *)cfx_tensor_data(x.as.tensor) + i * cfx_dtype_size(dtypes[k]));
        cfx_datum y = CALL(nan_to_num, x, cfx_datum_float(0), cfx_datum_float(1),
                           cfx_datum_float(-1));
        REQUIRE(y.kind == CFX_DATUM_TENSOR);
        for (size_t i = 0; i < 5; i++) {
            const char *at = (char *)cfx_tensor_data(y.as.tensor) + i * cfx_dtype_size(dtypes[k]);
            CHECK(want[i] == (k == 0 ? *(const float *)(const void *)at
                                     : *(const double *)(const void *)at));
        }
        cfx_datum_release(y);
    }
}

/* As many taps as do not fit in 64 bits would be none. */
TEST(windows_of_any_size)
{
    const int64_t wide = INT64_C(1) << 32;
    CHECK(REFUSED(CFX_E_SHAPE, col2im, ONES(FLOAT32, 1, 4), list(SIZES(1, 1)),
                  list(SIZES(wide, wide)), list(SIZES(1, 1)), list(SIZES(wide / 2, wide / 2)),
                  list(SIZES(1, 1))));
    CHECK(REFUSED(CFX_E_SHAPE, im2col, ONES(FLOAT32, 1, 1, 1), list(SIZES(wide, wide)),
                  list(SIZES(1, 1)), list(SIZES(wide / 2, wide / 2)), list(SIZES(1, 1))));
}
