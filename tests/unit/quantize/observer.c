/* observer.c - what observers see, of any strides, and the scales that come of it. */
#include "quantize/observer_impl.h"

#include "check.h"
#include "test_alloc.h"

#include <math.h>
#include <stdlib.h>

static cfx_quantize_spec spec_of(cfx_observer_kind kind)
{
    cfx_quantize_spec s;
    cfx_quantize_spec_default(&s, kind, CFX_DTYPE_UINT8);
    return s;
}

static cfx_observer *observer(cfx_quantize_spec s)
{
    cfx_error err = {0};
    cfx_observer *o = cfx_observer_new(&s, NULL, &err);
    CHECK_STR_EQ("", err.message);
    return o;
}

static cfx_tensor *over(const float *x, int64_t rows, int64_t columns)
{
    const int64_t sizes[] = {rows, columns};
    return cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, 2, (void *)(uintptr_t)x, true,
                                  NULL, NULL, NULL, NULL);
}

static cfx_status see(cfx_observer *o, const float *x, int64_t rows, int64_t columns)
{
    cfx_error err = {0};
    cfx_tensor *t = over(x, rows, columns);
    const cfx_status status = cfx_observer_observe(o, t, &err);
    cfx_tensor_release(t);
    return status;
}

static float number(const cfx_tensor *t, int64_t i)
{
    return ((const float *)cfx_tensor_data(t))[i];
}
static int64_t whole(const cfx_tensor *t, int64_t i)
{
    return ((const int64_t *)cfx_tensor_data(t))[i];
}

static bool is_scale(const cfx_observer *o, int64_t i, float scale, int64_t zero)
{
    cfx_error err = {0};
    cfx_tensor *s = NULL, *z = NULL;
    if (!CHECK_INT_EQ(CFX_OK, cfx_observer_scales(o, &s, &z, &err)))
        return false;
    const bool same = CHECK(number(s, i) == scale) && CHECK_INT_EQ(zero, whole(z, i));
    if (!same)
        printf("    scale %.9g, want %.9g\n", (double)number(s, i), (double)scale);
    cfx_tensor_release(s);
    cfx_tensor_release(z);
    return same;
}

static float noise(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(int32_t)*seed / 2147483648.f;
}

TEST(least_and_greatest_of_all_calls)
{
    cfx_observer *o = observer(spec_of(CFX_OBSERVE_MIN_MAX));
    const float a[] = {1, 2, 3}, b[] = {-1, 0, 2};
    CHECK_INT_EQ(CFX_OK, see(o, a, 1, 3));
    CHECK(is_scale(o, 0, 3.f / 255, 0));
    CHECK_INT_EQ(CFX_OK, see(o, b, 3, 1));
    CHECK(is_scale(o, 0, 4.f / 255, 64));
    CHECK_INT_EQ(6, cfx_observer_seen(o));
    CHECK_INT_EQ(CFX_OBSERVE_MIN_MAX, cfx_observer_spec(o)->observer);
    cfx_observer_free(o);
    cfx_observer_free(NULL);
}

TEST(what_is_not_finite_is_counted_and_left_out)
{
    for (int kind = CFX_OBSERVE_MIN_MAX; kind <= CFX_OBSERVE_PERCENTILE; kind++) {
        cfx_quantize_spec s = spec_of((cfx_observer_kind)kind);
        s.percentile = 100;
        cfx_observer *o = observer(s);
        float x[300];
        for (int i = 0; i < 300; i++)
            x[i] = (float)(i % 3 - 1);
        x[7] = NAN;
        x[100] = INFINITY;
        x[299] = -INFINITY;
        CHECK_INT_EQ(CFX_OK, see(o, x, 3, 100));
        CHECK_INT_EQ(3, cfx_observer_not_finite(o));
        CHECK_INT_EQ(300, cfx_observer_seen(o));
        CHECK(o->low[0] == -1 && o->high[0] == 1);
        CHECK_INT_EQ(1, o->calls);
        const float none[] = {NAN, NAN};
        CHECK_INT_EQ(CFX_OK, see(o, none, 1, 2));
        CHECK_INT_EQ(1, o->calls);
        CHECK(o->low[0] == -1 && o->high[0] == 1);
        cfx_observer_free(o);
    }
}

