/* extreme.c - calls with numbers at the ends of their types, as a hostile graph has them: each is
 * computed or refused with a reason, and nothing is read or written that is not there (the build
 * with sanitizers sees it). What fuzz_run finds is kept here. */
#include <cfx/embed/tensor.h>
#include <cfx/graph.h>
#include <cfx/lower.h>
#include <cfx/runtime.h>

#include "check.h"

#include <stdlib.h>
#include <string.h>

/* A call on %x (float32[1, 1, 3, 3]: 0, 1, ...), %l (int64[4]: 0, 1, 2, 3), %e (float32[0, 3]) and
 * %s (5.0, without dimensions), and what it prints: a part of the result or of the message. */
typedef struct example {
    const char *call;
    const char *want;  /* NULL: any result or message */
} example;

#define HUGE "1152921504606846976"   /* 2^60 */
#define MOST "9223372036854775807"
#define LEAST "-9223372036854775808"

static const example examples[] = {
    /* Windows in the padding alone. */
    {"max_pool2d(%x, 2, 1, 1, 4)", "tensor([[[[-inf]]]])"},
    {"max_pool2d_with_indices(%x, 2, 1, 1, 4)", "tensor([[[[-inf]]]]) tensor([[[[12]]]])"},
    {"max_pool2d(%x, 2, 1, 25, 50)", "tensor([[[[-inf, -inf, -inf]"},
    {"max_pool2d_with_indices(%x, 2, 1, 25, 50)", "tensor([[[[100, 101, 102]"},
    {"max_pool1d(%rows, 2, 1, 2, 4)", "tensor([[[2., -inf, 0.]"},
    {"max_pool2d_with_indices(%bytes, 2, 1, 1, 4)", "tensor([[[[0]]]], dtype=torch.uint8)"},
    {"max_pool2d_with_indices(%shorts, 2, 1, 1, 4)", "tensor([[[[-32768]]]], dtype=torch.int16)"},
    /* Windows, steps and padding that no memory has. */
    {"max_pool2d(%x, " HUGE ")", "kernel_size is " HUGE "; it must be at most 2147483647"},
    {"max_pool2d(%x, 2, " HUGE ")", "stride is " HUGE},
    {"max_pool2d(%x, 2, 1, " HUGE ")", "padding is " HUGE},
    {"max_pool2d(%x, 2, 1, 0, " HUGE ")", "dilation is " HUGE},
    {"avg_pool2d(%x, 2147483647, 1, 1073741823)", NULL},
    {"avg_pool3d(%x, 2147483647, 1, 1073741823)", "64 bits cannot count the elements"},
    {"lp_pool2d(%x, 2.0, " MOST ")", "kernel_size is " MOST},
    {"adaptive_avg_pool2d(%x, " HUGE ")", "more bytes than memory can hold"},
    {"fractional_max_pool2d(%x, 2, 1, None, False, None)", NULL},
    {"fractional_max_pool2d(%x, 2, None, [])", "output_ratio must have 1 or 2 elements, not 0"},
    {"fractional_max_pool2d(%x, 2, [1, 1], None, False, %wild)", "between 0 and 1, but got -inf"},
    {"max_unpool2d(%x, %x, " MOST ")", NULL},
    {"conv2d(%x, %x, None, " HUGE ")", "stride is " HUGE},
    {"conv2d(%x, %x, None, 1, " HUGE ")", "padding is " HUGE},
    {"conv2d(%x, %x, None, 1, 0, " HUGE ")", "dilation is " HUGE},
    {"conv2d(%x, %x, None, 1, 0, 1, " HUGE ")", NULL},
    {"conv2d(%x, %x, None, 1, [2147483647, 2147483647], 2147483647)", "tensor([[[["},
    {"conv2d(%x, %x, None, [2147483647, 2147483647])", "tensor([[[[204.]]]])"},
    {"conv_transpose2d(%x, %x, None, " HUGE ")", "stride is " HUGE},
    {"conv_transpose2d(%x, %x, None, 1, " HUGE ")", "padding is " HUGE},
    {"conv_transpose2d(%x, %x, None, 1, 0, " HUGE ")", "output_padding is " HUGE},
    {"conv_transpose2d(%x, %x, None, 1, 0, 0, 1, " HUGE ")", "dilation is " HUGE},
    {"conv_transpose2d(%x, %x, None, 2147483647)", NULL},
    {"conv_transpose2d(%pixel, %pixel, None, 1000, 0, 999)", "tensor([[[[1., 0., 0., "},
    {"im2col(%x, 2, " HUGE ", 0, 1)", "dilation is " HUGE},
    {"im2col(%x, 2, 1, " HUGE ", 1)", "padding is " HUGE},
    {"im2col(%x, [2, 1], [2147483647, 1], [1073741823, 0], 1)", NULL},
    {"col2im(%x, " HUGE ", 2, 1, 0, 1)", "output_size is " HUGE},
    /* Lengths of transforms and windows. */
    {"fft_fft(%x, " HUGE ")", "more bytes than memory can hold"},
    {"fft_fft(%x, 0)", "Invalid number of data points (0) specified"},
    {"fft_fft(%x, " LEAST ")", NULL},
    {"fft_irfft(%x, " MOST ")", NULL},
    {"fft_rfft(%e, None, 0)", "Invalid number of data points (0) specified"},
    {"fft_rfft(%e)", "tensor([], size=(0, 2), dtype=torch.complex64)"},
    {"fft_fftn(%x, [" HUGE ", " HUGE "])", NULL},
    {"fft_fftn(%s)", "tensor(5.+0.j)"},
    {"_fft_c2r(%x, [3], 1, " MOST ")", NULL},
    {"_fft_c2c(%x, [0], " MOST ", True)", "Unsupported normalization type"},
    {"fft_fftshift(%l, " MOST ")", "Dimension out of range"},
    {"hann_window(" HUGE ")", "out of memory"},
    {"kaiser_window(" LEAST ")", NULL},
    /* Groups. */
    {"_grouped_mm(%e, %e)", "contraction dimension of mat_a and mat_b must match"},
    {"_grouped_mm(%x, %x)", "mat_a has to be 2 or 3d"},
    {"linalg_solve_triangular(%x, %e, True)", NULL},
    {"fill_diagonal(%e, " MOST ", True)", NULL},
    /* Padding, resizing, moving. */
    {"pad(%rows, [-1, 3], \"circular\")", "wrapping around more than once"},
    {"pad(%rows, [3, -1], \"circular\")", "wrapping around more than once"},
    {"pad(%rows, [-1, 2], \"circular\")", "tensor([[[1., 2., 1., 2.]"},
    {"pad(%rows, [" MOST ", " MOST "])", NULL},
    {"pad(%rows, [" LEAST ", " MOST "])", NULL},
    {"interpolate(%x, " HUGE ")", "more bytes than memory can hold"},
    {"interpolate(%x, None, 1e300)", "does not fit in 64 bits"},
    {"interpolate(%x, None, nan)", "does not fit in 64 bits"},
    {"upsample_nearest2d(%x, [2, 2], None, 1e-300, 1e300)", "tensor([[[["},
    {"upsample_nearest_exact2d(%x, [2, 2], None, 1e-300, nan)", "tensor([[[["},
    {"upsample_bicubic2d(%bytes, [2, 2], False, None, 1e-300, 1e300)", "tensor([[[["},
    {"upsample_bicubic2d_aa(%bytes, [2, 2], False, None, 1e-300, 3e-3)", "tensor([[[["},
    {"roll(%l, " LEAST ", 0)", "tensor([0, 1, 2, 3])"},
    {"roll(%l, [" MOST ", " MOST "], [0, 0])", "tensor([2, 3, 0, 1])"},
    {"pixel_shuffle(%nothing, 2147483647)", NULL},
    {"repeat(%l, [" HUGE "])", "more bytes than memory can hold"},
    {"repeat(%l, [" MOST ", 0])", NULL},
    {"tile(%e, [0, " MOST "])", NULL},
    {"expand(%s, [" MOST "])", "more bytes than memory can hold"},
    /* Views. */
    {"as_strided(%l, [2], [" HUGE "])", "a stride does not fit"},
    {"as_strided(%l, [1, 1], [288230376151711744, 288230376151711744], 3)", "tensor([[3]])"},
    {"as_strided(%l, [2], [288230376151711744])", "covers bytes"},
    {"as_strided(%l, [1], [1], " HUGE ")", "invalid storage offset"},
    {"as_strided(%l, [0, " HUGE "], [1, 1])", "more bytes than memory can hold"},
    {"slice(%l, 0, " LEAST ", " MOST ", " MOST ")", "tensor([0])"},
    {"slice(%l, 0, " MOST ", " LEAST ")", "tensor([], dtype=torch.int64)"},
    {"unflatten(%l, 0, [4294967296, 4294967296])", NULL},
    {"reshape(%l, [-1, " MOST "])", "invalid for input"},
    {"reshape(%e, [0, " MOST "])", NULL},
    {"unfold(%l, 0, 1, " MOST ")", "tensor([[0]])"},
    {"tril(%x, " MOST ")", "tensor([[[[0., 1., 2.]"},
    {"triu(%x, " LEAST ")", "tensor([[[[0., 1., 2.]"},
    {"diagonal(%x, " LEAST ", 2, 3)", "tensor([]"},
    {"diag_embed(%l, " MOST ")", NULL},
    {"squeeze_(%x)", "tensor([[0., 1., 2.]"},
    /* New tensors. */
    {"arange(" MOST ")", "more bytes than memory can hold"},
    {"arange_start(" LEAST ", " MOST ", 1)", "possible overflow"},
    {"arange_start(0.0, 1e300, 1.0)", "possible overflow"},
    {"linspace(0.0, 1.0, " MOST ")", "more bytes than memory can hold"},
    {"full([" HUGE ", " HUGE "], 1)", "more bytes than memory can hold"},
    {"full([2], 1e300, dtype=torch.int8)", "without overflow"},
    {"eye(" HUGE ", 0)", NULL},
    {"eye(" HUGE ")", "more bytes than memory can hold"},
    {"randint(" LEAST ", " MOST ", [2])", "tensor(["},
    {"multinomial(%rows, " MOST ", True)", NULL},
    /* Indices. */
    {"embedding(%table, %far)", "out of range"},
    {"getitem(%part, " LEAST ")", "out of bounds"},
    {"getitem(%part, slice(" LEAST ", " MOST ", None))", "tensor([1, 2])"},
    {"getitem(%part, (-4611686018427387905,))", "out of bounds"},
    {"gather(%l, 0, %far)", "out of bounds"},
    {"scatter(%l, 0, %far, 1)", "out of bounds"},
    {"index_select(%l, 0, %far)", "out of bounds"},
    {"index(%l, [%far])", "out of bounds"},
    {"take(%l, %far)", "out of range"},
    {"one_hot(%far)", NULL},
    {"one_hot(%l, " MOST ")", NULL},
    {"bincount(%l, None, " MOST ")", "more bytes than memory can hold"},
    {"bincount(%far)", "non-negative"},
    {"topk(%s, 0)", "tensor(5.) tensor(0)"},
    {"linalg_qr(%stack)", "size=(4503599627370496, 5, 0)"},
    {"relu_(%stack)", "size=(4503599627370496, 5, 0)"},
    {"cat([%stack, %stack])", "size=(9007199254740992, 5, 0)"},
    {"bmm(%stack, %stack)", NULL},
    {"sort(%wide)", "size=(1073741824, 0)"},
    {"cumsum(%wide, 1)", "size=(1073741824, 0)"},
    {"topk(%l, " MOST ")", "out of range"},
    /* Arithmetic of elements. */
    {"bitwise_left_shift(%l, " MOST ")", "tensor([0, 0, 0, 0])"},
    {"bitwise_right_shift(%far, 64)", NULL},
    {"div(%far, -1, rounding_mode=\"floor\")", NULL},
    {"remainder(%far, -1)", "tensor([0, 0, 0, 0])"},
    {"floor_divide(%l, 0)", NULL},
    {"cast_int(%wild)", NULL},
    {"cast_byte(%wild)", NULL},
    {"histc(%big, 4, 0, 0)", "tensor(["},
    {"histc(%x, " HUGE ", 0, 1)", NULL},
    {"round(%x, decimals=" MOST ")", NULL},
    {"diff(%l, 1000000007)", "tensor([], dtype=torch.int64)"},
    {"cumsum(%x, " MOST ")", "Dimension out of range"},
    {"ctc_loss(%rows, %l, [3], [" MOST "])", NULL},
    {"ctc_loss(%rows, %l, %pair, %pair)", "must be of size batch_size"},
    {"ctc_loss(%twice, %l, [1, 1], [" MOST ", " MOST "])", "does not match target_lengths"},
    {"tensor_split(%l, [" LEAST ", 1])", "tensor([1, 2, 3])"},
    {"tensor_split(%l, %far)", "tensor([0, 1, 2, 3])"},
    {"tensor_split(%l, [0.5])", "indices must be integers, not float"},
    {"tensor_split(%l, \"x\")", "takes a number, a list of numbers or a tensor"},
    {"lstm_cell(%one, [%four, %one], %gates, %wide4)", "must have the same size"},
    {"multi_head_attention_forward(%one, %one, %one, 1, 1, %in, None, None, None, False, 0.0, "
     "%head, %short)", "the projection weights do not match"},
    {"multi_head_attention_forward(%one, %one, %one, 1, 1, %in, None, None, %three, False, 0.0, "
     "%head, None)", "bias_k and bias_v must be given together"},
    {"group_norm(%bare, " HUGE ")", NULL},
    {"channel_shuffle(%bare, " HUGE ")", NULL},
    {"channel_shuffle(%empty, " MOST ")", "tensor([], "},
    {"cross_entropy(%endless, %endless)", "nan"},
    {"cross_entropy(%endless, %endless, None, 2)", "tensor(0.)"},
    {"cross_entropy(%bare, %bare)", "nan"},
    {"chunk(%e, " HUGE ")", NULL},
    {"conv1d(%bare, %bare, None, 1, 0, 1, " HUGE ")", NULL},
    {"rnn_tanh(%rows, %rows, [%l], True, " MOST ", 0.0, False, True, False)",
     "incorrect number of RNN parameters"},
};

