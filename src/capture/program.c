/* program.c - modules made to run: the graph of a captured one, or one that calls a module of
 * torch.nn, is lowered and kept until the module changes. */
#include "capture_impl.h"

#include <cfx/lower.h>

enum { MOST_INPUTS = 32 };

/* ---- making -------------------------------------------------------------------------------- */

static cfx_program *make_program(cfx_at at, cfx_graph *g, cfx_module *root, cfx_error *err)
{
    const cfx_modules tree = cfxi_scope_tree(at.scope, root);
    const cfx_program_options options = {at.scope->allocator, tree.library};
    cfx_state *state = cfx_module_state_at(at, root);
    cfx_program *p = NULL;
    if (state && cfx_graph_lower(g, &tree, NULL, err) == CFX_OK)
        p = cfx_program_new(g, state, &options, err);
    cfx_state_free(state);
    return p;
}

/* The graph as it is now may be edited later: a copy is lowered. */
static cfx_program *of_graph(cfx_at at, cfx_module *m, cfx_error *err)
{
    cfx_graph *copy = cfx_graph_clone(m->graph, NULL, err);
    cfx_program *p = copy ? make_program(at, copy, m, err) : NULL;
    cfx_graph_release(copy);
    return p;
}

/* Appends the arguments of the call: an input for each variable, the rest as they are. */
static bool add_inputs(cfx_at at, cfx_graph *g, cfx_vars in, cfx_value *args, cfx_error *err)
{
    cfxi_trace only = {.graph = g, .top = g};
    cfxi_trace *outer = at.scope->trace;
    for (size_t i = 0; i < in.n; i++) {
        if (in.items[i].kind == CFX_VAR_VALUE) {
            cfx_node *input = cfx_graph_placeholder(g, "x", err);
            if (!input)
                return false;
            args[i] = cfx_from_node(input);
            continue;
        }
        at.scope->trace = &only;  /* constants are of that graph */
        args[i] = cfxi_var_value(at, in.items[i]);
        at.scope->trace = outer;
        if (args[i].kind == CFX_KIND_INVALID)
            return false;
    }
    return true;
}

/* x -> m(x), for a module that lowering knows. */
static cfx_program *of_call(cfx_at at, cfx_module *m, cfx_vars in, cfx_error *err)
{
    const cfx_datum none = {.kind = CFX_DATUM_INVALID};
    cfx_value args[MOST_INPUTS];
    cfx_program *p = NULL;
    if (in.n > MOST_INPUTS) {
        cfx_error_set(err, CFX_E_LIMIT, "more than %d inputs", MOST_INPUTS);
        return NULL;
    }
    cfx_graph *g = cfx_graph_new(at.scope->allocator, &cfxi_object_host, err);
    cfx_module *holder = g ? cfxi_module_make(at.scope->allocator, err) : NULL;
    const char *name = m->nn ? cfx_nn_function(m->nn) : "module";
    cfx_node *call = NULL;
    if (holder && cfxi_module_put(holder, name, strlen(name), CFXI_MEMBER_CHILD, m, none, err) ==
                      CFX_OK &&
        add_inputs(at, g, in, args, err))
        call = cfx_graph_call(g, CFX_OP_CALL_MODULE, name, args, in.n, NULL, 0, err);
    if (call && cfx_graph_output(g, cfx_from_node(call), err))
        p = make_program(at, g, holder, err);
    cfx_module_release(holder);
    cfx_graph_release(g);
    return p;
}

/* ---- calls with regions -------------------------------------------------------------------- */

/* Stand-ins for the nodes that a call reads. */
typedef struct outside {
    cfx_at at;
    cfx_graph *g;
    const cfx_node *from[MOST_INPUTS];
    cfx_value to[MOST_INPUTS];
    cfx_datum known[MOST_INPUTS];
    size_t n;
} outside;

/* What is known of a node: a variable of the scope stands for it. */
static cfx_datum known_of(const cfx_scope *s, const cfx_node *n)
{
    for (size_t i = s->slots.size; i-- > 0;) {
        const cfxi_slot *slot = (const cfxi_slot *)s->slots.data + i;
        if (slot->value.kind == CFX_KIND_NODE && slot->value.as.node == n)
            return slot->datum;
    }
    return (cfx_datum){.kind = CFX_DATUM_INVALID};
}

static cfx_value stand_in(void *ctx, cfx_node *n, cfx_error *err)
{
    outside *o = ctx;
    for (size_t i = 0; i < o->n; i++)
        if (o->from[i] == n)
            return o->to[i];
    cfx_node *input = o->n < MOST_INPUTS ? cfx_graph_placeholder(o->g, "x", err) : NULL;
    if (!input)
        return cfx_invalid();
    o->from[o->n] = n;
    o->known[o->n] = known_of(o->at.scope, n);
    o->to[o->n] = cfx_from_node(input);
    return o->to[o->n++];
}

