/* patterns.c - which calls can be quantized, and which count as one.
 *
 * A node is looked at once: its operator, its row of quantize.def, its configuration. A head and
 * its tail (fusions.def) are one if the tail is the head's only user; in training a layer and its
 * batch-norm are, too. Linear in nodes and edges.
 */
#include "backend_config_impl.h"

#include "analysis/control_flow_impl.h"

#include <cfx/pass.h>

/* ---- the tables ----------------------------------------------------------------------------- */

#define STATIC CFXI_QUANTIZE_STATIC
#define DYNAMIC CFXI_QUANTIZE_DYNAMIC
#define LAYER CFXI_QUANTIZE_LAYER
#define RECURRENT CFXI_QUANTIZE_RECURRENT
static const cfxi_quantize_row rows[CFX_OPERATOR_COUNT] = {
#define CFX_QUANTIZE(op, role, modes, spellings)                                                   \
    [CFX_OPID_##op] = {spellings, CFXI_QUANTIZE_##role, modes},
#include "quantize.def"
};
#undef STATIC
#undef DYNAMIC
#undef LAYER
#undef RECURRENT

typedef struct fusion {
    uint16_t head, tail;
    const char *spellings;
} fusion;

static const fusion fusions[] = {
#define CFX_FUSION(head, tail, spellings) {CFX_OPID_##head, CFX_OPID_##tail, spellings},
#include "fusions.def"
};

static cfx_operator functional(cfx_operator op)
{
    const cfx_operator plain = op ? cfx_operator_functional(op) : CFX_OPID_NONE;
    return plain && rows[op].role == CFXI_QUANTIZE_NONE ? plain : op;
}

const cfxi_quantize_row *cfxi_quantize_find_row(cfx_operator op)
{
    const cfxi_quantize_row *row = &rows[functional(op)];
    return row->role == CFXI_QUANTIZE_NONE ? NULL : row;
}

/* ops.def has these rows side by side. */
bool cfxi_quantize_is_quantized(cfx_operator op)
{
    return op >= CFX_OPID_quantize_per_tensor && op <= CFX_OPID_weight_embedding_bag;
}

/* ---- spellings ------------------------------------------------------------------------------ */

/* Whether one of the words, with blanks between them, is `word`. */
static bool has_word(const char *words, const char *word, size_t size)
{
    while (*words) {
        const size_t n = strcspn(words, " ");
        if (n == size && memcmp(words, word, n) == 0)
            return true;
        words += n + (words[n] == ' ');
    }
    return false;
}

static cfx_status module_is_spelled(const cfx_node *n, const cfx_module_tree *modules,
                                    const char *words, bool *is, cfx_error *err)
{
    static const char long_form[] = "torch.nn.";
    cfx_buffer name;
    cfx_buffer_init(&name, n->graph->allocator);
    cfx_status status = cfxi_ops_module_class(modules, cfxi_quantize_path(n), &name, err);
    *is = status == CFX_OK && strncmp(name.data, long_form, sizeof long_form - 1) == 0 &&
          has_word(words, name.data + 6, name.size - 6);
    cfx_buffer_free(&name);
    return status;
}

cfx_status cfxi_quantize_is_spelled(const cfx_node *n, const cfx_module_tree *modules,
                                    const char *words, bool *is, cfx_error *err)
{
    if (n->op == CFX_OP_CALL_MODULE)
        return module_is_spelled(n, modules, words, is, err);
    const char *spelling = cfxi_ops_node_spelling(n);
    *is = spelling && has_word(words, spelling, strcspn(spelling, " ("));
    return CFX_OK;
}

/* ---- regions -------------------------------------------------------------------------------- */

static cfx_status note_region_input(cfxi_prepare *p, cfx_node *in, cfx_value given)
{
    const cfxi_quantize_facts *f = given.kind == CFX_KIND_NODE
                                       ? cfxi_quantize_facts_of(p, given.as.node) : NULL;
    if ((given.kind != CFX_KIND_NODE || (f && f->number)) &&
        !cfxi_base_pointers_set(&p->numbers, in, in, p->allocator))
        return cfxi_base_nomem(p->err);
    if (f && f->whole && !cfxi_base_pointers_set(&p->wholes, in, in, p->allocator))
        return cfxi_base_nomem(p->err);
    return CFX_OK;
}

/* Remembers which inputs of the regions of a branch or loop are not tensors of floats. */
static cfx_status note_region_inputs(cfxi_prepare *p, cfx_node *n)
{
    cfxi_control c;
    if (!cfxi_analysis_control_of(n, &c))
        return CFX_OK;
    for (size_t i = 0; i < c.n_regions; i++) {
        size_t k = 0;
        const size_t extra = cfxi_analysis_control_extra(&c);
        cfx_node *in = cfxi_ir_next_input(c.regions[i], NULL);
        for (; in; in = cfxi_ir_next_input(c.regions[i], in), k++) {
            if (k < extra)
                CFX_TRY(note_region_input(p, in, cfx_value_none()));
            else if (k - extra < c.n)
                CFX_TRY(note_region_input(p, in, c.operands[k - extra]));
        }
    }
    return CFX_OK;
}

/* ---- configurations ------------------------------------------------------------------------- */

/* float16 without ranges: values are rounded to it. */
static const char *refusal_of_half(const cfxi_quantize_row *row, const cfx_qconfig *config)
{
    if (!(row->modes & CFXI_QUANTIZE_STATIC))
        return "only its weights can be quantized, or its input in each run";
    return (row->modes & CFXI_QUANTIZE_LAYER) && !cfxi_quantize_is_half(&config->weight)
               ? "its configuration has float16 for values, and not for weights" : NULL;
}

static const char *refusal_of(const cfxi_quantize_row *row, const cfx_qconfig *config,
                              bool *quietly)
{
    const cfx_quantize_spec *x = &config->activation;
    const cfx_quantize_spec *w = &config->weight;
    const bool layer = row->modes & CFXI_QUANTIZE_WEIGHTS;
    *quietly = false;
    if (x->observer == CFX_OBSERVE_NOTHING) {
        *quietly = !layer || w->observer == CFX_OBSERVE_NOTHING;
        return *quietly ? "only weights are quantized" : NULL;
    }
    if (cfxi_quantize_each_run(x)) {
        *quietly = !(row->modes & CFXI_QUANTIZE_DYNAMIC);
        return *quietly ? "ranges are not chosen in each run for this operator" : NULL;
    }
    if (cfxi_quantize_is_half(x))
        return refusal_of_half(row, config);
    if (!(row->modes & CFXI_QUANTIZE_STATIC)) {
        *quietly = true;
        return "only its weights can be quantized, or its input in each run";
    }
    if (layer && w->observer == CFX_OBSERVE_NOTHING)
        return "its configuration does not quantize the weights";
    if (row->role == CFXI_QUANTIZE_FIXED && x->observer != CFX_OBSERVE_FIXED)
        return "its configuration does not fix the scale of the result";
    return NULL;
}

const char *cfxi_quantize_refusal(const cfxi_prepare *p, const cfxi_quantize_facts *f,
                                  bool *quietly)
{
    *quietly = false;
    if (f->pattern && !cfxi_quantize_backend_takes(p->opts->backend, f->pattern, f->config))
        return "the backend config has no types for it that its configuration fits";
    return refusal_of(f->row, f->config, quietly);
}

static cfx_status find_config(cfxi_prepare *p, const cfx_node *n, cfxi_quantize_facts *f)
{
    const char *like = f->product ? "cfx.ops.linear" : NULL;
    f->config = NULL;
    return cfxi_ir_is_call(n) ? cfxi_quantize_rules_node(p->rules, n, like, p->modules, &p->order,
                                                         &f->config, p->err) : CFX_OK;
}

/* ---- groups --------------------------------------------------------------------------------- */

static size_t calls_of(const cfxi_prepare *p, const cfx_node *n)
{
    const void *id = p->modules->identity(p->modules->ctx, cfxi_quantize_path(n));
    const size_t *calls = id ? cfxi_base_map_find(&p->calls, id, sizeof *calls) : NULL;
    return calls ? *calls : 0;
}

/* In training a layer and the batch-norm that alone uses it, both called nowhere else, learn as one
 * (as in PyTorch, not transposed convolutions). */
static bool trains_with(const cfxi_prepare *p, const cfx_node *n, const cfxi_quantize_facts *f,
                        const cfx_node *norm)
{
    const cfxi_quantize_facts *of_norm = norm ? cfxi_quantize_facts_of(p, norm) : NULL;
    return of_norm && of_norm->op == CFX_OPID_batch_norm && norm->op == CFX_OP_CALL_MODULE &&
           n->op == CFX_OP_CALL_MODULE &&
           (f->op == CFX_OPID_linear || f->op == CFX_OPID_conv1d || f->op == CFX_OPID_conv2d ||
            f->op == CFX_OPID_conv3d) &&
           calls_of(p, n) == 1 && calls_of(p, norm) == 1;
}

static cfx_status join_norm(cfxi_prepare *p, cfx_node *n, cfxi_quantize_facts *f)
{
    cfx_node *norm = cfxi_quantize_only_user(n);
    bool quietly;
    if (!p->opts->training || !f->row || !f->config || !trains_with(p, n, f, norm) ||
        cfxi_quantize_refusal(p, f, &quietly))
        return CFX_OK;
    f->norm = norm;
    cfxi_quantize_facts_of(p, norm)->is_tail = true;
    return CFX_OK;
}

/* Whether a layer has a configuration that says nothing of its result, and so nothing of a tail. */
static bool is_alone(const cfx_qconfig *config)
{
    return config && (config->activation.observer == CFX_OBSERVE_NOTHING ||
                      cfxi_quantize_each_run(&config->activation));
}

static void join(cfxi_prepare *p, cfx_node *n, cfxi_quantize_facts *f, cfx_node *tail)
{
    cfxi_quantize_facts *g = cfxi_quantize_facts_of(p, tail);
    f->tail = tail;
    g->is_tail = true;
    g->head = n;
    if (n->op != CFX_OP_CALL_MODULE && !is_alone(f->config))  /* as in PyTorch */
        f->config = g->config;
}

/* The last call of a chain of the backend's that begins with `n`, behind `last`; NULL if there is
 * another one between. */
static cfx_node *end_of(const cfxi_prepare *p, const cfxi_quantize_pattern *pattern, cfx_node *last)
{
    for (size_t i = 1; last && i < pattern->n_calls; i++) {
        last = cfxi_quantize_only_user(last);
        const cfxi_quantize_facts *g = last ? cfxi_quantize_facts_of(p, last) : NULL;
        if (!g || g->is_tail || g->kind != cfxi_quantize_backend_call(p->opts->backend, pattern, i))
            return NULL;
    }
    return last;
}

/* The longest chain that fits counts as one; its pattern says what it takes. */
static void join_chain(cfxi_prepare *p, cfx_node *n, cfxi_quantize_facts *f)
{
    const cfx_backend *b = p->opts->backend;
    cfx_node *first = f->norm ? f->norm : n;
    const cfxi_quantize_pattern *pattern = cfxi_quantize_backend_first(b, f->kind);
    for (; pattern && pattern->n_calls > 1; pattern = cfxi_quantize_backend_next(b, pattern)) {
        cfx_node *end = end_of(p, pattern, first);
        if (!end)
            continue;
        f->pattern = pattern;
        f->row = &pattern->row;
        for (cfx_node *at = first; at != end;) {
            at = cfxi_quantize_only_user(at);
            join(p, n, f, at);
        }
        return;
    }
}

/* As in PyTorch, functions that count as one have the configuration of the last, and a linear layer
 * that learns with a batch-norm stands alone. */
static cfx_status join_tail(cfxi_prepare *p, cfx_node *n, cfxi_quantize_facts *f)
{
    cfx_node *tail = cfxi_quantize_only_user(f->norm ? f->norm : n);
    cfxi_quantize_facts *g = tail ? cfxi_quantize_facts_of(p, tail) : NULL;
    bool fits = false;
    for (size_t i = 0; g && !fits && i < sizeof fusions / sizeof *fusions; i++)
        if (fusions[i].head == f->op && fusions[i].tail == g->op)
            CFX_TRY(cfxi_quantize_is_spelled(tail, p->modules, fusions[i].spellings, &fits,
                                             p->err));
    if (fits && !(f->norm && f->op == CFX_OPID_linear))
        join(p, n, f, tail);
    return CFX_OK;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static cfx_status count_call(cfxi_prepare *p, const cfx_node *n)
{
    const void *id = n->op == CFX_OP_CALL_MODULE
                         ? p->modules->identity(p->modules->ctx, cfxi_quantize_path(n)) : NULL;
    size_t *calls = id ? cfxi_base_map_add(&p->calls, id, sizeof *calls, p->allocator) : NULL;
    if (calls)
        ++*calls;
    return id && !calls ? cfxi_base_nomem(p->err) : CFX_OK;
}

/* Its row of quantize.def, if it is spelled so. */
static cfx_status find_row(cfxi_prepare *p, cfx_node *n, cfx_operator op, cfxi_quantize_facts *f)
{
    const cfxi_quantize_row *row = f->number ? NULL : cfxi_quantize_find_row(op);
    bool spelled = p->opts->every_spelling;
    if (row && !spelled)
        CFX_TRY(cfxi_quantize_is_spelled(n, p->modules, row->spellings, &spelled, p->err));
    f->row = f->product ? cfxi_quantize_find_row(CFX_OPID_linear) : row && spelled ? row : NULL;
    return CFX_OK;
}

/* Whether the tables of cfx count. */
static bool takes_own(const cfxi_prepare *p) { return !p->opts->backend || p->opts->backend_adds; }

/* What the backend says of it. */
static cfx_status find_pattern(cfxi_prepare *p, cfx_node *n, cfxi_quantize_facts *f)
{
    const cfx_backend *b = p->opts->backend;
    const cfx_operator every = p->opts->every_spelling ? f->op : CFX_OPID_NONE;
    CFX_TRY(cfxi_quantize_backend_find(b, n, p->modules, every, &f->kind, p->err));
    f->pattern = f->number ? NULL : cfxi_quantize_backend_alone(b, f->kind);
    f->row = f->pattern ? &f->pattern->row : NULL;
    return CFX_OK;
}

static cfx_status look_at(cfxi_prepare *p, cfx_node *n)
{
    cfxi_quantize_facts f = {.row = NULL};
    CFX_TRY(cfx_node_operator_of(n, p->modules, &f.op, p->err));
    f.number = cfxi_quantize_is_number(p, n, f.op);
    f.whole = cfxi_quantize_is_whole(p, n, f.op, f.number);
    const cfx_operator op = f.op;
    f.op = functional(op);
    f.product = p->opts->every_spelling && cfxi_quantize_is_layer(p, n, f.op);
    if (f.product)
        f.op = CFX_OPID_linear;
    if (p->opts->backend)
        CFX_TRY(find_pattern(p, n, &f));
    if (!f.pattern && takes_own(p))
        CFX_TRY(find_row(p, n, op, &f));
    CFX_TRY(find_config(p, n, &f));
    CFX_TRY(count_call(p, n));
    cfxi_quantize_facts *made = cfxi_base_map_add(&p->facts, n, sizeof f, p->allocator);
    if (!made)
        return cfxi_base_nomem(p->err);
    *made = f;
    return note_region_inputs(p, n);
}

cfx_status cfxi_quantize_look(cfxi_prepare *p)
{
    for (cfx_node *n = cfx_graph_first(p->g); n; n = cfx_node_next(n))
        CFX_TRY(look_at(p, n));
    for (cfx_node *n = cfx_graph_first(p->g); n; n = cfx_node_next(n)) {
        cfxi_quantize_facts *f = cfxi_quantize_facts_of(p, n);
        if (f->is_tail || f->number || (!f->row && !p->opts->backend))
            continue;
        CFX_TRY(join_norm(p, n, f));
        if (p->opts->backend)
            join_chain(p, n, f);
        if (!f->pattern && takes_own(p))
            CFX_TRY(join_tail(p, n, f));
    }
    return CFX_OK;
}

/* ---- before observers are put between ------------------------------------------------------- */

/* For inference that is the pass fuse_bn. What else counts as one stays two calls: preparing
 * observes nothing between them. */
cfx_status cfx_graph_fuse_layers(cfx_graph *g, const cfx_module_tree *modules, bool *changed,
                                 cfx_error *err)
{
    return cfx_pass_run(cfx_pass_find("fuse_bn"), g, modules, NULL, changed, err);
}
