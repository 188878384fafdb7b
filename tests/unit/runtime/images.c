/* images.c - pooling, normalisation, padding, resizing and sampling: a few values each, symbols,
 * and memory that runs out. The bulk is checked against PyTorch. */
#include "runtime/runtime_impl.h"

#include <cfx/embed/dim.h>

#include "check.h"
#include "test_alloc.h"

#include <math.h>

enum { MOST = 9 };

/* A call on the image 0, 1, 2, ... of the sizes, and the first numbers of its result. */
typedef struct example {
    cfx_operator op;
    int64_t sizes[4];
    const char *args;  /* after the image: "2 [1,1] 0.5 none true 'bilinear'" */
    float want[4];
    const char *shape;  /* for N, C, H, 4 */
} example;

static const example examples[] = {
    {CFX_OPID_max_pool2d, {1, 1, 4, 4}, "2", {5, 7, 13, 15}, "float32[N, C, H//2, 2]"},
    {CFX_OPID_avg_pool2d, {1, 1, 4, 4}, "3 2 1", {10.f / 9, 24.f / 9, 51.f / 9, 10},
     "float32[N, C, (H + 1)//2, 2]"},
    {CFX_OPID_adaptive_avg_pool2d, {1, 1, 4, 4}, "1", {7.5f}, "float32[N, C, 1, 1]"},
    {CFX_OPID_adaptive_max_pool2d, {1, 2, 4, 4}, "1", {15, 31}, "float32[N, C, 1, 1]"},
    {CFX_OPID_lp_pool2d, {1, 1, 4, 4}, "2.0 2", {6.480741f, 9.899495f}, "float32[N, C, H//2, 2]"},
    {CFX_OPID_pad, {1, 1, 2, 4}, "[1,1,0,0] 'reflect'", {1, 0, 1, 2}, "float32[N, C, H, 6]"},
    {CFX_OPID_constant_pad_nd, {1, 1, 2, 4}, "[1,-1] 9", {9, 0, 1, 2}, "float32[N, C, H, 4]"},
    {CFX_OPID_pixel_shuffle, {1, 4, 1, 1}, "2", {0, 1, 2, 3}, NULL},
    {CFX_OPID_pixel_unshuffle, {1, 1, 2, 2}, "2", {0, 1, 2, 3}, "float32[N, 4*C, H//2, 2]"},
    {CFX_OPID_channel_shuffle, {1, 4, 1, 1}, "2", {0, 2, 1, 3}, "float32[N, C, H, 4]"},
    {CFX_OPID_interpolate, {1, 1, 2, 2}, "none 2.0", {0, 0, 1, 1}, "float32[N, C, 2*H, 8]"},
    {CFX_OPID_interpolate, {1, 1, 2, 2}, "4 none 'bilinear'", {0, 0.25f, 0.75f, 1},
     "float32[N, C, 4, 4]"},
    {CFX_OPID_interpolate, {1, 1, 2, 2}, "3 none 'bicubic' true", {0, 0.5f, 1, 1},
     "float32[N, C, 3, 3]"},
    {CFX_OPID_interpolate, {1, 1, 4, 4}, "2 none 'bilinear' none none true",
     {25.f / 7, 0, 0, 0}, "float32[N, C, 2, 2]"},
    {CFX_OPID_upsample_nearest2d, {1, 1, 2, 2}, "none [2.0,2.0]", {0, 0, 1, 1},
     "float32[N, C, 2*H, 8]"},
    {CFX_OPID_im2col, {1, 1, 2, 2}, "2 1 0 1", {0, 1, 2, 3}, NULL},
    {CFX_OPID_col2im, {1, 4, 1, 1}, "[2,2] 2 1 0 1", {0}, NULL},
    {CFX_OPID_layer_norm, {1, 1, 1, 2}, "[2]", {-0.99998f, 0.99998f}, NULL},
    {CFX_OPID_rms_norm, {1, 1, 1, 2}, "[2] none 0.0", {0, 1.4142135f}, NULL},
    {CFX_OPID_group_norm, {1, 2, 1, 2}, "1", {-1.341635f, -0.447212f, 0.447212f, 1.341635f},
     "float32[N, C, H, 4]"},
    {CFX_OPID_instance_norm, {1, 2, 1, 2}, "", {-0.99998f, 0.99998f, -0.99998f, 0.99998f},
     "float32[N, C, H, 4]"},
    {CFX_OPID_batch_norm, {1, 2, 1, 2}, "none none none none true",
     {-0.99998f, 0.99998f, -0.99998f, 0.99998f}, "float32[N, C, H, 4]"},
    {CFX_OPID_normalize, {1, 2, 1, 2}, "", {0, 0.31622776f, 1, 0.94868329f}, "float32[N, C, H, 4]"},
    {CFX_OPID_local_response_norm, {1, 2, 1, 1}, "2 1.0 1.0 1.0", {0, 1 / 1.5f},
     "float32[N, C, H, 4]"},
};

/* ---- arguments ----------------------------------------------------------------------------- */

static cfx_datum read_one(const char **at, const cfx_allocator *a, cfx_error *err)
{
    char *end;
    const char *s = *at;
    if (*s == '\'') {
        size_t size = strcspn(s + 1, "'");
        *at = s + size + 2;
        return cfx_datum_from_text(CFX_DATUM_STR, s + 1, size, a, err);
    }
    if (*s == 'n' || *s == 't') {
        *at = s + 4;
        return *s == 'n' ? cfx_datum_none() : cfx_datum_bool(true);
    }
    double f = strtod(s, &end);
    *at = end;
    return memchr(s, '.', (size_t)(end - s)) ? cfx_datum_float(f) : cfx_datum_int((int64_t)f);
}

