/* onnx_rows.c - rows that ONNX needs: sizes with names, messages, memory that runs out. */
#include "runtime/runtime_impl.h"

#include "test_alloc.h"

/* A call; its arguments are in the syntax of cfx_datum_parse, or 'text' or [lists], with ';'
 * between them. */
typedef struct call {
    cfx_operator op;
    const char *args;
} call;

/* "[2, 3.5]" as a list of numbers. */
static cfx_datum parse_list(const char *at, size_t size, const cfx_allocator *a, cfx_error *err)
{
    cfx_datum items[8];
    size_t n = 0;
    for (size_t i = 1; i < size - 1 && n < 8; n++) {
        size_t word = strcspn(at + i, ",]");
        items[n] = cfx_datum_parse(NULL, at + i, word, a, err);
        i += word + 2;
    }
    return cfx_datum_seq(CFX_DATUM_LIST, items, n, a, err);
}

/* A tensor of zeros as `like` describes it, whose reference is taken over. */
static cfx_datum zeros(cfx_datum like, const cfx_allocator *a, cfx_error *err)
{
    const cfx_tensor *t = like.as.tensor;
    cfx_tensor *y = cfx_tensor_new(cfx_tensor_dtype(t), cfx_tensor_sizes(t), cfx_tensor_ndim(t), a,
                                   err);
    if (y)
        memset(cfx_tensor_data(y), 0,
               (size_t)cfx_tensor_numel(y) * cfx_dtype_size(cfx_tensor_dtype(t)));
    cfx_datum_release(like);
    return y ? cfx_datum_tensor(y) : cfx_datum_invalid();
}

static size_t parse_args(const call *what, cfx_dims *dims, bool filled, const cfx_allocator *a,
                         cfx_datum args[CFXI_MOST_PARAMS], cfx_error *err)
{
    size_t n = 0;
    for (const char *at = what->args; *at && err->status == CFX_OK; n++) {
        size_t size = strcspn(at, ";");
        if (*at == '\'')
            args[n] = cfx_datum_from_text(CFX_DATUM_STR, at + 1, size - 2, a, err);
        else if (*at == '[')
            args[n] = parse_list(at, size, a, err);
        else
            args[n] = cfx_datum_parse(dims, at, size, a, err);
        if (filled && args[n].kind == CFX_DATUM_TENSOR)
            args[n] = zeros(args[n], a, err);
        at += size + (at[size] == ';');
    }
    return n;
}

/* What a call gives, as text: types and sizes, or the message. */
static const char *described(cfx_operator op, const char *text)
{
    static char out[600];
    const call what = {op, text};
    cfx_error err = {0};
    cfx_dims *dims = cfx_dims_new(NULL, NULL);
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    cfx_datum args[CFXI_MOST_PARAMS];
    size_t n = parse_args(&what, dims, false, NULL, args, &err);
    cfx_datum y = cfx_operator_infer(rt, dims, op, args, n, &err);
    cfx_buffer buffer;
    cfx_buffer_init(&buffer, NULL);
    if (err.status == CFX_OK)
        cfx_datum_print(y, dims, cfx_buffer_sink(&buffer), NULL);
    snprintf(out, sizeof out, "%s", err.status == CFX_OK ? buffer.data : err.message);
    cfx_buffer_free(&buffer);
    cfx_datum_release(y);
    while (n > 0)
        cfx_datum_release(args[--n]);
    cfx_runtime_free(rt);
    cfx_dims_free(dims);
    return out;
}

static cfx_status run(const cfx_allocator *a, void *ctx)
{
    const call *what = ctx;
    cfx_error err = {0};
    cfx_dims *dims = cfx_dims_new(a, &err);
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.allocator = a, .threads = 1}, &err);
    cfx_datum args[CFXI_MOST_PARAMS] = {{0}};
    size_t n = dims && rt ? parse_args(what, dims, true, a, args, &err) : 0;
    if (err.status == CFX_OK)
        cfx_datum_release(cfx_operator_run(rt, what->op, args, n, &err));
    while (n > 0)
        cfx_datum_release(args[--n]);
    cfx_runtime_free(rt);
    cfx_dims_free(dims);
    return err.status;
}

TEST(sizes_with_names)
{
    CHECK_STR_EQ("float32[N, 3, 2*H, 7]",
                 described(CFX_OPID_resize_nd, "float32[N, 3, H, 7];None;[2.0];None;[2];'linear'"));
    CHECK_STR_EQ("float32[R, C, 2, 3]",
                 described(CFX_OPID_roi_align, "float32[N, C, H, W];float32[R, 4];int64[R];"
                           "[2, 3]"));
    CHECK_STR_EQ("float32[R, C, 2, 2]",
                 described(CFX_OPID_roi_max_pool, "float32[N, C, H, W];float32[R, 5];[2, 2]"));
    CHECK_STR_EQ("int64[u0, 3]",
                 described(CFX_OPID_non_max_suppression, "float32[N, B, 4];float32[N, C, B]"));
    CHECK_STR_EQ("float32[N, 6, H - 2, W - 1]",
                 described(CFX_OPID_deform_conv2d, "float32[N, 4, H, W];float32[6, 4, 3, 2];"
                           "float32[N, 12, H - 2, W - 1]"));
    CHECK_STR_EQ("(float32[N, T, 4, V], float32[N, 2, 3, V])",
                 described(CFX_OPID_linear_attention,
                           "float32[N, T, 4, 3];float32[N, T, 2, 3];float32[N, T, 2, V]"));
    CHECK_STR_EQ("(float32[T, 2, N, 5], float32[2, N, 5], float32[2, N, 5])",
                 described(CFX_OPID_recurrent_sequence,
                           "'LSTM';float32[T, N, 3];float32[2, 20, 3];float32[2, 20, 5];None;None;"
                           "None;None;None;'bidirectional'"));
}

