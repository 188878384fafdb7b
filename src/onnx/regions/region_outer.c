/* region_outer.c - a graph in an attribute: what it uses of the graphs around it, and its import.
 *
 * It may use names of the graphs around it. A region may not: what it uses of them is passed to it.
 * Constants need not be, they are attributes of the module.
 */
#include "regions_impl.h"

/* ---- what a graph uses of those around it -------------------------------------------------- */

static bool add_var(cfxi_outer *k, cfx_var v)
{
    if (!cfxi_base_vec_reserve(&k->vars, 1, sizeof v, k->m->allocator))
        return false;
    ((cfx_var *)k->vars.data)[k->vars.size++] = v;
    return true;
}

static uint32_t hash_of(const void *item) { return ((const cfxi_imported *)item)->hash; }
static bool is_same(const void *item, const void *key, size_t size)
{
    (void)size;
    return item == key;
}

/* Notes a name, if it is a variable of a frame around. */
static bool use_name(cfxi_outer *k, cfxi_text name)
{
    cfxi_imported *v = name.size > 0 ? cfxi_import_find(k->m, k->outer, name) : NULL;
    if (!v || (v->kind != CFXI_IMPORTED_VAR && v->kind != CFXI_IMPORTED_ITEMS) ||
        cfxi_base_set_find(&k->seen, v->hash, is_same, v, 0))
        return true;
    if (!cfxi_base_set_reserve(&k->seen, hash_of, k->m->allocator) ||
        !cfxi_base_vec_reserve(&k->values, 1, sizeof v, k->m->allocator))
        return false;
    cfxi_base_set_insert(&k->seen, v->hash, v);
    ((cfxi_imported **)k->values.data)[k->values.size++] = v;
    if (v->kind == CFXI_IMPORTED_VAR)
        return add_var(k, v->var);
    for (size_t i = 0; i < v->items.n; i++)
        if (v->items.items[i].kind == CFX_VAR_VALUE && !add_var(k, v->items.items[i]))
            return false;
    return true;
}

/* Names of the graph itself are noted, too, if there is one of the same name around: that passes
 * more than is needed, but nothing wrong. */
bool cfxi_import_outer_use(cfxi_outer *k, const cfxi_onnx_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        const cfxi_onnx_node *n = &g->nodes.items[i];
        for (size_t j = 0; j < n->inputs.n; j++)
            if (!use_name(k, n->inputs.items[j]))
                return false;
        for (size_t j = 0; j < n->attributes.n; j++)
            if (n->attributes.items[j].g && !cfxi_import_outer_use(k, n->attributes.items[j].g))
                return false;
    }
    for (size_t i = 0; i < g->outputs.n; i++)
        if (!use_name(k, g->outputs.items[i].name))
            return false;
    return true;
}

void cfxi_import_outer_free(cfxi_outer *k)
{
    cfxi_base_set_free(&k->seen, k->m->allocator);
    cfxi_base_vec_free(&k->values, sizeof(cfxi_imported *), k->m->allocator);
    cfxi_base_vec_free(&k->vars, sizeof(cfx_var), k->m->allocator);
}

/* Gives a frame of the region the values that are passed: `in` are the variables inside. */
bool cfxi_import_outer_bind(const cfxi_outer *k, cfxi_import_frame *f, const cfx_var *in)
{
    cfx_error err = {0};
    const cfx_at at = {.scope = k->m->trace};
    size_t next = 0;
    for (size_t i = 0; i < k->values.size; i++) {
        const cfxi_imported *from = ((cfxi_imported **)k->values.data)[i];
        cfxi_imported *v = cfxi_import_define(k->m, f, from->name, &err);
        cfx_var *items = v && from->kind == CFXI_IMPORTED_ITEMS
                             ? cfxi_base_arena_zeros(&k->m->arena, from->items.n, sizeof *items)
                             : NULL;
        if (!v || (from->kind == CFXI_IMPORTED_ITEMS && !items)) {
            cfxi_capture_scope_take(at, &err);
            return false;
        }
        const uint32_t hash = v->hash;
        *v = *from;
        v->hash = hash;
        v->graph = cfxi_capture_scope_graph(k->m->trace);
        if (from->kind == CFXI_IMPORTED_VAR) {
            v->var = in[next++];
            continue;
        }
        v->graph = NULL;
        for (size_t j = 0; j < from->items.n; j++)
            items[j] = from->items.items[j].kind == CFX_VAR_VALUE ? in[next++]
                                                                  : from->items.items[j];
        v->items.items = items;
    }
    return true;
}

/* ---- running a graph of an attribute ------------------------------------------------------- */

/* A frame for a graph in an attribute of the node. */
cfxi_import_frame cfxi_import_region_frame(cfxi_import_call *c, cfxi_import_frame *outer,
                                   const cfxi_onnx_graph *g)
{
    return (cfxi_import_frame){.outer = outer, .call = c->frame->call,
                               .function = c->frame->function, .opsets = c->frame->opsets,
                               .num_opsets = c->frame->num_opsets, .nodes = g->nodes.items,
                               .num_nodes = g->nodes.n, .graph = g};
}

bool cfxi_import_region_define(cfxi_import *m, cfxi_import_frame *f, cfxi_text name, cfx_var var)
{
    cfx_error err = {0};
    const cfx_at at = {.scope = m->trace};
    cfxi_imported *v = cfxi_import_define(m, f, name, &err);
    if (!v) {
        cfxi_capture_scope_take(at, &err);
        return false;
    }
    v->kind = CFXI_IMPORTED_VAR;
    v->var = var;
    v->graph = cfxi_capture_scope_graph(m->trace);
    return true;
}

/* Imports the graph in the frame, and gives its outputs, each by one; NULL, and the scope fails. */
const cfxi_imported **cfxi_import_region_run(cfxi_import *m, cfxi_import_frame *f,
                                       const cfxi_onnx_graph *g)
{
    cfx_error err = {0};
    const cfx_at at = {.scope = m->trace};
    const cfxi_imported **out = cfxi_base_arena_zeros(&m->arena, g->outputs.n, sizeof *out);
    if (!out)
        cfxi_base_nomem(&err);
    if (m->depth >= CFXI_IMPORT_DEPTH)
        cfx_error_set(&err, CFX_E_LIMIT, "graphs are nested too deep");
    if (err.status == CFX_OK)
        cfxi_import_initializers(m, f, g, &err);
    if (err.status != CFX_OK) {
        cfxi_capture_scope_take(at, &err);
        return NULL;
    }
    m->depth++;
    const bool done = cfxi_import_nodes(m, f) && cfxi_import_outputs(m, f, g, out);
    m->depth--;
    return done ? out : NULL;
}

cfx_var *cfxi_import_room(cfxi_import_call *c, size_t n)
{
    cfx_var *vars = cfxi_base_arena_zeros(&c->import->arena, n, sizeof *vars);
    if (!vars)
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    return vars;
}

const cfxi_onnx_graph *cfxi_import_region_of(cfxi_import_call *c, const char *name)
{
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, name);
    if (!a || !a->g) {
        cfxi_import_fail(c, CFX_E_VALUE, "the graph '%s' is missing", name);
        return NULL;
    }
    return a->g;
}
