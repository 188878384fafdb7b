/* backend_config.c - what a backend computes in integers: patterns of calls and their types.
 *
 * Each type of call has a number, by which the nodes of a graph are told: chains are compared by
 * numbers. Rules (rules.c) map a type to its number, so that all spellings of a function are one.
 */
#include "backend_config_impl.h"

/* What begins with a call of one type, by number. */
typedef struct kind {
    size_t first;  /* the first of its patterns, longest first, and 1; 0: none */
} kind;

struct cfx_backend {
    const cfx_allocator *allocator;
    cfx_qrules *types;      /* a type -> a configuration whose `host` is its number and 1 */
    cfx_qrules *operators;  /* likewise "cfx.ops.relu", for every spelling of a call */
    cfxi_vec kinds;         /* of kind, by number */
    cfxi_vec patterns;      /* of cfxi_quantize_pattern */
    cfxi_vec numbers;       /* of size_t: of the calls of all patterns */
    cfxi_vec accepted;      /* of cfx_backend_types: of all patterns */
};

cfx_backend *cfx_backend_new(const cfx_allocator *allocator, cfx_error *err)
{
    allocator = cfxi_base_allocator(allocator);
    cfx_backend *b = cfxi_base_alloc(allocator, sizeof *b);
    if (!b) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *b = (cfx_backend){.allocator = allocator, .types = cfx_qrules_new(allocator, err)};
    b->operators = b->types ? cfx_qrules_new(allocator, err) : NULL;
    if (b->operators)
        return b;
    cfx_backend_free(b);
    return NULL;
}

void cfx_backend_free(cfx_backend *b)
{
    if (!b)
        return;
    cfx_qrules_free(b->types);
    cfx_qrules_free(b->operators);
    cfxi_base_vec_free(&b->kinds, sizeof(kind), b->allocator);
    cfxi_base_vec_free(&b->patterns, sizeof(cfxi_quantize_pattern), b->allocator);
    cfxi_base_vec_free(&b->numbers, sizeof(size_t), b->allocator);
    cfxi_base_vec_free(&b->accepted, sizeof(cfx_backend_types), b->allocator);
    cfxi_base_free(b->allocator, b, sizeof *b);
}

static cfxi_quantize_pattern *pattern_at(const cfx_backend *b, size_t i)
{
    return i > 0 ? (cfxi_quantize_pattern *)b->patterns.data + i - 1 : NULL;
}

static const size_t *calls_of(const cfx_backend *b, const cfxi_quantize_pattern *p)
{
    return (const size_t *)b->numbers.data + p->first_call;
}

/* ---- adding --------------------------------------------------------------------------------- */

static cfx_status set_number(cfx_qrules *r, const char *type, size_t number, cfx_error *err)
{
    const cfx_qconfig config = {.host = (void *)(uintptr_t)(number + 1)};
    return cfx_qrules_set_type(r, type, &config, err);
}

static size_t number_in(const cfx_qconfig *config)
{
    return config ? (size_t)(uintptr_t)config->host - 1 : CFXI_QUANTIZE_UNKNOWN;
}

/* The number of a type, which gets one. */
static cfx_status number_of(cfx_backend *b, const char *type, size_t *number, cfx_error *err)
{
    char name[CFX_SPELLING_SIZE];
    const cfx_qconfig *found;
    bool has;
    CFX_TRY(cfxi_quantize_rules_of_type(b->types, type, &has, &found, err));
    *number = number_in(found);
    if (has)
        return CFX_OK;
    *number = b->kinds.size;
    if (!cfxi_base_vec_reserve(&b->kinds, 1, sizeof(kind), b->allocator))
        return cfxi_base_nomem(err);
    CFX_TRY(set_number(b->types, type, *number, err));
    ((kind *)b->kinds.data)[b->kinds.size++] = (kind){0};
    const char *row = cfx_operator_name(cfxi_quantize_type_operator(type));
    if (!row)
        return CFX_OK;
    snprintf(name, sizeof name, "cfx.ops.%s", row);
    CFX_TRY(cfxi_quantize_rules_of_type(b->operators, name, &has, &found, err));
    return has ? CFX_OK : set_number(b->operators, name, *number, err);
}