TEST(messages)
{
    CHECK(strstr(described(CFX_OPID_resize_nd, "float32[2, 3];[4, 4];[2.0, 2.0]"),
                 "give either 'size' or 'scales'"));
    CHECK(strstr(described(CFX_OPID_resize_nd, "float32[2, 3];[4]"),
                 "'size' has 1 numbers; it must have 2"));
    CHECK(strstr(described(CFX_OPID_resize_nd, "float32[2];None;[-1.0]"), "not positive"));
    CHECK(strstr(described(CFX_OPID_roi_align, "float32[2, 3, 4, 4];float32[5, 4];int64[4];[2, 2]"),
                 "one for each region"));
    CHECK(strstr(described(CFX_OPID_non_max_suppression, "float32[2, 3, 4];float32[2, 3, 4]"),
                 "boxes must be [images, boxes, 4]"));
    CHECK(strstr(described(CFX_OPID_deform_conv2d, "float32[1, 4, 5, 5];float32[6, 4, 3, 3];"
                           "float32[1, 12, 3, 3]"), "two and one channels"));
    CHECK(strstr(described(CFX_OPID_linear_attention, "float32[1, 2, 4, 3];float32[1, 2, 2, 3];"
                           "float32[1, 2, 2, 3];None;None;None;'delta'"), "'delta' needs beta"));
    CHECK(strstr(described(CFX_OPID_recurrent_sequence, "'LSTM';float32[5, 1, 3];"
                           "float32[1, 20, 3];float32[1, 20, 5];None;None;None;None;None;'forward';"
                           "'Sigmoid,Sine,Tanh'"), "'Sine' is not an activation"));
    CHECK(strstr(described(CFX_OPID_recurrent_sequence, "'GRU';float32[5, 1, 3];float32[1, 20, 3];"
                           "float32[1, 20, 5]"), "'weight' does not fit"));
}

TEST(memory)
{
    static const call calls[] = {
        {CFX_OPID_resize_nd, "float16[2, 3, 4];[2, 5, 9];None;None;None;'cubic'"},
        {CFX_OPID_resize_nd, "float32[2, 3];[2, 5];None;[0.0, 0.0, 1.0, 2.0];None;'linear';"
                             "'tf_crop_and_resize'"},
        {CFX_OPID_roi_align, "float16[1, 2, 4, 4];float16[2, 4];int32[2];[2, 2]"},
        {CFX_OPID_roi_max_pool, "float16[1, 2, 4, 4];float16[2, 5];[2, 2]"},
        {CFX_OPID_non_max_suppression, "float32[1, 3, 4];float32[1, 2, 3];2;0.5"},
        {CFX_OPID_deform_conv2d, "float16[1, 4, 5, 5];float16[6, 4, 3, 3];float16[1, 18, 3, 3];"
                                 "float16[6];float16[1, 9, 3, 3]"},
        {CFX_OPID_linear_attention, "float32[1, 2, 4, 3];float32[1, 2, 2, 3];float32[1, 2, 2, 3]"},
        {CFX_OPID_recurrent_sequence, "'LSTM';float16[5, 2, 3];float16[1, 20, 3];float16[1, 20, 5];"
                                      "None;int32[2]"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        CHECK(test_oom_sweep(run, (void *)&calls[i]) > 3);
}

/* Elements that point at an image that is not there. */
TEST(bad_elements)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.threads = 1}, &err);
    float x[16] = {0}, rois[4] = {0, 0, 1, 1};
    int64_t image = 3;
    const int64_t sizes[] = {1, 1, 4, 4}, four[] = {1, 4}, one[] = {1};
    cfx_datum two[] = {cfx_datum_int(2), cfx_datum_int(2)};
    cfx_datum args[] = {
        cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, 4, x, false, NULL,
                                                NULL, NULL, &err)),
        cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, four, NULL, 2, rois, false, NULL,
                                                NULL, NULL, &err)),
        cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_INT64, one, NULL, 1, &image, false, NULL,
                                                NULL, NULL, &err)),
        cfx_datum_seq(CFX_DATUM_LIST, two, 2, NULL, &err)};
    cfx_datum y = cfx_operator_run(rt, CFX_OPID_roi_align, args, 4, &err);
    CHECK_INT_EQ(CFX_E_INDEX, err.status);
    CHECK(strstr(err.message, "region 0 is of image 3; there are 1"));
    cfx_datum_release(y);
    for (size_t i = 0; i < 4; i++)
        cfx_datum_release(args[i]);
    cfx_runtime_free(rt);
}

TEST(cost)
{
    const call what = {CFX_OPID_recurrent_sequence,
                       "'LSTM';float32[5, 2, 3];float32[1, 20, 3];float32[1, 20, 5]"};
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    cfx_datum args[CFXI_MOST_PARAMS];
    size_t n = parse_args(&what, dims, false, NULL, args, &err);
    CHECK_INT_EQ(2 * 10 * (60 + 100), cfxi_rt_operator_flops(rt, dims, what.op, args, n, &err));
    while (n > 0)
        cfx_datum_release(args[--n]);
    cfx_dims_free(dims);
    cfx_runtime_free(rt);
}