TEST(nothing_seen_is_an_error)
{
    cfx_error err = {0};
    cfx_tensor *s = NULL, *z = NULL;
    cfx_observer *o = observer(spec_of(CFX_OBSERVE_HISTOGRAM));
    const float none[] = {NAN, INFINITY};
    CHECK_INT_EQ(CFX_OK, see(o, none, 0, 2));
    CHECK_INT_EQ(0, cfx_observer_seen(o));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_observer_scales(o, &s, &z, &err));
    CHECK(strstr(err.message, "nothing was observed") != NULL);
    CHECK_INT_EQ(CFX_OK, see(o, none, 1, 2));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_observer_scales(o, &s, &z, &err));
    CHECK(strstr(err.message, "none of the 2 elements observed was finite") != NULL);
    cfx_observer_free(o);
    o = observer(spec_of(CFX_OBSERVE_NOTHING));
    CHECK_INT_EQ(CFX_OK, see(o, none, 1, 2));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_observer_scales(o, &s, &z, &err));
    CHECK(!s && !z);
    cfx_observer_free(o);
}

TEST(constants_and_zeros_have_a_scale)
{
    const float zeros[] = {0, 0}, fives[] = {5, 5}, least[] = {-5, -5};
    for (int kind = CFX_OBSERVE_MIN_MAX; kind <= CFX_OBSERVE_MOVING_AVERAGE; kind++) {
        cfx_observer *o = observer(spec_of((cfx_observer_kind)kind));
        CHECK_INT_EQ(CFX_OK, see(o, zeros, 1, 2));
        CHECK(is_scale(o, 0, 0x1p-23f, 0));
        cfx_observer_free(o);
    }
    cfx_quantize_spec s = spec_of(CFX_OBSERVE_MIN_MAX);
    s.per = CFX_PER_CHANNEL;
    cfx_observer *o = observer(s);
    const float rows[] = {0, 0, 5, 5, -5, -5, NAN, NAN};
    CHECK_INT_EQ(CFX_OK, see(o, rows, 4, 2));
    CHECK(is_scale(o, 0, 0x1p-23f, 0));
    CHECK(is_scale(o, 1, 5.f / 255, 0));
    CHECK(is_scale(o, 2, 5.f / 255, 255));
    CHECK(is_scale(o, 3, 0x1p-23f, 0));
    cfx_observer_free(o);
    s = spec_of(CFX_OBSERVE_HISTOGRAM);
    for (int i = 0; i < 3; i++) {
        const float *x = i == 0 ? zeros : i == 1 ? fives : least;
        o = observer(s);
        CHECK_INT_EQ(CFX_OK, see(o, x, 1, 2));
        CHECK_INT_EQ(CFX_OK, see(o, x, 2, 1));
        CHECK(is_scale(o, 0, i == 0 ? 0x1p-23f : 5.f / 255, i == 2 ? 255 : 0));
        cfx_observer_free(o);
    }
    s = spec_of(CFX_OBSERVE_MIN_MAX);
    s.eps = 0;
    o = observer(s);
    CHECK_INT_EQ(CFX_OK, see(o, zeros, 1, 2));
    CHECK(is_scale(o, 0, 0x1p-126f, 0));
    cfx_observer_free(o);
}

TEST(symmetric_integers)
{
    const float x[] = {-1, 3};
    cfx_quantize_spec s;
    cfx_quantize_spec_default(&s, CFX_OBSERVE_MIN_MAX, CFX_DTYPE_INT8);
    s.symmetric = true;
    cfx_observer *o = observer(s);
    CHECK_INT_EQ(CFX_OK, see(o, x, 1, 2));
    CHECK(is_scale(o, 0, 3.f / 127.5f, 0));
    cfx_observer_free(o);
    s = spec_of(CFX_OBSERVE_MIN_MAX);
    s.symmetric = true;
    o = observer(s);
    CHECK_INT_EQ(CFX_OK, see(o, x, 1, 2));
    CHECK(is_scale(o, 0, 3.f / 127.5f, 128));
    cfx_observer_free(o);
    s.low = -8;
    s.high = 7;
    s.dtype = CFX_DTYPE_INT8;
    o = observer(s);
    CHECK_INT_EQ(CFX_OK, see(o, x, 1, 2));
    CHECK(is_scale(o, 0, 3.f / 7.5f, 0));
    cfx_observer_free(o);
}