static const char *const values =
    "graph():\n"
    "  %l = call_function[target=cfx.ops.arange](4)\n"
    "  %n = call_function[target=cfx.ops.arange](9.0)\n"
    "  %x = call_function[target=cfx.ops.reshape](%n, [1, 1, 3, 3])\n"
    "  %row = call_function[target=cfx.ops.slice](%x, 2, 0, 1)\n"
    "  %rows = call_function[target=cfx.ops.reshape](%row, [1, 1, 3])\n"
    "  %bytes = call_function[target=cfx.ops.cast_byte](%x)\n"
    "  %shorts = call_function[target=cfx.ops.cast_short](%x)\n"
    "  %pixel = call_function[target=cfx.ops.ones]([1, 1, 1, 1])\n"
    "  %table = call_function[target=cfx.ops.ones]([4, 2])\n"
    "  %e = call_function[target=cfx.ops.zeros]([0, 3])\n"
    "  %nothing = call_function[target=cfx.ops.zeros]([0, 3, 3])\n"
    "  %pair = call_function[target=cfx.ops.ones]([1, 1], dtype=torch.int64)\n"
    "  %twice = call_function[target=cfx.ops.zeros]([1, 2, 3])\n"
    "  %wide = call_function[target=cfx.ops.zeros]([1073741824, 0])\n"
    "  %stack = call_function[target=cfx.ops.zeros]([4503599627370496, 5, 0])\n"
    "  %part = call_function[target=cfx.ops.slice](%l, 0, 1, 3)\n"
    "  %one = call_function[target=cfx.ops.ones]([1, 1])\n"
    "  %four = call_function[target=cfx.ops.ones]([1, 4])\n"
    "  %gates = call_function[target=cfx.ops.ones]([16, 1])\n"
    "  %wide4 = call_function[target=cfx.ops.ones]([16, 4])\n"
    "  %in = call_function[target=cfx.ops.ones]([3, 1])\n"
    "  %head = call_function[target=cfx.ops.ones]([1000, 1])\n"
    "  %short = call_function[target=cfx.ops.ones]([1])\n"
    "  %three = call_function[target=cfx.ops.ones]([1, 1, 1])\n"
    "  %bare = call_function[target=cfx.ops.zeros]([2, 0, 3])\n"
    "  %empty = call_function[target=cfx.ops.zeros]([2, 0, 3, 3])\n"
    "  %endless = call_function[target=cfx.ops.zeros]([4, 0, 2199023255552])\n"
    "  %s = call_function[target=cfx.ops.full]([], 5.0)\n"
    "  %wild = call_function[target=cfx.ops.tensor]([[[nan, -inf]]])\n"
    "  %big = call_function[target=cfx.ops.tensor]([1e300, 1e300], dtype=torch.float64)\n"
    "  %far = call_function[target=cfx.ops.tensor]([" MOST ", " LEAST ", 0, -1])\n";