cfx_datum cfxi_infer_node(cfx_at at, cfx_node *n)
{
    cfxi_trace *t = at.scope->trace;
    outside o = {.at = at};
    cfx_error err = {0};
    cfx_datum result = {.kind = CFX_DATUM_INVALID};
    cfx_program *p = NULL;
    bool known = true;
    if (!t->dims)
        return result;
    o.g = cfx_graph_new(at.scope->allocator, &cfxi_object_host, &err);
    cfx_node *copy = o.g ? cfx_graph_copy_node(o.g, n, stand_in, &o, &err) : NULL;
    for (size_t i = 0; i < o.n; i++)
        known = known && o.known[i].kind != CFX_DATUM_INVALID;
    if (copy && known && cfx_graph_output(o.g, cfx_from_node(copy), &err))
        p = make_program(at, o.g, t->root, &err);
    if (p)
        result = cfx_program_infer(p, at.scope->rt, t->dims, o.known, o.n, NULL, NULL, &err);
    if (known && result.kind == CFX_DATUM_INVALID && cfx_ok(at.scope))
        cfxi_scope_take(at, &err);
    cfx_program_free(p);
    cfx_graph_release(o.g);
    return result;
}

/* ---- keeping ------------------------------------------------------------------------------- */

static uint32_t hash_of(const void *item)
{
    return cfxi_hash_pointer(((const cfxi_ready *)item)->module);
}

static bool is_same(const void *item, const void *key, size_t size)
{
    (void)size;
    return ((const cfxi_ready *)item)->module == key;
}

static void clear(cfx_scope *s, cfxi_ready *r)
{
    cfxi_free(s->allocator, r->pattern, r->n * sizeof *r->pattern);
    cfx_program_free(r->program);
    r->pattern = NULL;
    r->n = 0;
    r->program = NULL;
}

void cfxi_ready_free(cfx_scope *s)
{
    size_t at = 0;
    for (cfxi_ready *r; (r = cfxi_table_next(&s->ready, &at)) != NULL;) {
        clear(s, r);
        cfx_module_release(r->module);
        cfxi_free(s->allocator, r, sizeof *r);
    }
    cfxi_table_free(&s->ready, s->allocator);
}

/* The entry of a module: an empty one if there was none; NULL if memory is out. */
static cfxi_ready *entry_of(cfx_scope *s, cfx_module *m)
{
    cfxi_ready *r = cfxi_table_find(&s->ready, cfxi_hash_pointer(m), is_same, m, 0);
    if (r || !cfxi_table_reserve(&s->ready, hash_of, s->allocator))
        return r;
    r = cfxi_alloc(s->allocator, sizeof *r);
    if (!r)
        return NULL;
    *r = (cfxi_ready){.module = cfx_module_retain(m)};
    cfxi_table_insert(&s->ready, cfxi_hash_pointer(m), r);
    return r;
}

/* Whether the arguments that are part of a program are these. Texts and lists of integers are the
 * caller's, and may have changed since: they never match. */
static bool fits(const cfxi_ready *r, cfx_vars in)
{
    if (r->n != in.n)
        return false;
    for (size_t i = 0; i < in.n; i++) {
        const cfx_var a = r->pattern[i];
        const cfx_var b = in.items[i];
        if (a.kind != b.kind || b.kind == CFX_VAR_STR || b.kind == CFX_VAR_INTS ||
            b.kind == CFX_VAR_DEVICE)
            return false;
        if (b.kind != CFX_VAR_VALUE && b.kind != CFX_VAR_NONE && b.kind != CFX_VAR_EMPTY &&
            (b.kind == CFX_VAR_BOOL ? a.as.b != b.as.b : a.as.i != b.as.i))
            return false;
    }
    return true;
}

static bool is_ready(const cfxi_ready *r, const cfx_module *m, cfx_vars in)
{
    return r->program && r->stamp == cfxi_module_stamp(m) &&
           (m->graph ? r->graph_version == cfx_graph_version(m->graph) : fits(r, in));
}

/* Remembers for which arguments the program is. */
static bool remember(cfx_scope *s, cfxi_ready *r, cfx_vars in)
{
    if (in.n == 0)
        return true;
    r->pattern = cfxi_alloc(s->allocator, in.n * sizeof *r->pattern);
    if (!r->pattern)
        return false;
    memcpy(r->pattern, in.items, in.n * sizeof *r->pattern);
    r->n = in.n;
    return true;
}

const cfx_program *cfxi_ready_program(cfx_at at, cfx_module *m, cfx_vars in)
{
    cfx_error err = {0};
    cfxi_ready *r = entry_of(at.scope, m);
    if (r && is_ready(r, m, in))
        return r->program;
    if (!r) {
        cfx_fail(at, CFX_E_NOMEM, "out of memory");
        return NULL;
    }
    clear(at.scope, r);
    cfx_program *p = m->graph ? of_graph(at, m, &err) : of_call(at, m, in, &err);
    if (!p) {
        if (cfx_ok(at.scope))
            cfxi_scope_take(at, &err);
        return NULL;
    }
    r->program = p;
    r->stamp = cfxi_module_stamp(m);
    r->graph_version = m->graph ? cfx_graph_version(m->graph) : 0;
    if (m->graph || remember(at.scope, r, in))
        return p;
    clear(at.scope, r);
    cfx_fail(at, CFX_E_NOMEM, "out of memory");
    return NULL;
}