TEST(averages_that_move)
{
    cfx_quantize_spec s = spec_of(CFX_OBSERVE_MOVING_AVERAGE);
    s.averaging = 0.5;
    cfx_observer *o = observer(s);
    const float a[] = {0, 4}, b[] = {-2, 8};
    CHECK_INT_EQ(CFX_OK, see(o, a, 1, 2));
    CHECK_INT_EQ(CFX_OK, see(o, b, 1, 2));
    CHECK(o->low[0] == -1 && o->high[0] == 6);
    cfx_observer *p = observer(s);
    CHECK_INT_EQ(CFX_OK, see(p, a, 1, 2));
    CHECK_INT_EQ(CFX_OK, cfx_observer_merge(o, p, NULL));
    CHECK(o->low[0] == -2.f / 3 && o->high[0] == 16.f / 3);
    CHECK_INT_EQ(3, o->calls);
    cfx_observer_free(p);
    cfx_observer_free(o);
    o = observer(spec_of(CFX_OBSERVE_EACH_RUN));
    CHECK_INT_EQ(CFX_OK, see(o, b, 1, 2));
    CHECK_INT_EQ(CFX_OK, see(o, a, 1, 2));
    CHECK(o->low[0] == 0 && o->high[0] == 4);
    cfx_observer_free(o);
}

TEST(a_given_scale)
{
    cfx_quantize_spec s = spec_of(CFX_OBSERVE_FIXED);
    s.scale = 1.0 / 256;
    s.zero = 7;
    cfx_observer *o = observer(s);
    CHECK(is_scale(o, 0, 1.f / 256, 7));
    const float x[] = {1, 2};
    CHECK_INT_EQ(CFX_OK, see(o, x, 1, 2));
    CHECK_INT_EQ(2, cfx_observer_seen(o));
    cfx_observer_free(o);
}

/* ---- strides ------------------------------------------------------------------------------- */

enum { A = 5, B = 37, C = 67 };

/* The ranges of channels, one by one. */
static void check_channels(const cfx_observer *o, const float *x, const int64_t *stride,
                           const int64_t *size, size_t axis)
{
    const size_t p = axis == 0 ? 1 : 0, q = axis == 2 ? 1 : 2;
    for (int64_t c = 0; c < size[axis]; c++) {
        float low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < size[p]; i++)
            for (int64_t k = 0; k < size[q]; k++) {
                const float v = x[c * stride[axis] + i * stride[p] + k * stride[q]];
                low = v < low ? v : low;
                high = v > high ? v : high;
            }
        if (!CHECK(o->low[c] == low) || !CHECK(o->high[c] == high))
            return;
    }
}

TEST(channels_of_any_strides)
{
    static float x[A * B * C];
    uint32_t seed = 3;
    for (int i = 0; i < A * B * C; i++)
        x[i] = noise(&seed);
    const int64_t orders[][3] = {{B * C, C, 1}, {1, A * C, A}, {B, 1, A * B}, {C, A * C, 1}};
    const int64_t sizes[] = {A, B, C};
    for (size_t order = 0; order < 4; order++)
        for (int64_t axis = -1; axis < 3; axis++) {
            int64_t bytes[3];
            for (int i = 0; i < 3; i++)
                bytes[i] = orders[order][i] * 4;
            cfx_tensor *t = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, bytes, 3, x, true,
                                                   NULL, NULL, NULL, NULL);
            cfx_quantize_spec s = spec_of(CFX_OBSERVE_MIN_MAX);
            s.per = CFX_PER_CHANNEL;
            s.axis = axis;
            cfx_observer *o = observer(s);
            CHECK_INT_EQ(CFX_OK, cfx_observer_observe(o, t, NULL));
            check_channels(o, x, orders[order], sizes, axis < 0 ? 2 : (size_t)axis);
            cfx_observer_free(o);
            cfx_tensor_release(t);
        }
}