static cfx_datum read_argument(const char **at, const cfx_allocator *a, cfx_error *err)
{
    cfx_datum items[MOST];
    size_t n = 0;
    if (**at != '[')
        return read_one(at, a, err);
    while (**at != ']') {
        ++*at;
        items[n++] = read_one(at, a, err);
    }
    ++*at;
    return cfx_datum_seq(CFX_DATUM_LIST, items, n, a, err);
}

/* args[1], args[2], ...; returns how many there are with the image. False through *ok if memory is
 * out. */
static size_t read_arguments(const char *text, cfx_datum *args, const cfx_allocator *a,
                             cfx_error *err, bool *ok)
{
    size_t n = 1;
    *ok = true;
    while (*text) {
        args[n] = read_argument(&text, a, err);
        *ok = *ok && args[n++].kind != CFX_DATUM_INVALID;
        text += *text == ' ';
    }
    return n;
}

static cfx_tensor *image_of(const example *e, const cfx_allocator *a, cfx_error *err)
{
    size_t ndim = e->op == CFX_OPID_col2im ? 3 : 4;
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, e->sizes, ndim, a, err);
    for (int64_t i = 0; t && i < cfx_tensor_numel(t); i++)
        ((float *)cfx_tensor_data(t))[i] = (float)i;
    return t;
}

static cfx_datum run(cfx_runtime *rt, const example *e, const cfx_allocator *a, cfx_error *err)
{
    cfx_datum args[MOST] = {cfx_datum_tensor(image_of(e, a, err))};
    cfx_datum y = cfx_datum_scalar(CFX_DATUM_INVALID, 0);
    bool ok;
    size_t n = read_arguments(e->args, args, a, err, &ok);
    if (ok && args[0].kind == CFX_DATUM_TENSOR)
        y = cfx_operator_run(rt, e->op, args, n, err);
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(args[i]);
    return y;
}

/* ---- tests --------------------------------------------------------------------------------- */

TEST(values)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const example *e = &examples[i];
        cfx_datum y = run(rt, e, NULL, &err);
        if (!CHECK(y.kind == CFX_DATUM_TENSOR)) {
            printf("    example %zu: %s\n", i, err.message);
            continue;
        }
        const float *got = cfx_tensor_data(y.as.tensor);
        int64_t n = cfx_tensor_numel(y.as.tensor);
        for (int64_t k = 0; k < n && k < 4; k++) {
            bool close = e->want[k] == 0 || fabsf(got[k] - e->want[k]) < 1e-4f;
            if (!CHECK(close))
                printf("    example %zu (%s): number %d is %g, not %g\n", i,
                       cfx_operator_name(e->op), (int)k, (double)got[k], (double)e->want[k]);
        }
        cfx_datum_release(y);
    }
    cfx_runtime_free(rt);
}

TEST(sizes_are_symbols)
{
    cfx_error err = {0};
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    const int64_t sizes[] = {cfx_dims_symbol(dims, "N", 1, &err),
                             cfx_dims_symbol(dims, "C", 2, &err),
                             cfx_dims_symbol(dims, "H", 8, &err), 4};
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        cfx_datum args[MOST];
        cfx_buffer text;
        bool ok;
        if (!examples[i].shape)
            continue;
        args[0] = cfx_datum_tensor(cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, sizes, 4, NULL,
                                                           &err));
        size_t n = read_arguments(examples[i].args, args, NULL, &err, &ok);
        cfx_datum y = cfx_operator_infer(rt, dims, examples[i].op, args, n, &err);
        cfx_buffer_init(&text, NULL);
        cfx_datum_print(y, dims, cfx_buffer_sink(&text), NULL);
        if (!CHECK_STR_EQ(examples[i].shape, text.data))
            printf("    example %zu (%s) %s\n", i, cfx_operator_name(examples[i].op), err.message);
        cfx_buffer_free(&text);
        cfx_datum_release(y);
        while (n > 0)
            cfx_datum_release(args[--n]);
    }
    cfx_runtime_free(rt);
    cfx_dims_free(dims);
}

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    const cfx_runtime_options o = {.allocator = a, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&o, &err);
    cfx_datum y = cfx_datum_scalar(CFX_DATUM_INVALID, 0);
    if (rt)
        y = run(rt, arg, a, &err);
    cfx_status status = y.kind == CFX_DATUM_INVALID ? CFX_E_NOMEM : CFX_OK;
    cfx_datum_release(y);
    cfx_runtime_free(rt);
    return status;
}

TEST(memory_runs_out)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        CHECK(test_oom_sweep(sweep, (void *)&examples[i]) > 2);
}

TEST(running_statistics)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    const int64_t sizes[] = {1, 1, 1, 4};
    float x[] = {0, 1, 2, 3};
    float mean = 1;
    float var = 1;
    const int64_t one = 1;
    cfx_datum args[8] = {
        cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, 4, x, true, NULL,
                                                NULL, NULL, &err)),
        cfx_datum_none(), cfx_datum_none(),
        cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, &one, NULL, 1, &mean, false,
                                                NULL, NULL, NULL, &err)),
        cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, &one, NULL, 1, &var, false, NULL,
                                                NULL, NULL, &err)),
        cfx_datum_bool(true), cfx_datum_float(0.5), cfx_datum_float(0)};
    cfx_datum y = cfx_operator_run(rt, CFX_OPID_batch_norm, args, 8, &err);
    CHECK(y.kind == CFX_DATUM_TENSOR);
    CHECK(fabsf(mean - 1.25f) < 1e-6f && fabsf(var - (0.5f + 0.5f * 5 / 3)) < 1e-6f);
    cfx_datum_release(y);
    for (size_t i = 0; i < 8; i++)
        cfx_datum_release(args[i]);
    cfx_runtime_free(rt);
}
