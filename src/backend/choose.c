/* choose.c - which back end solves a problem: by the costs that they estimate, or by measuring. */
#include "backend_impl.h"

#include <math.h>

static const cfxi_candidate all[] = {
    {"product", &cfxi_backend_product, CFXI_ALLOW_BUILT_IN, false},
    {"depthwise", &cfxi_backend_depthwise, CFXI_ALLOW_BUILT_IN, false},
    {"convolution", &cfxi_backend_convolution, CFXI_ALLOW_BUILT_IN, false},
    {"winograd", &cfxi_backend_winograd, CFXI_ALLOW_BUILT_IN, false},
    {"bf16", &cfxi_backend_bf16, CFXI_ALLOW_BUILT_IN, false},
    {"weight_only", &cfxi_backend_weight_only, CFXI_ALLOW_BUILT_IN, false},
    {"bytes", &cfxi_backend_bytes, CFXI_ALLOW_BUILT_IN, true},
    {"dynamic", &cfxi_backend_dynamic, CFXI_ALLOW_BUILT_IN, true},
    {"depthwise bytes", &cfxi_backend_depthwise_bytes, CFXI_ALLOW_BUILT_IN, true},
    {"oneDNN", &cfxi_backend_onednn, CFXI_ALLOW_ONEDNN, false},
};

const cfxi_candidate *cfxi_backend_candidate(size_t i)
{
    return i < sizeof all / sizeof *all ? &all[i] : NULL;
}

const cfxi_backend *cfxi_backend_choose(const cfxi_problem *p, const cfxi_choosing *how,
                                        cfx_error *err)
{
    cfx_error own;
    const cfxi_backend *best = NULL;
    double least = INFINITY;
    unsigned found = 0;  /* a bit for each candidate */
    const cfxi_candidate *c;
    for (size_t i = 0; (c = cfxi_backend_candidate(i)); i++) {
        double cost;
        if ((how->allowed && !(how->allowed & c->which)) || c->integers != p->integers.used ||
            !c->backend->query(p, &cost))
            continue;
        found |= 1u << i;
        if (cost < least) {
            least = cost;
            best = c->backend;
        }
    }
    const bool several = (found & (found - 1)) != 0;
    err = cfxi_base_error_or(err, &own);
    err->status = CFX_OK;
    const int tuned =
        several && how->tuner ? cfxi_backend_tune(how->tuner, p, found, how->rt, err) : -1;
    if (err->status != CFX_OK)
        return NULL;
    return tuned >= 0 ? cfxi_backend_candidate((size_t)tuned)->backend : best;
}

/* ---- a problem as text --------------------------------------------------------------------- */

static void print_list(cfxi_out *out, const char *name, const int64_t *list, size_t n)
{
    cfxi_base_out_printf(out, " %s", name);
    for (size_t i = 0; i < n; i++)
        cfxi_base_out_printf(out, "%c%lld", i ? ',' : '=', (long long)list[i]);
}

static void print_post(cfxi_out *out, const cfxi_post *post)
{
    switch (post->kind) {
    case CFXI_POST_ADD: print_list(out, "add", post->rows, 3); break;
    case CFXI_POST_MUL: print_list(out, "mul", post->rows, 3); break;
    case CFXI_POST_CLAMP: cfxi_base_out_str(out, " clamp"); break;
    case CFXI_POST_FN: cfxi_base_out_printf(out, " fn=%d", (int)post->fn); break;
    case CFXI_POST_CHAIN:
        cfxi_base_out_printf(out, " chain=%zu,%zu", post->chain->num_ops, post->chain->num_inputs);
        break;
    }
}

static void print_integers(cfxi_out *out, const cfxi_integers *q)
{
    cfxi_base_out_printf(out, " %s by %s to %s", q->x_signed ? "int8" : "uint8",
                         q->w_signed ? "int8" : "uint8", q->end.to_float ? "float32" : "bytes");
    if (q->end.adds)
        print_list(out, "sum", q->other_rows, 3);
}

void cfxi_backend_print_problem(const cfxi_problem *p, cfxi_out *out)
{
    const cfxi_conv *c = &p->conv;
    if (p->kind == CFXI_PRODUCT) {
        const int64_t sizes[] = {p->m, p->n, p->k, p->x_row, p->out_row};
        print_list(out, "product", sizes, sizeof sizes / sizeof *sizes);
        if (p->factors.scaled)
            print_list(out, "factors", &p->factors.rows, 1);
    } else {
        const int64_t sizes[] = {c->batch, c->groups, c->in_channels, c->out_channels,
                                 c->transposed};
        print_list(out, "convolution", sizes, sizeof sizes / sizeof *sizes);
        print_list(out, "in", c->in, CFXI_SPATIAL);
        print_list(out, "out", c->out, CFXI_SPATIAL);
        print_list(out, "window", c->kernel, CFXI_SPATIAL);
        print_list(out, "stride", c->stride, CFXI_SPATIAL);
        print_list(out, "before", c->before, CFXI_SPATIAL);
        print_list(out, "dilation", c->dilation, CFXI_SPATIAL);
        print_list(out, "x", c->xs, 2 + CFXI_SPATIAL);
        print_list(out, "y", c->ys, 2 + CFXI_SPATIAL);
    }
    if (p->integers.used)
        print_integers(out, &p->integers);
    cfxi_base_out_printf(out, " bias=%d", p->has_bias);
    for (size_t i = 0; i < p->num_posts; i++)
        print_post(out, &p->posts[i]);
    cfxi_base_out_printf(out, " threads=%u %s", p->threads, cfx_isa_name(p->isa));
    if (p->precision != CFX_PRECISION_FLOAT32)
        cfxi_base_out_printf(out, " %s=%d", cfx_precision_name(p->precision), (int)p->bf16);
}