static uint8_t role_of(cfx_backend_result result)
{
    switch (result) {
    case CFX_RESULT_OWN: return CFXI_QUANTIZE_OWN;
    case CFX_RESULT_SHARED: return CFXI_QUANTIZE_SHARE;
    case CFX_RESULT_COUNTED: return CFXI_QUANTIZE_COUNT;
    case CFX_RESULT_GIVEN: return CFXI_QUANTIZE_TAKE;
    case CFX_RESULT_UNOBSERVED: break;
    }
    return CFXI_QUANTIZE_OWN;
}

/* What the row of quantize.def would say. A layer is one if cfx can give its weights integers. */
static uint8_t modes_of(const cfx_backend_pattern *p)
{
    const cfxi_quantize_row *own =
        cfxi_quantize_find_row(cfxi_quantize_type_operator(p->calls[0]));
    uint8_t modes = 0;
    for (size_t i = 0; i < p->n_types; i++) {
        const bool is_float = !p->types[i].input.any &&
                              p->types[i].input.dtype == CFX_DTYPE_FLOAT32;
        if (p->types[i].each_run)
            modes |= CFXI_QUANTIZE_DYNAMIC;
        else if (!is_float && p->result != CFX_RESULT_UNOBSERVED)
            modes |= CFXI_QUANTIZE_STATIC;
    }
    return (uint8_t)(modes | (own ? own->modes & CFXI_QUANTIZE_WEIGHTS : 0));
}

/* Puts the new pattern, number `i` and 1, among those that begin like it: longest first, and the
 * later of two for the same calls before the earlier. */
static void link_pattern(cfx_backend *b, cfxi_quantize_pattern *new, size_t i)
{
    size_t *at = &((kind *)b->kinds.data)[calls_of(b, new)[0]].first;
    while (*at && pattern_at(b, *at)->n_calls > new->n_calls)
        at = &pattern_at(b, *at)->next;
    new->next = *at;
    *at = i;
}

cfx_status cfx_backend_add(cfx_backend *b, const cfx_backend_pattern *p, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(b, "backend", err));
    CFX_TRY(cfxi_base_expect(p, "pattern", err));
    if (p->n_calls == 0)
        return cfx_error_set(err, CFX_E_VALUE, "a pattern of a backend has at least one call");
    if (!cfxi_base_vec_reserve(&b->patterns, 1, sizeof(cfxi_quantize_pattern), b->allocator) ||
        !cfxi_base_vec_reserve(&b->numbers, p->n_calls, sizeof(size_t), b->allocator) ||
        !cfxi_base_vec_reserve(&b->accepted, p->n_types, sizeof *p->types, b->allocator))
        return cfxi_base_nomem(err);
    cfxi_quantize_pattern new = {
        .row = {"", role_of(p->result), modes_of(p)}, .first_call = b->numbers.size,
        .n_calls = p->n_calls, .first_type = b->accepted.size, .n_types = p->n_types};
    for (size_t i = 0; i < p->n_calls; i++)
        CFX_TRY(number_of(b, p->calls[i], (size_t *)b->numbers.data + b->numbers.size + i, err));
    b->numbers.size += p->n_calls;
    if (p->n_types > 0)
        memcpy((cfx_backend_types *)b->accepted.data + b->accepted.size, p->types,
               p->n_types * sizeof *p->types);
    b->accepted.size += p->n_types;
    cfxi_quantize_pattern *added = (cfxi_quantize_pattern *)b->patterns.data + b->patterns.size++;
    *added = new;
    link_pattern(b, added, b->patterns.size);
    return CFX_OK;
}