TEST(views_are_seen_as_they_are)
{
    float x[200];
    for (int i = 0; i < 200; i++)
        x[i] = (float)i;
    const int64_t sizes[] = {10, 3}, strides[] = {-40, 8};
    cfx_tensor *t = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, strides, 2, x + 100, true,
                                           NULL, NULL, NULL, NULL);
    cfx_observer *o = observer(spec_of(CFX_OBSERVE_MIN_MAX));
    CHECK_INT_EQ(CFX_OK, cfx_observer_observe(o, t, NULL));
    CHECK(o->low[0] == 10 && o->high[0] == 104);
    cfx_tensor_release(t);
    const int64_t again[] = {7, 50}, none[] = {0, 4};
    t = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, again, none, 2, x, true, NULL, NULL, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_observer_observe(o, t, NULL));
    CHECK(o->low[0] == 0 && o->high[0] == 104);
    CHECK_INT_EQ(380, cfx_observer_seen(o));
    cfx_tensor_release(t);
    cfx_observer_free(o);
}

TEST(floats_of_other_sizes)
{
    const cfx_dtype types[] = {CFX_DTYPE_FLOAT64, CFX_DTYPE_FLOAT16, CFX_DTYPE_BFLOAT16,
                               CFX_DTYPE_FLOAT8_E4M3FN};
    for (size_t i = 0; i < 4; i++) {
        const int64_t sizes[] = {100, 2};
        cfx_tensor *t = cfx_tensor_new(types[i], sizes, 2, NULL, NULL);
        for (int k = 0; k < 200; k++)
            cfxi_tensor_store_float(types[i], t->data + k * (int)cfx_dtype_size(types[i]),
                                    k == 50 ? -1.5 : k == 51 ? 2 : 0.25);
        const int64_t half[] = {100}, step[] = {2 * (int64_t)cfx_dtype_size(types[i])};
        cfx_tensor *even = cfx_tensor_view(t, types[i], half, step, 1, 0, NULL);
        cfx_observer *o = observer(spec_of(CFX_OBSERVE_MIN_MAX));
        CHECK_INT_EQ(CFX_OK, cfx_observer_observe(o, even, NULL));
        CHECK(o->low[0] == -1.5f && o->high[0] == 0.25f);
        CHECK_INT_EQ(CFX_OK, cfx_observer_observe(o, t, NULL));
        CHECK(o->low[0] == -1.5f && o->high[0] == 2);
        cfx_observer_free(o);
        cfx_tensor_release(even);
        cfx_tensor_release(t);
    }
    cfx_error err = {0};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_INT32, NULL, 0, NULL, NULL);
    cfx_observer *o = observer(spec_of(CFX_OBSERVE_MIN_MAX));
    CHECK_INT_EQ(CFX_E_TYPE, cfx_observer_observe(o, t, &err));
    CHECK_STR_EQ("an observer looks at tensors of floats, not of int32", err.message);
    cfx_tensor_release(t);
    cfx_observer_free(o);
}

TEST(groups_of_a_row)
{
    const float x[] = {1, -1, 2, -2, 9, 3, -3, 4, -4, -9};
    cfx_quantize_spec s;
    cfx_quantize_spec_default(&s, CFX_OBSERVE_MIN_MAX, CFX_DTYPE_INT8);
    s.per = CFX_PER_GROUP;
    s.group = 2;
    s.symmetric = true;
    s.low = -8;
    s.high = 7;
    cfx_observer *o = observer(s);
    CHECK_INT_EQ(CFX_OK, see(o, x, 2, 5));
    cfx_tensor *scale, *zero;
    REQUIRE(cfx_observer_scales(o, &scale, &zero, NULL) == CFX_OK);
    CHECK_INT_EQ(2, scale->ndim);
    CHECK_INT_EQ(3, scale->size[1]);
    const float want[] = {1, 2, 9, 3, 4, 9};
    for (int i = 0; i < 6; i++)
        CHECK(number(scale, i) == want[i] / 7.5f);
    cfx_tensor_release(scale);
    cfx_tensor_release(zero);
    CHECK_INT_EQ(CFX_E_SHAPE, see(o, x, 1, 5));
    cfx_observer_free(o);
    s.group = 100;
    o = observer(s);
    CHECK_INT_EQ(CFX_OK, see(o, x, 5, 2));
    CHECK_INT_EQ(5, o->n);
    cfx_observer_free(o);
}

/* ---- histograms ---------------------------------------------------------------------------- */

static double sum(const cfx_observer *o)
{
    double all = 0;
    for (int64_t i = 0; i < o->spec.bins; i++)
        all += (double)o->histogram[i];
    return all;
}

