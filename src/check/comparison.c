/* comparison.c - which nodes of two graphs are layers to compare, and how far apart they are.
 *
 *     a                                       b, quantized
 *     %c = call_module[target=conv](%x)       %c = call_function[target=cfx.ops.conv2d](...)
 *     %n = call_module[target=bn](%c)         %r = call_function[target=torch.relu](%c)
 *     %r = call_function[target=relu](%n)     %q = call_function[...quantize_per_tensor](%r, ...)
 *                                             %d = call_function[...dequantize_per_tensor](%q, ...)
 *
 * %n and %c are a layer: %c of `b` does the work of both. %r and %d are the next: what integers
 * lose is the layer's that made them.
 *
 * Needs: nothing. Keeps: everything.
 */
#include "comparison_impl.h"

#include "check_impl.h"
#include "ops/ops_impl.h"

#include <cfx/embed/check.h>
#include <cfx/embed/location.h>
#include <cfx/embed/tensor.h>

#include <math.h>
#include <stdlib.h>

/* ---- layers -------------------------------------------------------------------------------- */

static cfxi_layer *layer_at(const cfx_comparison *c, size_t i)
{
    return (cfxi_layer *)c->layers.data + i;
}

static size_t source_of(const cfx_comparison *c, const cfx_node *n)
{
    const size_t *source = cfxi_base_map_find(&c->sources, n, sizeof(size_t));
    return source ? *source : 0;
}

const cfxi_layer *cfxi_check_source(const cfx_comparison *c, const cfx_node *n)
{
    const size_t source = source_of(c, n);
    return source ? layer_at(c, source - 1) : NULL;
}

static cfx_status set_source(cfx_comparison *c, const cfx_node *n, size_t source, cfx_error *err)
{
    size_t *value = cfxi_base_map_add(&c->sources, n, sizeof(size_t), c->allocator);
    if (!value)
        return cfxi_base_nomem(err);
    *value = source;
    return CFX_OK;
}

/* The layer that the first tensor of a call comes from. */
static size_t source_of_inputs(const cfx_comparison *c, const cfx_node *n)
{
    size_t source = 0;
    for (uint32_t i = 0; i < n->n_inputs && !source; i++)
        source = source_of(c, n->inputs[i].def);
    return source;
}

/* ---- integers ------------------------------------------------------------------------------ */

static bool begins_with(const cfx_node *n, const char *word)
{
    const char *name = cfx_operator_name(cfx_node_operator(n));
    return name && strncmp(name, word, strlen(word)) == 0;
}
static bool is_quantize(const cfx_node *n) { return begins_with(n, "quantize_per_"); }
bool cfxi_check_is_dequantize(const cfx_node *n) { return begins_with(n, "dequantize_per_"); }

static cfx_node *user_that(const cfx_node *n, bool (*is)(const cfx_node *n))
{
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (is(cfx_use_user(use)))
            return cfx_use_user(use);
    return NULL;
}

/* What of `n` goes on: the value behind quantize and dequantize, if there are any. */
static cfx_node *behind_integers(cfx_node *n)
{
    const cfx_node *integers = is_quantize(n) ? n : user_that(n, is_quantize);
    cfx_node *real = integers ? user_that(integers, cfxi_check_is_dequantize) : NULL;
    return real ? real : n;
}

/* Looks at what a call of the second graph reads. */
static void look_at_inputs(cfxi_layer *layer, const cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const cfx_node *real = n->inputs[i].def;
        if (!cfxi_check_is_dequantize(real) || real->n_inputs == 0)
            continue;
        const cfx_node *from = real->inputs[0].def;
        layer->is_quantized = true;
        if (is_quantize(from) && from->n_inputs > 0)
            from = from->inputs[0].def;
        if (from->op == CFX_OP_GET_ATTR && begins_with(real, "dequantize_per_tensor"))
            layer->per_tensor = true;
    }
}

/* ---- pairs --------------------------------------------------------------------------------- */

/* What a layer of integers takes over from the calls behind it. */
static bool can_be_absorbed(const cfx_node *n)
{
    size_t size;
    cfx_operator op;
    if (!cfxi_ir_is_call(n))
        return false;
    cfxi_check_callee(n, &size, &op);
    return op == CFX_OPID_batch_norm || (cfx_operator_flags(op) & CFX_OPERATOR_ELEMENTWISE);
}

/* What has computed a value that is dequantized. */
static cfx_node *before_integers(cfx_node *n)
{
    cfx_node *q = cfxi_check_is_dequantize(n) && n->n_inputs > 0 ? n->inputs[0].def : n;
    cfx_node *from = is_quantize(q) && q->n_inputs > 0 ? q->inputs[0].def : n;
    return from->op == CFX_OP_PLACEHOLDER ? n : from;
}

