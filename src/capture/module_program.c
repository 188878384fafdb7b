/* module_program.c - modules made to run: the graph of a captured one, or one that calls a
 * module of torch.nn, is lowered and kept until the module changes. */
#include "observing_impl.h"
#include "ir/walk_impl.h"

#include <cfx/freeze.h>
#include <cfx/lower.h>

/* ---- making -------------------------------------------------------------------------------- */

static cfx_module *copy_with_graph(const cfx_module *m, cfx_error *err)
{
    cfx_graph *g = cfx_graph_clone(m->graph, NULL, err);
    cfx_module *copy = g ? cfxi_capture_module_copy(m, err) : NULL;
    if (!copy) {
        cfx_graph_release(g);
        return NULL;
    }
    cfx_graph_release(copy->graph);
    copy->graph = g;
    return copy;
}

typedef struct copying {
    const cfx_allocator *allocator;
    cfxi_pointers done;  /* module -> what it became, itself or a copy: retained */
    size_t depth;
} copying;

static cfx_module *with_own_graphs(copying *c, cfx_module *m, bool is_root, cfx_error *err);

/* As a child of *copy, which is made of `m` if it is not there yet, if it is another one. */
static bool put_own(copying *c, const cfx_module *m, const cfxi_member *e, cfx_module **copy,
                    cfx_error *err)
{
    const cfx_datum none = cfx_datum_invalid();
    cfx_module *child = with_own_graphs(c, e->child, false, err);
    bool good = child != NULL;
    if (good && child != e->child) {
        *copy = *copy ? *copy : cfxi_capture_module_copy(m, err);
        good = *copy && cfxi_capture_module_put(*copy, e->name, strlen(e->name), e->kind, child,
                                                none, err) == CFX_OK;
    }
    return good;
}

/* Remembers what `m` became, and takes that over; NULL with *err set. */
static cfx_module *remember_own(copying *c, const cfx_module *m, cfx_module *became, cfx_error *err)
{
    if (cfxi_base_pointers_set(&c->done, m, became, c->allocator))
        return became;
    cfx_module_release(became);
    cfxi_base_nomem(err);
    return NULL;
}

/* `m`, or a copy of it whose graphs below are copies, too: lowering counts on being alone with the
 * graphs that it puts in the place of calls, but other threads may call the same modules. Borrowed
 * from `c`; NULL with *err set. */
static cfx_module *with_own_graphs(copying *c, cfx_module *m, bool is_root, cfx_error *err)
{
    cfx_module *copy = NULL;
    bool good = true;
    cfx_module *known = cfxi_base_pointers_get(&c->done, m);
    if (known)
        return known;
    if (c->depth++ >= CFX_MAX_REGION_DEPTH) {
        cfx_error_set(err, CFX_E_LIMIT, "modules nest more than %d deep", CFX_MAX_REGION_DEPTH);
        return NULL;
    }
    if (m->graph && !is_root) {
        copy = copy_with_graph(m, err);
        good = copy != NULL;
    }
    for (size_t i = 0; good && i < m->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (e->kind == CFXI_MEMBER_CHILD)
            good = put_own(c, m, e, &copy, err);
    }
    c->depth--;
    if (good)
        return remember_own(c, m, copy ? copy : cfx_module_retain(m), err);
    cfx_module_release(copy);
    return NULL;
}

static void forget_own(copying *c)
{
    size_t at = 0;
    for (cfx_module *m; (m = cfxi_base_pointers_next(&c->done, &at)) != NULL;)
        cfx_module_release(m);
    cfxi_base_pointers_free(&c->done, c->allocator);
}

/* ---- what a graph reads -------------------------------------------------------------------- */

/* The tensors that a module has, of which `state` receives those that are read. */
typedef struct reading {
    cfx_state *state;
    const cfx_module *module;
} reading;

/* The tensors that a graph and its regions name. (Their names alone: a module that is in many
 * places has many more.) */