TEST(bins_of_one_call_are_exact)
{
    cfx_quantize_spec s = spec_of(CFX_OBSERVE_HISTOGRAM);
    s.bins = 4;
    cfx_observer *o = observer(s);
    const float x[] = {0, 1, 1.5f, 2, 3.9f, 4, 4};
    CHECK_INT_EQ(CFX_OK, see(o, x, 1, 7));
    CHECK(o->histogram[0] == 1 && o->histogram[1] == 2 && o->histogram[2] == 1 &&
          o->histogram[3] == 3);
    CHECK_INT_EQ(CFX_OK, see(o, x + 1, 1, 2));
    CHECK(o->histogram[1] == 4);
    const float wider[] = {8};
    CHECK_INT_EQ(CFX_OK, see(o, wider, 1, 1));
    CHECK(o->high[0] == 8 && o->histogram[0] == 5 && o->histogram[1] == 4 &&
          o->histogram[2] == 0 && o->histogram[3] == 1);
    cfx_observer_free(o);
}

TEST(histograms_lose_no_element)
{
    uint32_t seed = 9;
    static float x[20000];
    cfx_observer *o = observer(spec_of(CFX_OBSERVE_HISTOGRAM));
    cfx_observer *p = observer(spec_of(CFX_OBSERVE_HISTOGRAM));
    for (int call = 0; call < 12; call++) {
        for (int i = 0; i < 20000; i++)
            x[i] = noise(&seed) * (float)(call % 5 + 1);
        CHECK_INT_EQ(CFX_OK, see(call % 2 ? o : p, x, 100, 200));
    }
    CHECK(fabs(sum(o) - 120000) < 1);
    CHECK_INT_EQ(CFX_OK, cfx_observer_merge(o, p, NULL));
    CHECK(fabs(sum(o) - 240000) < 1);
    CHECK_INT_EQ(240000, cfx_observer_seen(o));
    CHECK(o->low[0] < -4.99f && o->high[0] > 4.99f);
    cfx_observer_free(p);
    cfx_observer_free(o);
}

TEST(ranges_wider_than_a_float)
{
    cfx_observer *o = observer(spec_of(CFX_OBSERVE_HISTOGRAM));
    const float x[] = {-3e38f, 0, 1, 3e38f}, small[] = {1e-44f, 2e-44f, 0};
    CHECK_INT_EQ(CFX_OK, see(o, x, 1, 4));
    CHECK(sum(o) == 4);
    CHECK_INT_EQ(CFX_OK, see(o, small, 1, 3));
    CHECK(sum(o) == 7);
    cfx_tensor *s, *z;
    CHECK_INT_EQ(CFX_OK, cfx_observer_scales(o, &s, &z, NULL));
    CHECK(isfinite(number(s, 0)));
    cfx_tensor_release(s);
    cfx_tensor_release(z);
    cfx_observer_free(o);
    o = observer(spec_of(CFX_OBSERVE_HISTOGRAM));
    const float far[] = {1e10f, 1e10f};
    CHECK_INT_EQ(CFX_OK, see(o, far, 1, 2));
    CHECK_INT_EQ(CFX_OK, see(o, small, 1, 3));
    CHECK(sum(o) == 5);
    cfx_observer_free(o);
}

TEST(percentiles_leave_the_outermost_out)
{
    static float x[100000];
    for (int i = 0; i < 100000; i++)
        x[i] = (float)i / 100000;
    cfx_quantize_spec s = spec_of(CFX_OBSERVE_PERCENTILE);
    s.percentile = 98;
    cfx_observer *o = observer(s);
    CHECK_INT_EQ(CFX_OK, see(o, x, 1000, 100));
    float range[2];
    cfxi_quantize_percentile(o, range);
    CHECK(fabsf(range[0] - 0.01f) < 1e-4f && fabsf(range[1] - 0.99f) < 1e-4f);
    cfx_observer_free(o);
}

TEST(the_search_goes_inward)
{
    static float x[100001];
    uint32_t seed = 5;
    for (int i = 0; i < 100000; i++)
        x[i] = powf(noise(&seed), 5) * 100;
    cfx_observer *o = observer(spec_of(CFX_OBSERVE_HISTOGRAM));
    CHECK_INT_EQ(CFX_OK, see(o, x, 1, 100000));
    float range[2];
    cfxi_quantize_search(o, range);
    CHECK(range[0] >= o->low[0] && range[0] < -90 && range[1] < o->high[0] && range[1] > 90);
    cfx_observer_free(o);
}