static cfx_status add_layer(cfx_comparison *c, cfx_node *a, cfx_node *b, cfx_error *err)
{
    cfx_node *real = behind_integers(b);
    cfx_node *work = before_integers(b);
    if (!cfxi_ir_is_call(a) && real == b)
        return CFX_OK;  /* an input that stays as it is */
    if (!cfxi_base_vec_reserve(&c->layers, 1, sizeof(cfxi_layer), c->allocator))
        return cfxi_base_nomem(err);
    cfxi_layer *layer = layer_at(c, c->layers.size++);
    *layer = (cfxi_layer){.a = a, .b = real, .work = work, .head = a, .is_quantized = real != work,
                          .partner = cfx_node_operator(work)};
    look_at_inputs(layer, work);
    return set_source(c, a, c->layers.size, err);
}

typedef struct pairing {
    cfx_comparison *c;
    cfx_error *err;
} pairing;

static cfx_status note_pair(void *ctx, cfx_node *a, cfx_node *b, cfx_pairing how)
{
    const pairing *p = ctx;
    cfx_comparison *c = p->c;
    if (!a || a->graph != c->a || a->op == CFX_OP_OUTPUT || a->op == CFX_OP_GET_ATTR)
        return CFX_OK;
    if (b && how != CFX_PAIR_OPERAND && (cfxi_ir_is_call(b) || b->op == CFX_OP_PLACEHOLDER))
        return add_layer(c, a, b, p->err);
    const size_t source = source_of_inputs(c, a);
    cfxi_layer *layer = source ? layer_at(c, source - 1) : NULL;
    if (layer && a->n_inputs > 0 && layer->a == a->inputs[0].def && layer->a->n_users == 1 &&
        cfxi_ir_is_call(layer->a) && can_be_absorbed(a))
        layer->a = a;
    return set_source(c, a, source, p->err);
}

cfx_comparison *cfx_comparison_new(cfx_graph *a, cfx_graph *b, const cfx_allocator *allocator,
                                   cfx_error *err)
{
    if (cfxi_base_expect(a, "first graph", err) != CFX_OK ||
        cfxi_base_expect(b, "second graph", err) != CFX_OK)
        return NULL;
    allocator = cfxi_base_allocator(allocator);
    cfx_comparison *c = cfxi_base_alloc(allocator, sizeof *c);
    if (!c) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *c = (cfx_comparison){.allocator = allocator, .a = cfx_graph_retain(a),
                          .b = cfx_graph_retain(b)};
    pairing p = {c, err};
    if (cfx_graph_correspond(a, b, note_pair, &p, err) == CFX_OK) {
        c->order = cfxi_base_alloc(allocator, (c->layers.size + 1) * sizeof *c->order);
        if (c->order)
            return c;
        cfxi_base_nomem(err);
    }
    cfx_comparison_free(c);
    return NULL;
}

void cfx_comparison_free(cfx_comparison *c)
{
    if (!c)
        return;
    if (c->order)
        cfxi_base_free(c->allocator, c->order, (c->layers.size + 1) * sizeof *c->order);
    cfxi_base_map_free(&c->sources, sizeof(size_t), c->allocator);
    cfxi_base_vec_free(&c->layers, sizeof(cfxi_layer), c->allocator);
    cfx_graph_release(c->b);
    cfx_graph_release(c->a);
    cfxi_base_free(c->allocator, c, sizeof *c);
}

bool cfx_comparison_pair(const cfx_comparison *c, size_t i, cfx_node **a, cfx_node **b)
{
    if (i >= c->layers.size)
        return false;
    *a = layer_at(c, i)->a;
    *b = layer_at(c, i)->b;
    return true;
}

/* ---- values -------------------------------------------------------------------------------- */

static bool same_shape(const cfx_tensor *a, const cfx_tensor *b)
{
    const size_t n = cfx_tensor_ndim(a);
    return n == cfx_tensor_ndim(b) &&
           (n == 0 || memcmp(cfx_tensor_sizes(a), cfx_tensor_sizes(b), n * sizeof(int64_t)) == 0);
}

static bool has_floats(const cfx_tensor *t)
{
    return t && cfx_dtype_is_float(cfx_tensor_dtype(t)) && !cfx_tensor_is_abstract(t);
}