static cfx_status add_read(cfx_graph *g, void *ctx, cfx_error *err)
{
    const reading *r = ctx;
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        const char *path = n->op == CFX_OP_GET_ATTR ? cfx_node_target(n, NULL, NULL) : NULL;
        const cfxi_member *e = path ? cfxi_capture_module_at(r->module, path) : NULL;
        if (e && e->value.kind == CFX_DATUM_TENSOR && !cfx_tensor_is_abstract(e->value.as.tensor))
            CFX_TRY(cfx_state_set(r->state, path, e->value.as.tensor, err));
        CFX_TRY(cfxi_ir_each_region(cfx_node_args(n), add_read, ctx, err));
        CFX_TRY(cfxi_ir_each_region(cfx_node_kwargs(n), add_read, ctx, err));
    }
    return CFX_OK;
}

cfx_state *cfxi_capture_state_read(cfx_graph *g, const cfx_module *root, cfx_error *err)
{
    cfx_state *state = cfx_state_new(root->allocator, err);
    if (state && add_read(g, &(reading){state, root}, err) == CFX_OK)
        return state;
    cfx_state_free(state);
    return NULL;
}

cfx_program *cfxi_capture_program(cfx_graph *g, cfx_module *root, const cfx_library *library,
                                  const cfx_lower_options *options,
                                  const cfx_compile_options *frozen,
                                  const cfx_allocator *allocator, cfx_error *err)
{
    cfx_module_tree tree = cfx_module_as_tree(root);
    const cfx_program_options of = {allocator, library};
    cfx_program *p = NULL;
    tree.library = library;
    if (cfx_graph_lower(g, &tree, options, err) != CFX_OK)
        return NULL;
    cfx_state *state = cfxi_capture_state_read(g, root, err);
    if (state)
        p = frozen ? cfx_program_freeze(g, state, &of, frozen, err)
                   : cfx_program_new(g, state, &of, err);
    cfx_state_free(state);
    return p;
}

static cfx_program *make_program(cfx_at at, cfx_graph *g, cfx_module *m, cfx_error *err)
{
    copying c = {.allocator = at.scope->allocator};
    cfx_module *root = with_own_graphs(&c, m, true, err);
    const cfx_library *library = cfxi_rt_library(at.scope->rt);
    const cfx_library *const known = library;
    cfx_program *p = NULL;
    if (root && cfxi_capture_show_observers(g, root, &library, err) == CFX_OK)
        p = cfxi_capture_program(g, root, library, NULL, NULL, at.scope->allocator, err);
    if (library != known)
        cfx_library_release(library);
    forget_own(&c);
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
            args[i] = cfx_value_node(input);
            continue;
        }
        at.scope->trace = &only;  /* constants are of that graph */
        args[i] = cfxi_capture_var_value(at, in.items[i]);
        at.scope->trace = outer;
        if (args[i].kind == CFX_KIND_INVALID)
            return false;
    }
    return true;
}

/* x -> m(x), for a module that lowering knows. */
static cfx_program *of_call(cfx_at at, cfx_module *m, cfx_vars in, cfx_error *err)
{
    const cfx_datum none = cfx_datum_invalid();
    cfx_value here[CFXI_FEW];
    cfxi_room room = {.here = here, .fits = CFXI_FEW, .item = sizeof *here};
    cfx_program *p = NULL;
    cfx_value *args = cfxi_capture_room_for(at, &room, in.n);
    if (!args)
        return NULL;
    cfx_graph *g = cfx_graph_new(at.scope->allocator, &cfxi_capture_object_host, err);
    cfx_module *holder = g ? cfxi_capture_module_make(at.scope->allocator, err) : NULL;
    if (holder)
        holder->level = -1;  /* whatever `m` is part of, it stays as deep as it is */
    const char *name = m->nn ? cfxi_ops_nn_function(m->nn) : "module";
    cfx_node *call = NULL;
    if (holder &&
        cfxi_capture_module_put(holder, name, strlen(name), CFXI_MEMBER_CHILD, m, none, err) ==
            CFX_OK &&
        add_inputs(at, g, in, args, err))
        call = cfx_graph_call(g, CFX_OP_CALL_MODULE, name, args, in.n, NULL, 0, err);
    if (call && cfx_graph_output(g, cfx_value_node(call), err))
        p = make_program(at, g, holder, err);
    cfx_module_release(holder);
    cfx_graph_release(g);
    cfxi_capture_room_free(at, &room);
    return p;
}

/* ---- calls with regions -------------------------------------------------------------------- */