TEST(every_instruction_set_sees_the_same)
{
    static float x[1003];
    uint32_t seed = 11;
    for (int i = 0; i < 1003; i++)
        x[i] = noise(&seed);
    const float low = -1, width = 2;
    static uint32_t want[CFXI_COUNTERS * 100], counts[CFXI_COUNTERS * 100];
    const cfxi_observes *plain = cfxi_quantize_observes_of(CFX_ISA_PLAIN);
    for (int isa = 0; isa < CFX_ISA_COUNT; isa++) {
        const cfxi_observes *l = cfxi_quantize_observes_of((cfx_isa)isa);
        if (!l || cfxi_rt_isa_at_most((cfx_isa)isa) != (cfx_isa)isa)
            continue;
        for (int64_t n = 1; n < 300; n++) {
            float a[2], b[2];
            CHECK(plain->range(x + n, n, a) && l->range(x + n, n, b));
            CHECK(a[0] == b[0] && a[1] == b[1]);
        }
        memset(want, 0, sizeof want);
        memset(counts, 0, sizeof counts);
        const cfxi_bins p = {low, width, 100, want}, q = {low, width, 100, counts};
        plain->count(x, 1003, &p);
        l->count(x, 1003, &q);
        for (int i = 0; i < 100; i++) {
            uint32_t more = 0, less = 0;
            for (int k = 0; k < CFXI_COUNTERS; k++) {
                more += want[CFXI_COUNTERS * i + k];
                less += counts[CFXI_COUNTERS * i + k];
            }
            CHECK_INT_EQ(more, less);
        }
    }
}

/* ---- states -------------------------------------------------------------------------------- */

TEST(a_state_brings_it_all_back)
{
    static float x[3001];
    uint32_t seed = 2;
    for (int i = 0; i < 3001; i++)
        x[i] = noise(&seed);
    for (int kind = 0; kind <= CFX_OBSERVE_EACH_RUN; kind++)
        for (int per = 0; per < 3; per++) {
            cfx_error err = {0};
            cfx_quantize_spec s = spec_of((cfx_observer_kind)kind);
            if (cfxi_quantize_observer_has_histogram(&s) && per > 0)
                continue;
            s.per = (cfx_quantize_per)per;
            s.group = 32;
            cfx_observer *o = observer(s), *p = observer(s);
            for (int call = 0; call < 2; call++) {
                cfx_state *state = cfx_observer_save(o, &err);
                CHECK_INT_EQ(CFX_OK, cfx_observer_load(p, state, &err));
                cfx_state_free(state);
                CHECK_INT_EQ(o->n, call == 0 ? 0 : p->n);
                CHECK_INT_EQ(o->calls, p->calls);
                CHECK_INT_EQ(o->seen, p->seen);
                CHECK_INT_EQ(o->groups, p->groups);
                CHECK(!o->n || !memcmp(o->low, p->low, 2 * o->n * sizeof *o->low));
                CHECK(!o->histogram ||
                      !memcmp(o->histogram, p->histogram, (size_t)s.bins * sizeof(float)));
                CHECK_INT_EQ(CFX_OK, see(o, x, 30, 100));
            }
            CHECK_INT_EQ(CFX_OK, see(p, x + 1, 30, 99 + (per == 2)));
            CHECK_STR_EQ("", err.message);
            cfx_observer_free(o);
            cfx_observer_free(p);
        }
}

static void load_fails(cfx_observer *o, cfx_status want, const char *name, cfx_dtype dtype,
                       int64_t n, float first)
{
    cfx_error err = {0};
    cfx_state *state = cfx_observer_save(o, NULL);
    cfx_tensor *t = cfx_tensor_new(dtype, &n, 1, NULL, NULL);
    memset(t->data, 0, (size_t)n * cfx_dtype_size(dtype));
    if (dtype == CFX_DTYPE_FLOAT32 && n > 0)
        memcpy(t->data, &first, sizeof first);
    if (dtype == CFX_DTYPE_INT64 && n > 0)
        *(int64_t *)(void *)t->data = (int64_t)first;
    CHECK_INT_EQ(CFX_OK, cfx_state_set(state, name, t, NULL));
    CHECK_INT_EQ(want, cfx_observer_load(o, state, &err));
    CHECK(want == CFX_OK || strstr(err.message, name) != NULL);
    cfx_tensor_release(t);
    cfx_state_free(state);
}