cfx_status cfx_comparison_add(cfx_comparison *c, size_t i, const cfx_tensor *a, const cfx_tensor *b,
                              cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(c, "comparison", err));
    if (i >= c->layers.size)
        return cfx_error_set(err, CFX_E_INDEX, "there is no pair %zu; there are %zu", i,
                             c->layers.size);
    cfxi_layer *layer = layer_at(c, i);
    c->is_sorted = false;
    if (!has_floats(a) || !has_floats(b) || !same_shape(a, b))
        layer->left_out = true;
    return layer->left_out ? CFX_OK : cfxi_check_sums_add(&layer->sums, a, b, err);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static bool has_values(const cfxi_layer *layer) { return !layer->left_out && layer->sums.n > 0; }

/* By squared errors, relative to squares; as they come if they are equal. */
static double noise(const cfxi_layer *layer)
{
    const cfxi_sums *s = &layer->sums;
    return s->dd > 0 ? (s->aa > 0 ? s->dd / s->aa : INFINITY) : 0;
}

static void merge_order(const cfx_comparison *c, size_t *order, size_t n, size_t *room)
{
    const size_t half = n / 2;
    size_t i = 0;
    size_t k = half;
    if (n < 2)
        return;
    merge_order(c, order, half, room);
    merge_order(c, order + half, n - half, room);
    for (size_t to = 0; to < n; to++) {
        const bool first = k == n || (i < half && noise(layer_at(c, order[i])) >=
                                                      noise(layer_at(c, order[k])));
        room[to] = first ? order[i++] : order[k++];
    }
    memcpy(order, room, n * sizeof *order);
}

size_t cfx_comparison_size(const cfx_comparison *c)
{
    size_t n = 0;
    for (size_t i = 0; c && i < c->layers.size; i++)
        n += has_values(layer_at(c, i));
    return n;
}

/* False if memory is out. */
static bool sort(cfx_comparison *c)
{
    const size_t bytes = (c->layers.size + 1) * sizeof(size_t);
    size_t *room = c->is_sorted ? NULL : cfxi_base_alloc(c->allocator, bytes);
    if (!room)
        return c->is_sorted;
    c->n_order = 0;
    for (size_t i = 0; i < c->layers.size; i++)
        if (has_values(layer_at(c, i)))
            c->order[c->n_order++] = i;
    merge_order(c, c->order, c->n_order, room);
    cfxi_base_free(c->allocator, room, bytes);
    return c->is_sorted = true;
}

/* Layers that are passed over, if `skip` is not NULL. */
typedef struct skipping {
    bool (*skip)(void *ctx, const char *name);
    void *ctx;
    int deep;  /* how many of them in a row */
} skipping;

enum { SKIPPED_DEEP = 2 };  /* an observer, and what it observes */

static bool skips(const skipping *s, const cfxi_layer *layer)
{
    return s->skip && s->skip(s->ctx, cfx_node_name(layer->head, NULL));
}

/* The noise of the worst input. One that is skipped stays float, and is rounded for those that read
 * it: then it is that of its own inputs; and so it is of one that is not a tensor, but a tuple. */
static double noise_before(const cfx_comparison *c, const cfxi_layer *layer, skipping s)
{
    double worst = 0;
    for (uint32_t i = 0; i < layer->head->n_inputs; i++) {
        const cfxi_layer *from = cfxi_check_source(c, layer->head->inputs[i].def);
        if (!from || from == layer || (!has_values(from) && s.deep <= 0))
            continue;
        const bool through = s.deep > 0 && (!has_values(from) || skips(&s, from));
        const skipping next = {s.skip, s.ctx, s.deep - 1};
        worst = fmax(worst, through ? noise_before(c, from, next) : noise(from));
    }
    return worst;
}

/* Of a module, that of its class, if it is known: else its partner tells what it computes. */
static cfx_operator operator_of(const cfxi_layer *layer)
{
    size_t size;
    cfx_operator op;
    cfxi_check_callee(layer->head, &size, &op);
    return op == CFX_OPID_NONE ? layer->partner : op;
}

/* Whether a row gives a part of what it reads. That part may have less signal than the rest, and so
 * fewer dB, but nothing is lost by taking it. */
static bool gives_part(cfx_operator op)
{
    static const cfx_operator parts[] = {
        CFX_OPID_getitem, CFX_OPID_slice, CFX_OPID_select, CFX_OPID_narrow, CFX_OPID_chunk,
        CFX_OPID_split, CFX_OPID_split_with_sizes, CFX_OPID_unbind, CFX_OPID_index_select};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (op == parts[i])
            return true;
    return false;
}

/* Rounding to the integers behind a layer, relative to its values, as `noise` is. */
static double rounding(const cfxi_layer *layer)
{
    const cfx_value scale = cfxi_check_is_dequantize(layer->b) ? cfx_node_arg(layer->b, 1)
                                                               : cfx_value_invalid();
    const double step = scale.kind == CFX_KIND_FLOAT ? scale.as.f : 0;
    return layer->sums.aa > 0 ? step * step / 12 * (double)layer->sums.n / layer->sums.aa : 0;
}