/* Refuses what only a hostile graph wants, so that the test needs little memory. */
static void *alloc_little(void *ctx, size_t size)
{
    (void)ctx;
    return size <= 1 << 26 ? malloc(size) : NULL;
}

static void free_little(void *ctx, void *block, size_t size)
{
    (void)ctx;
    (void)size;
    free(block);
}

static void show(cfx_datum d, cfx_buffer *out)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++) {
        show(items[i], out);
        cfx_buffer_append(out, " ", 1);
    }
    if (d.kind == CFX_DATUM_TENSOR && cfx_tensor_numel(d.as.tensor) < 1 << 20)
        cfx_tensor_print(d.as.tensor, cfx_buffer_sink(out), NULL);
}

/* The result of the call as text, or the message. */
static void run_call(const char *call, cfx_runtime *rt, cfx_buffer *out)
{
    char text[8192];
    cfx_error err = {.status = CFX_OK};
    const size_t name = strcspn(call, "(");
    snprintf(text, sizeof text, "%s  %%y = call_function[target=cfx.ops.%.*s]%s\n  output(%%y)\n",
             values, (int)name, call, call + name);
    const cfx_allocator *a = cfx_runtime_allocator(rt);
    cfx_graph *g = cfx_graph_parse(text, strlen(text), a, NULL, &err);
    cfx_program *p = NULL;
    if (g && cfx_graph_lower(g, NULL, NULL, &err) == CFX_OK)
        p = cfx_program_new(g, NULL, &(cfx_program_options){.allocator = a}, &err);
    CHECK(p != NULL);
    const cfx_datum y = p ? cfx_program_run(p, rt, NULL, 0, &err) : cfx_datum_invalid();
    if (y.kind == CFX_DATUM_INVALID)
        cfx_buffer_append(out, err.message, strlen(err.message));
    show(y, out);
    cfx_buffer_append(out, "", 1);
    cfx_datum_release(y);
    cfx_program_free(p);
    cfx_graph_release(g);
}

static void run_all(const cfx_runtime_options *options)
{
    cfx_error err = {.status = CFX_OK};
    cfx_runtime *rt = cfx_runtime_new(options, &err);
    for (size_t i = 0; rt && i < sizeof examples / sizeof *examples; i++) {
        cfx_buffer out;
        cfx_buffer_init(&out, NULL);
        run_call(examples[i].call, rt, &out);
        if (!CHECK(out.size > 1 &&
                   (!examples[i].want || strstr(out.data, examples[i].want) != NULL)))
            printf("    %s\n    gave %s\n", examples[i].call, out.data);
        cfx_buffer_free(&out);
    }
    cfx_runtime_free(rt);
}

TEST(every_extreme_has_an_end)
{
    static const cfx_allocator little = {alloc_little, free_little, NULL};
    run_all(&(cfx_runtime_options){.allocator = &little, .threads = 1});
    run_all(&(cfx_runtime_options){.allocator = &little, .threads = 1, .reference = true});
    run_all(&(cfx_runtime_options){.allocator = &little, .threads = 1, .limit_isa = true});
}