/* Counts without a range would come up in the histogram of what is observed later. */
TEST(states_with_counts_but_no_range)
{
    cfx_observer *o = observer(spec_of(CFX_OBSERVE_HISTOGRAM));
    load_fails(o, CFX_OK, "histogram", CFX_DTYPE_FLOAT32, 2048, 0);
    load_fails(o, CFX_E_VALUE, "histogram", CFX_DTYPE_FLOAT32, 2048, 5);
    cfx_observer_free(o);
}

TEST(states_that_do_not_belong)
{
    cfx_error err = {0};
    cfx_observer *o = observer(spec_of(CFX_OBSERVE_HISTOGRAM));
    const float x[] = {1, 2, 3};
    CHECK_INT_EQ(CFX_OK, see(o, x, 1, 3));
    load_fails(o, CFX_E_KEY, "eps", CFX_DTYPE_FLOAT32, 1, 0);
    load_fails(o, CFX_E_TYPE, "histogram", CFX_DTYPE_INT64, 2048, 0);
    load_fails(o, CFX_E_SHAPE, "histogram", CFX_DTYPE_FLOAT32, 2047, 0);
    load_fails(o, CFX_E_VALUE, "histogram", CFX_DTYPE_FLOAT32, 2048, -1);
    load_fails(o, CFX_E_VALUE, "histogram", CFX_DTYPE_FLOAT32, 2048, NAN);
    load_fails(o, CFX_E_SHAPE, "max_val", CFX_DTYPE_FLOAT32, 2, 9);
    load_fails(o, CFX_E_VALUE, "min_val", CFX_DTYPE_FLOAT32, 1, 5);
    load_fails(o, CFX_E_VALUE, "min_val", CFX_DTYPE_FLOAT32, 1, NAN);
    load_fails(o, CFX_E_VALUE, "calls", CFX_DTYPE_INT64, 1, -1);
    load_fails(o, CFX_E_VALUE, "calls", CFX_DTYPE_INT64, 1, 0);
    load_fails(o, CFX_E_SHAPE, "seen", CFX_DTYPE_INT64, 2, 1);
    load_fails(o, CFX_OK, "seen", CFX_DTYPE_INT64, 1, 77);
    CHECK_INT_EQ(77, cfx_observer_seen(o));
    cfx_state *greatest = cfx_observer_save(o, NULL);
    for (int i = 0; i < 3; i++) {
        const char *const names[] = {"seen", "not_finite", "calls"};
        *(int64_t *)cfx_tensor_data(cfx_state_get(greatest, names[i])) = INT64_MAX;
    }
    CHECK_INT_EQ(CFX_OK, cfx_observer_load(o, greatest, NULL));
    cfx_state_free(greatest);
    CHECK_INT_EQ(CFX_OK, see(o, x, 1, 3));
    CHECK_INT_EQ(CFX_OK, cfx_observer_merge(o, o, NULL));
    CHECK(cfx_observer_seen(o) == INT64_MAX && o->calls == INT64_MAX);
    cfx_state *empty = cfx_state_new(NULL, NULL);
    CHECK_INT_EQ(CFX_E_KEY, cfx_observer_load(o, empty, &err));
    CHECK_STR_EQ("'min_val' of the observer's state is missing", err.message);
    CHECK(o->low[0] == 1 && o->high[0] == 3 && sum(o) == 12);
    cfx_state_free(empty);
    cfx_observer_free(o);
}

/* ---- what cannot be ------------------------------------------------------------------------ */

static void spec_fails(cfx_quantize_spec s, const char *field)
{
    cfx_error err = {0};
    char quoted[40];
    snprintf(quoted, sizeof quoted, "'%s'", field);
    CHECK(cfx_observer_new(&s, NULL, &err) == NULL);
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    if (!CHECK(strstr(err.message, quoted) != NULL))
        printf("    %s\n", err.message);
}