/* Stand-ins for the nodes that a call reads: its operands, and what is in those that are tuples. */
typedef struct outside {
    cfx_at at;
    cfx_graph *g;
    cfx_node_map *to;  /* nodes of `g` */
    cfxi_vec known;    /* of cfx_datum, borrowed: of each input of `g` */
} outside;

static cfx_value stand_in(void *ctx, cfx_node *n, cfx_error *err)
{
    outside *o = ctx;
    const cfx_value there = cfx_node_map_get(o->to, n);
    if (there.kind != CFX_KIND_INVALID)
        return there;
    if (!cfxi_base_vec_reserve(&o->known, 1, sizeof(cfx_datum), o->at.scope->allocator)) {
        cfxi_base_nomem(err);
        return cfx_value_invalid();
    }
    cfx_node *input = cfx_graph_placeholder(o->g, "x", err);
    if (!input || cfx_node_map_set(o->to, n, cfx_value_node(input), err) != CFX_OK)
        return cfx_value_invalid();
    ((cfx_datum *)o->known.data)[o->known.size++] = cfxi_capture_fact_of(o->at.scope->trace, n);
    return cfx_value_node(input);
}

static bool all_known(const outside *o)
{
    for (size_t i = 0; i < o->known.size; i++)
        if (((const cfx_datum *)o->known.data)[i].kind == CFX_DATUM_INVALID)
            return false;
    return true;
}

/* What the nodes of a trace name: the module, and the constants that its program brought along. */
static cfx_module *named_by_trace(const cfxi_trace *t, cfx_error *err)
{
    const cfx_module *made = t->made;
    if (made->members.size == 0)
        return cfx_module_retain(t->root);
    cfx_module *all = cfxi_capture_module_copy(t->root, err);
    cfx_status status = all ? CFX_OK : CFX_E_NOMEM;
    for (size_t i = 0; i < made->members.size && status == CFX_OK; i++) {
        const cfxi_member *e = cfxi_capture_member_at(made, i);
        status = cfxi_capture_module_put(all, e->name, strlen(e->name), e->kind, e->child, e->value,
                                         err);
    }
    if (status == CFX_OK)
        return all;
    cfx_module_release(all);
    return NULL;
}

/* What the program of one call gives, for what is known of its inputs. */
static cfx_datum infer_copy(const outside *o, cfx_node *copy, cfx_error *err)
{
    const cfx_scope *s = o->at.scope;
    cfx_datum result = cfx_datum_invalid();
    cfx_program *p = NULL;
    cfx_module *all = cfx_graph_output(o->g, cfx_value_node(copy), err)
                          ? named_by_trace(s->trace, err) : NULL;
    if (all)
        p = make_program(o->at, o->g, all, err);
    if (p)
        result = cfx_program_infer(p, s->rt, s->trace->dims, o->known.data, o->known.size, NULL,
                                   NULL, err);
    cfx_program_free(p);
    cfx_module_release(all);
    return result;
}

cfx_datum cfxi_capture_infer_node(cfx_at at, cfx_node *n)
{
    outside o = {.at = at};
    cfx_error err = {0};
    cfx_datum result = cfx_datum_invalid();
    if (!at.scope->trace->dims)
        return result;
    o.g = cfx_graph_new(at.scope->allocator, &cfxi_capture_object_host, &err);
    o.to = o.g ? cfx_node_map_new(at.scope->allocator, &err) : NULL;
    cfx_node *copy = o.to ? cfx_graph_copy_node(o.g, n, stand_in, &o, &err) : NULL;
    const bool known = !copy || all_known(&o);
    if (copy && known)
        result = infer_copy(&o, copy, &err);
    const bool passes = at.scope->trace->lenient && err.status != CFX_E_NOMEM;
    if (known && result.kind == CFX_DATUM_INVALID && cfx_scope_ok(at.scope) && !passes)
        cfxi_capture_scope_take(at, &err);
    cfxi_base_vec_free(&o.known, sizeof(cfx_datum), at.scope->allocator);
    cfx_node_map_free(o.to);
    cfx_graph_release(o.g);
    return result;
}

/* ---- keeping ------------------------------------------------------------------------------- */

static void clear(cfx_scope *s, cfxi_ready *r)
{
    cfxi_base_free(s->allocator, r->pattern, r->n * sizeof *r->pattern);
    cfx_program_free(r->program);
    r->pattern = NULL;
    r->n = 0;
    r->program = NULL;
}

