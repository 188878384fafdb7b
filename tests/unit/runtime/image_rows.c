/* image_rows.c - pooling, resizing, padding, joining and scaling of images in every layout, against
 * the plain reference: odd sizes, gaps, NaN and infinity, on each instruction set. Pooling of
 * planes is the same code there, so it has loops of its own to agree with. */
#include "row_agreement.h"

static const int last[] = {0, 2, 3, 1};
static const float bad[] = {NAN, INFINITY, -INFINITY};

/* An image [N, C, H, W], contiguous, with channels last, or a part of such a one. */
static cfx_datum image(int64_t *sizes)
{
    const int64_t made[] = {1 + draw(2), 1 + draw(70), 1 + draw(15), 1 + draw(15)};
    memcpy(sizes, made, sizeof made);
    cfx_datum d = random_floats(made, 4, (lie){draw(4) ? last : NULL, draw(3) ? 0 : 5});
    if (draw(4) == 0)
        spoil(d, bad[draw(3)]);
    return d;
}

static cfx_datum pair(int64_t a, int64_t b) { return int_list((const int64_t[]){a, b}, 2); }

TEST(windows)
{
    for (int i = 0; i < 60; i++) {
        int64_t s[4];
        cfx_datum x = image(s);
        const int64_t kernel[] = {1 + draw(s[2] < 4 ? s[2] : 4), 1 + draw(s[3] < 4 ? s[3] : 4)};
        const bool maximum = draw(2);
        cfx_datum args[] = {x, pair(kernel[0], kernel[1]), pair(1 + draw(3), 1 + draw(3)),
                            pair(draw(kernel[0] / 2 + 1), draw(kernel[1] / 2 + 1)),
                            maximum ? cfx_datum_int(1) : cfx_datum_bool(draw(2)),
                            cfx_datum_bool(draw(2)),
                            !maximum && draw(3) == 0 ? cfx_datum_int(3)
                                                     : cfx_datum_scalar(CFX_DATUM_INVALID, 0)};
        check_row(maximum ? CFX_OPID_max_pool2d : CFX_OPID_avg_pool2d, args, maximum ? 6 : 7, 1e-6);
        drop_all(args, 4);
    }
}

/* The largest of 8-bit integers, of up to more channels than are in any vector. */
TEST(windows_of_bytes)
{
    for (int i = 0; i < 60; i++) {
        const int64_t s[] = {1 + draw(2), 1 + draw(i < 20 ? 150 : 40), 1 + draw(12), 1 + draw(12)};
        const int64_t kernel[] = {1 + draw(s[2] < 9 ? s[2] : 9), 1 + draw(s[3] < 9 ? s[3] : 9)};
        cfx_datum args[] = {random_bytes(draw(2) ? CFX_DTYPE_INT8 : CFX_DTYPE_UINT8, s, 4,
                                         (lie){draw(4) ? last : NULL, draw(3) ? 0 : 5}),
                            pair(kernel[0], kernel[1]), pair(1 + draw(3), 1 + draw(3)),
                            pair(draw(kernel[0] / 2 + 1), draw(kernel[1] / 2 + 1)),
                            cfx_datum_int(1 + (draw(4) == 0 && kernel[0] * 2 - 1 <= s[2] &&
                                               kernel[1] * 2 - 1 <= s[3])),
                            cfx_datum_bool(draw(2))};
        check_row(CFX_OPID_max_pool2d, args, 6, 0);
        drop_all(args, 4);
    }
}

typedef struct window {
    bool maximum, counts_padding;
    int64_t kernel[2], stride[2], before[2];
} window;

/* What element [n, c, y, x] of the result must be. */
static double pooled(const cfx_tensor *t, const window *w, const int64_t at[4])
{
    double most = -INFINITY, sum = 0;
    int64_t count = 0;
    const char *plane = t->data + at[0] * t->stride[0] + at[1] * t->stride[1];
    for (int64_t i = 0; i < w->kernel[0]; i++)
        for (int64_t j = 0; j < w->kernel[1]; j++) {
            const int64_t y = at[2] * w->stride[0] - w->before[0] + i;
            const int64_t x = at[3] * w->stride[1] - w->before[1] + j;
            if (y < 0 || y >= t->size[2] || x < 0 || x >= t->size[3])
                continue;
            const float v = *(const float *)(plane + y * t->stride[2] + x * t->stride[3]);
            most = v > most || isnan(v) ? v : most;
            sum += v;
            count++;
        }
    return w->maximum ? most
                      : sum / (double)(w->counts_padding ? w->kernel[0] * w->kernel[1] : count);
}

static bool is_pooled(const cfx_tensor *got, const cfx_tensor *t, const window *w)
{
    for (int64_t i = 0; i < cfxi_tensor_numel(got); i++) {
        const char *at = got->data;
        int64_t place[4], rest = i;
        for (size_t d = 4; d-- > 0; rest /= got->size[d]) {
            place[d] = rest % got->size[d];
            at += place[d] * got->stride[d];
        }
        const double want = pooled(t, w, place);
        const double y = *(const float *)at;
        if (isnan(want) ? !isnan(y) : want != y && !(fabs(want - y) <= 1e-6 * (1 + fabs(want))))
            return false;
    }
    return true;
}