/* Whether a norm made the error of small rows of its input as large as the rows: much more than it
 * adds by rounding. */
static bool enlarges(const cfxi_layer *layer, double own)
{
    static const cfx_operator norms[] = {CFX_OPID_layer_norm, CFX_OPID_group_norm,
                                         CFX_OPID_instance_norm, CFX_OPID_rms_norm};
    enum { MUCH = 10 };
    const cfx_operator op = operator_of(layer);
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        if (op == norms[i])
            return own * own > MUCH * rounding(layer);
    return false;
}

enum { OUTLIERS = 30 };  /* the greatest value, in units of the root of the mean square */
#define LITTLE 0.02      /* relative error of its own that is not worth a word */
#define CUT_OFF 0.8      /* of the greatest value that is left */

static const char *advice_for(const cfxi_layer *layer, double own)
{
    const cfxi_sums *s = &layer->sums;
    if (own < LITTLE || !layer->is_quantized || gives_part(operator_of(layer)))
        return NULL;
    if (enlarges(layer, own))
        return "keep it and its input in float";
    if (s->most_b < CUT_OFF * s->most_a)
        return "values are cut off: calibrate with more data, or with minmax";
    if (s->most_a > OUTLIERS * sqrt(s->aa / (double)s->n))
        return "few values are far out: observe with histogram or percentile";
    if (layer->per_tensor)
        return "use weights per channel, or equalize";
    return "keep it in float";
}

static const char *module_of(const cfx_node *n)
{
    const char *path = NULL;
    if (n->op == CFX_OP_CALL_MODULE)
        path = cfx_node_target(n, NULL, NULL);
    else if (n->scope)
        path = cfx_graph_stack_path(n->graph, n->scope);
    return path ? path : "";
}

static const char *operation_of(const cfxi_layer *layer)
{
    size_t size;
    cfx_operator op;
    const char *name = cfxi_check_callee(layer->head, &size, &op);
    if (layer->head->op == CFX_OP_PLACEHOLDER)
        return "input";
    return op == CFX_OPID_NONE && layer->partner ? cfx_operator_name(layer->partner) : name;
}

static void fill(const cfx_comparison *c, const cfxi_layer *layer, skipping s, cfx_compared *out)
{
    const double before = noise_before(c, layer, s);
    *out = (cfx_compared){
        .name = cfx_node_name(layer->head, NULL),
        .partner = cfx_node_name(layer->b, NULL),
        .module = module_of(layer->head),
        .operation = operation_of(layer),
        .file = cfx_node_file(layer->head),
        .line = cfx_node_line(layer->head),
        .close = cfxi_check_sums_closeness(&layer->sums),
        .input_sqnr = before > 0 ? -10 * log10(before) : INFINITY,
        .own_error = sqrt(fmax(noise(layer) - before, 0)),
    };
    out->advice = advice_for(layer, out->own_error);
}

bool cfx_comparison_row(cfx_comparison *c, size_t k, cfx_compared *out)
{
    if (!c || !sort(c) || k >= c->n_order)
        return false;
    fill(c, layer_at(c, c->order[k]), (skipping){.deep = SKIPPED_DEEP}, out);
    return true;
}

bool cfx_comparison_worst_own(cfx_comparison *c, bool (*skip)(void *ctx, const char *name),
                              void *ctx, cfx_compared *out)
{
    const skipping s = {skip, ctx, SKIPPED_DEEP};
    bool found = false;
    cfx_compared row;
    for (size_t i = 0; c && i < c->layers.size; i++) {
        const cfxi_layer *layer = layer_at(c, i);
        if (!has_values(layer) || !layer->is_quantized || skips(&s, layer) ||
            gives_part(operator_of(layer)))
            continue;
        fill(c, layer, s, &row);
        if (found && row.own_error <= out->own_error)
            continue;
        *out = row;
        found = true;
    }
    return found;
}

bool cfx_comparison_result(const cfx_comparison *c, cfx_closeness *out)
{
    const cfx_node *end = c ? cfx_graph_last(c->a) : NULL;
    const cfxi_layer *worst = NULL;
    for (uint32_t i = 0; end && end->op == CFX_OP_OUTPUT && i < end->n_inputs; i++) {
        const cfxi_layer *layer = cfxi_check_source(c, end->inputs[i].def);
        if (layer && has_values(layer) && (!worst || noise(layer) > noise(worst)))
            worst = layer;
    }
    if (worst)
        *out = cfxi_check_sums_closeness(&worst->sums);
    return worst != NULL;
}