void cfxi_capture_ready_free(cfx_scope *s)
{
    size_t at = 0;
    for (cfxi_ready *r; (r = cfxi_base_pointers_next(&s->ready, &at)) != NULL;) {
        clear(s, r);
        cfx_module_release(r->module);
    }
    cfxi_base_pointers_free_all(&s->ready, sizeof(cfxi_ready), s->allocator);
}

static cfx_status forget_one(void *ctx, cfx_module *m, const char *path, cfx_error *err)
{
    cfx_scope *s = ctx;
    cfxi_ready *r = cfxi_base_pointers_get(&s->ready, m);
    (void)path;
    (void)err;
    if (r) {
        cfxi_base_pointers_set(&s->ready, m, NULL, s->allocator);
        clear(s, r);
        cfx_module_release(m);
        cfxi_base_free(s->allocator, r, sizeof *r);
    }
    return CFX_OK;
}

void cfxi_capture_ready_forget(cfx_at at, cfx_module *m)
{
    cfx_error err = {0};
    if (cfxi_capture_module_each(m, forget_one, at.scope, &err) != CFX_OK)
        cfxi_capture_scope_take(at, &err);
}

/* The entry of a module: an empty one if there was none; NULL if memory is out. */
static cfxi_ready *entry_of(cfx_scope *s, cfx_module *m)
{
    cfxi_ready *r = cfxi_base_pointers_get(&s->ready, m);
    if (r)
        return r;
    r = cfxi_base_alloc(s->allocator, sizeof *r);
    if (!r)
        return NULL;
    *r = (cfxi_ready){.module = m};
    if (cfxi_base_pointers_set(&s->ready, m, r, s->allocator)) {
        cfx_module_retain(m);
        return r;
    }
    cfxi_base_free(s->allocator, r, sizeof *r);
    return NULL;
}

/* Whether the arguments that are part of a program are these. Texts are the caller's, and may have
 * changed since: they never match. */
static bool fits(const cfxi_ready *r, cfx_vars in)
{
    if (r->n != in.n)
        return false;
    for (size_t i = 0; i < in.n; i++) {
        const cfx_var a = r->pattern[i];
        const cfx_var b = in.items[i];
        if (a.kind != b.kind || b.kind == CFX_VAR_STR || b.kind == CFX_VAR_DEVICE)
            return false;
        if (b.kind != CFX_VAR_VALUE && b.kind != CFX_VAR_NONE && b.kind != CFX_VAR_EMPTY &&
            (b.kind == CFX_VAR_BOOL ? a.as.b != b.as.b : a.as.i != b.as.i))
            return false;
    }
    return true;
}

static bool is_ready(const cfxi_ready *r, const cfx_module *m, cfx_vars in)
{
    uint64_t stamp;
    return r->program && cfxi_capture_module_stamp(m, &stamp) && r->stamp == stamp &&
           (m->graph || fits(r, in));
}

/* Remembers for which arguments the program is. */
static bool remember(cfx_scope *s, cfxi_ready *r, cfx_vars in)
{
    if (in.n == 0)
        return true;
    r->pattern = cfxi_base_alloc(s->allocator, in.n * sizeof *r->pattern);
    if (!r->pattern)
        return false;
    memcpy(r->pattern, in.items, in.n * sizeof *r->pattern);
    r->n = in.n;
    return true;
}

const cfx_program *cfxi_capture_ready_program(cfx_at at, cfx_module *m, cfx_vars in)
{
    cfx_error err = {0};
    cfxi_ready *r = entry_of(at.scope, m);
    if (r && is_ready(r, m, in))
        return r->program;
    if (!r) {
        cfx_scope_fail_at(at, CFX_E_NOMEM, "out of memory");
        return NULL;
    }
    clear(at.scope, r);
    cfx_program *p = m->graph ? of_graph(at, m, &err) : of_call(at, m, in, &err);
    if (!p) {
        if (cfx_scope_ok(at.scope))
            cfxi_capture_scope_take(at, &err);
        return NULL;
    }
    r->program = p;
    if (cfxi_capture_module_stamp(m, &r->stamp) && (m->graph || remember(at.scope, r, in)))
        return p;
    clear(at.scope, r);
    cfx_scope_fail_at(at, CFX_E_NOMEM, "out of memory");
    return NULL;
}