/* Takes `x` over. */
static void check_windows(cfx_datum x, const window *w)
{
    cfx_datum args[] = {x, pair(w->kernel[0], w->kernel[1]), pair(w->stride[0], w->stride[1]),
                        pair(w->before[0], w->before[1]),
                        w->maximum ? cfx_datum_int(1) : cfx_datum_bool(false),
                        cfx_datum_bool(!w->maximum && w->counts_padding)};
    const cfx_runtime_options o = {.threads = 1 + (unsigned)draw(3), .limit_isa = true,
                                   .isa = (cfx_isa)draw(CFX_ISA_COUNT)};
    cfx_runtime *rt = cfx_runtime_new(&o, NULL);
    cfx_datum got = cfx_operator_run(
        rt, w->maximum ? CFX_OPID_max_pool2d : CFX_OPID_avg_pool2d, args, 6, NULL);
    CHECK(got.kind == CFX_DATUM_TENSOR && is_pooled(got.as.tensor, x.as.tensor, w));
    cfx_datum_release(got);
    cfx_runtime_free(rt);
    drop_all(args, 4);
}

TEST(windows_by_loops)
{
    for (int i = 0; i < 200; i++) {
        int64_t s[4];
        cfx_datum x = image(s);
        window w = {.maximum = draw(2), .counts_padding = draw(2)};
        for (int d = 0; d < 2; d++) {
            w.kernel[d] = i % 5 == 0 ? s[2 + d] : 1 + draw(s[2 + d] < 4 ? s[2 + d] : 4);
            w.stride[d] = 1 + draw(3);
            w.before[d] = i % 5 == 0 ? 0 : draw(w.kernel[d] / 2 + 1);
        }
        check_windows(x, &w);
    }
}

/* More pixels in each of several windows than are combined at once. */
TEST(large_windows_by_loops)
{
    for (int i = 0; i < 30; i++) {
        const int64_t sizes[] = {2, 1 + draw(70), 10 + draw(9), 10 + draw(9)};
        const window w = {draw(2), draw(2), {7 + draw(4), 10}, {1 + draw(3), 1 + draw(3)},
                          {draw(4), draw(6)}};
        check_windows(random_floats(sizes, 4, (lie){last, draw(3) ? 0 : 5}), &w);
    }
}

TEST(adaptive_windows)
{
    for (int i = 0; i < 40; i++) {
        int64_t s[4];
        cfx_datum args[] = {image(s), pair(1 + draw(4), 1 + draw(4))};
        if (i % 3 == 0) {
            cfx_datum_release(args[1]);
            args[1] = pair(1, 1);
        }
        check_row(i % 2 ? CFX_OPID_adaptive_avg_pool2d : CFX_OPID_adaptive_max_pool2d, args, 2,
                  1e-6);
        drop_all(args, 2);
    }
    const int64_t wide[] = {1, 130, 20, 20};  /* more pixels than are combined at once */
    cfx_datum args[] = {random_floats(wide, 4, (lie){last, 0}), pair(1, 1)};
    check_row(CFX_OPID_adaptive_avg_pool2d, args, 2, 1e-6);
    check_row(CFX_OPID_adaptive_max_pool2d, args, 2, 0);
    drop_all(args, 2);
}

TEST(sizes)
{
    static const cfx_operator rows[] = {CFX_OPID_upsample_nearest2d, CFX_OPID_upsample_bilinear2d,
                                        CFX_OPID_upsample_bicubic2d};
    for (int i = 0; i < 60; i++) {
        int64_t s[4];
        cfx_datum args[] = {image(s), pair(1 + draw(30), 1 + draw(30)), cfx_datum_bool(draw(2))};
        if (i % 5 == 0) {
            cfx_datum_release(args[1]);
            args[1] = pair(2 * s[2], 2 * s[3]);
        }
        check_row(rows[i % 3], args, i % 3 ? 3 : 2, 3e-6);
        drop_all(args, 2);
    }
}

TEST(padding)
{
    static const char *const modes[] = {"constant", "reflect", "replicate", "circular"};
    for (int i = 0; i < 40; i++) {
        int64_t s[4];
        cfx_datum x = image(s);
        const char *mode = modes[i % 4];
        const int64_t sides[] = {draw(s[3]), draw(s[3]), draw(s[2]), draw(s[2])};
        cfx_datum args[] = {x, int_list(sides, 4),
                            cfx_datum_from_text(CFX_DATUM_STR, mode, strlen(mode), NULL, NULL),
                            i % 4 == 0 && draw(2) ? cfx_datum_float(1.5) : cfx_datum_none()};
        check_row(CFX_OPID_pad, args, 4, 0);
        drop_all(args, 3);
    }
}

TEST(joined_channels)
{
    for (int i = 0; i < 20; i++) {
        int64_t s[4];
        cfx_datum items[3] = {image(s)};
        for (int k = 1; k < 3; k++) {
            const int64_t other[] = {s[0], 1 + draw(40), s[2], s[3]};
            items[k] = random_floats(other, 4, (lie){draw(3) ? last : NULL, draw(3) ? 0 : 2});
        }
        cfx_datum args[] = {cfx_datum_seq(CFX_DATUM_LIST, items, 3, NULL, NULL), cfx_datum_int(1)};
        check_row(CFX_OPID_cat, args, 2, 0);
        drop_all(items, 3);
        drop_all(args, 1);
    }
}

/* [N, C, 1, 1] by [N, C, H, W], and the mean over H and W that it is made of. */
TEST(squeeze_and_excitation)
{
    for (int i = 0; i < 30; i++) {
        int64_t s[4];
        cfx_datum x = image(s);
        const int64_t gate[] = {s[0], s[1], 1, 1};
        cfx_datum args[] = {x, random_floats(gate, 4, (lie){draw(2) ? last : NULL, 0})};
        check_row(draw(2) ? CFX_OPID_mul : CFX_OPID_add, args, 2, 0);
        cfx_datum dims[] = {x, pair(2, 3), cfx_datum_bool(draw(2))};
        check_row(CFX_OPID_mean, dims, 3, 1e-6);
        drop_all(args, 2);
        cfx_datum_release(dims[1]);
    }
}