/* ---- finding -------------------------------------------------------------------------------- */

cfx_status cfxi_quantize_backend_find(const cfx_backend *b, const cfx_node *n,
                                      const cfx_module_tree *modules, cfx_operator every,
                                      size_t *number, cfx_error *err)
{
    char name[CFX_SPELLING_SIZE];
    const cfx_qconfig *found = NULL;
    bool has = false;
    *number = CFXI_QUANTIZE_UNKNOWN;
    if (!cfxi_ir_is_call(n))
        return CFX_OK;
    CFX_TRY(cfxi_quantize_rules_of_node(b->types, n, modules, &has, &found, err));
    if (!has && every) {
        snprintf(name, sizeof name, "cfx.ops.%s", cfx_operator_name(every));
        CFX_TRY(cfxi_quantize_rules_of_type(b->operators, name, &has, &found, err));
    }
    *number = number_in(found);
    return CFX_OK;
}

const cfxi_quantize_pattern *cfxi_quantize_backend_first(const cfx_backend *b, size_t number)
{
    return number < b->kinds.size ? pattern_at(b, ((kind *)b->kinds.data)[number].first) : NULL;
}

const cfxi_quantize_pattern *cfxi_quantize_backend_next(const cfx_backend *b,
                                                        const cfxi_quantize_pattern *p)
{
    return pattern_at(b, p->next);
}

const cfxi_quantize_pattern *cfxi_quantize_backend_alone(const cfx_backend *b, size_t number)
{
    const cfxi_quantize_pattern *p = cfxi_quantize_backend_first(b, number);
    while (p && p->n_calls > 1)
        p = cfxi_quantize_backend_next(b, p);
    return p;
}

size_t cfxi_quantize_backend_call(const cfx_backend *b, const cfxi_quantize_pattern *p, size_t i)
{
    return calls_of(b, p)[i];
}

/* ---- types ---------------------------------------------------------------------------------- */

static cfx_dtype dtype_of(const cfx_quantize_spec *s)
{
    return s->observer == CFX_OBSERVE_NOTHING ? CFX_DTYPE_FLOAT32 : s->dtype;
}

static bool keeps_to(const cfx_backend_value *v, const cfx_quantize_spec *s)
{
    const bool fixed = s->observer == CFX_OBSERVE_FIXED, like = s->observer == CFX_OBSERVE_AS_INPUT;
    if (v->ranged && (like || s->low < v->low || s->high > v->high))
        return false;
    if (v->scale_min > 0 && (like || fixed || s->eps < v->scale_min))
        return false;
    return !v->fixed || cfxi_quantize_is_half(s) ||
           (fixed && s->scale == v->scale && s->zero == v->zero);
}

static bool fits(const cfx_backend_value *v, const cfx_quantize_spec *s, cfx_dtype dtype)
{
    return v->any || (v->dtype == dtype && (dtype == CFX_DTYPE_FLOAT32 || keeps_to(v, s)));
}

bool cfxi_quantize_backend_takes(const cfx_backend *b, const cfxi_quantize_pattern *p,
                                 const cfx_qconfig *config)
{
    const cfx_backend_types *types = (const cfx_backend_types *)b->accepted.data + p->first_type;
    const cfx_quantize_spec *x = &config->activation, *w = &config->weight;
    const bool each_run = cfxi_quantize_each_run(x), layer = p->row.modes & CFXI_QUANTIZE_WEIGHTS;
    for (size_t i = 0; i < p->n_types; i++) {
        const cfx_backend_types *t = &types[i];
        if ((t->input.any || t->each_run == each_run) && fits(&t->input, x, dtype_of(x)) &&
            fits(&t->output, x, each_run ? CFX_DTYPE_FLOAT32 : dtype_of(x)) &&
            (!layer || fits(&t->weight, w, dtype_of(w))))
            return true;
    }
    return false;
}