TEST(specs_that_contradict_themselves)
{
    const cfx_quantize_spec good = spec_of(CFX_OBSERVE_MIN_MAX);
    cfx_quantize_spec s;
    spec_fails((s = good, s.low = 256, s), "low");
    spec_fails((s = good, s.low = -1, s), "low");
    spec_fails((s = good, s.high = 256, s), "high");
    spec_fails((s = good, s.dtype = CFX_DTYPE_INT64, s), "dtype");
    spec_fails((s = good, s.eps = NAN, s), "eps");
    spec_fails((s = good, s.observer = (cfx_observer_kind)99, s), "observer");
    spec_fails((s = good, s.per = (cfx_quantize_per)99, s), "per");
    spec_fails((s = good, s.per = CFX_PER_GROUP, s), "group");
    spec_fails((s = good, s.observer = CFX_OBSERVE_MOVING_AVERAGE, s.averaging = 2, s),
               "averaging");
    spec_fails((s = good, s.observer = CFX_OBSERVE_HISTOGRAM, s.per = CFX_PER_CHANNEL, s), "per");
    spec_fails((s = good, s.observer = CFX_OBSERVE_HISTOGRAM, s.bins = 1, s), "bins");
    spec_fails((s = good, s.observer = CFX_OBSERVE_PERCENTILE, s.percentile = 0, s),
               "percentile");
    spec_fails((s = good, s.observer = CFX_OBSERVE_FIXED, s.scale = 0, s), "scale");
    spec_fails((s = good, s.observer = CFX_OBSERVE_FIXED, s.zero = 256, s), "zero");
}

TEST(tensors_that_do_not_fit)
{
    const float x[12] = {0};
    cfx_error err = {0};
    cfx_quantize_spec s = spec_of(CFX_OBSERVE_MIN_MAX);
    s.per = CFX_PER_CHANNEL;
    s.axis = 2;
    cfx_observer *o = observer(s);
    CHECK_INT_EQ(CFX_E_SHAPE, see(o, x, 3, 4));
    cfx_observer_free(o);
    s.axis = -2;
    o = observer(s);
    CHECK_INT_EQ(CFX_OK, see(o, x, 3, 4));
    CHECK_INT_EQ(CFX_E_SHAPE, see(o, x, 4, 3));
    CHECK_INT_EQ(12, cfx_observer_seen(o));
    cfx_observer *p = observer(spec_of(CFX_OBSERVE_MIN_MAX));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_observer_merge(o, p, &err));
    CHECK_STR_EQ("observers of different specs cannot be merged", err.message);
    cfx_observer_free(p);
    p = observer(s);
    CHECK_INT_EQ(CFX_OK, see(p, x, 4, 3));
    CHECK_INT_EQ(CFX_E_SHAPE, cfx_observer_merge(o, p, NULL));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_observer_observe(o, NULL, NULL));
    cfx_observer_free(p);
    cfx_observer_free(o);
}

static cfx_status all_of_it(const cfx_allocator *a, void *arg)
{
    const float x[12] = {0, 1, 2};
    cfx_error err = {0};
    cfx_tensor *scale = NULL, *zero = NULL;
    cfx_quantize_spec s = spec_of(*(cfx_observer_kind *)arg);
    s.per = s.observer == CFX_OBSERVE_MIN_MAX ? CFX_PER_CHANNEL : CFX_PER_TENSOR;
    cfx_observer *o = cfx_observer_new(&s, a, &err);
    if (!o)
        return err.status;
    cfx_tensor *t = over(x, 3, 4);
    cfx_state *state = NULL;
    cfx_status status = cfx_observer_observe(o, t, &err);
    if (status == CFX_OK && !(state = cfx_observer_save(o, &err)))
        status = err.status;
    status = status ? status : cfx_observer_load(o, state, &err);
    status = status ? status : cfx_observer_merge(o, o, &err);
    status = status ? status : cfx_observer_scales(o, &scale, &zero, &err);
    cfx_tensor_release(scale);
    cfx_tensor_release(zero);
    cfx_state_free(state);
    cfx_tensor_release(t);
    cfx_observer_free(o);
    return status;
}

TEST(every_allocation_may_fail)
{
    cfx_observer_kind kinds[] = {CFX_OBSERVE_MIN_MAX, CFX_OBSERVE_HISTOGRAM};
    for (size_t i = 0; i < 2; i++)
        CHECK(test_oom_sweep(all_of_it, &kinds[i]) > 10);
}
