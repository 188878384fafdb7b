/* survey.c - who else calls, reads or writes the modules and tensors of a graph.
 *
 * A pass that gives a module new weights has to know that nobody else sees them. Two paths may lead
 * to the same object, so the objects count, not the paths. What may be written to is found
 * backwards: what a node that writes is given, and what that shares its memory with, as far as the
 * operator table does not deny it.
 */
#include "survey_impl.h"

struct cfxi_seen {
    const void *object;
    cfxi_seen_facts facts;
};

static bool same_object(const void *item, const void *key, size_t size)
{
    (void)size;
    return ((const cfxi_seen *)item)->object == key;
}

static uint32_t hash_of_seen(const void *item)
{
    return cfxi_hash_pointer(((const cfxi_seen *)item)->object);
}

static cfxi_seen *find(const cfxi_survey *s, const void *object)
{
    return object ? cfxi_table_find(&s->table, cfxi_hash_pointer(object), same_object, object, 0)
                  : NULL;
}

/* The entry of what `path` leads to, made if there is none; NULL if that fails, or nothing is
 * there: then *status tells. */
static cfxi_seen *entry_at(cfxi_survey *s, const char *path, cfx_status *status)
{
    const void *object = s->modules->identity(s->modules->ctx, path);
    cfxi_seen *e = find(s, object);
    if (e || !object)
        return e;
    if (!cfxi_table_reserve(&s->table, hash_of_seen, s->allocator) ||
        !(e = cfxi_alloc(s->allocator, sizeof *e))) {
        *status = CFX_E_NOMEM;
        return NULL;
    }
    *e = (cfxi_seen){.object = object};
    cfxi_table_insert(&s->table, cfxi_hash_pointer(object), e);
    return e;
}

cfx_status cfxi_node_operator_of(const cfx_node *n, const cfx_modules *modules, cfx_operator *op,
                                 cfx_error *err)
{
    cfx_error why = {.status = CFX_OK};
    cfx_buffer name;
    *op = cfx_node_operator(n);
    if (n->op != CFX_OP_CALL_MODULE || !modules)
        return CFX_OK;
    cfx_buffer_init(&name, n->graph->allocator);
    cfx_status status = modules->class_name(modules->ctx, n->callee->ref->name->data,
                                            cfx_buffer_sink(&name), &why);
    *op = status == CFX_OK ? cfx_operator_of_class(name.data) : CFX_OPID_NONE;
    cfx_buffer_free(&name);
    if (status == CFX_OK || status == CFX_E_KEY)
        return CFX_OK;
    if (why.status != CFX_OK && err)
        *err = why;
    return cfxi_failed(err, status);
}

/* ---- what a graph does --------------------------------------------------------------------- */

/* Whether the result of a call shares no memory with what it is given. */
static cfx_status is_fresh(const cfx_node *n, const cfx_modules *modules, bool *fresh,
                           cfx_error *err)
{
    cfx_param result;
    cfx_operator op;
    CFX_TRY(cfxi_node_operator_of(n, modules, &op, err));
    *fresh = op != CFX_OPID_NONE && cfx_operator_num_results(op) == 1 &&
             cfx_operator_result(op, 0, &result) && result.alias == 0;
    return CFX_OK;
}

/* Marks what may be written to with `written`. */
static cfx_status mark_written(const cfxi_survey *s, cfx_graph *g, uint32_t written, cfx_error *err)
{
    for (cfx_node *n = g->root.prev; n != &g->root; n = n->prev) {
        cfx_effect effect = CFX_EFFECT_NONE;
        if (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT || n->op == CFX_OP_GET_ATTR)
            continue;
        bool fresh = true;
        CFX_TRY(cfx_node_effect(n, &effect, err));
        if (n->mark == written && effect != CFX_EFFECT_WRITES)
            CFX_TRY(is_fresh(n, s->modules, &fresh, err));
        if (effect != CFX_EFFECT_WRITES && fresh)
            continue;
        for (uint32_t i = 0; i < n->n_inputs; i++)
            n->inputs[i].def->mark = written;
    }
    return CFX_OK;
}

/* "a.b" of "a.b.weight", which is thereby read. */
static cfx_status note_owner(cfxi_survey *s, const cfx_str *path, cfx_status *status)
{
    const char *dot = strrchr(path->data, '.');
    cfx_buffer owner;
    cfx_buffer_init(&owner, s->allocator);
    if (cfx_buffer_append(&owner, path->data, dot ? (size_t)(dot - path->data) : 0) != CFX_OK)
        *status = CFX_E_NOMEM;
    cfxi_seen *e = *status == CFX_OK ? entry_at(s, owner.data, status) : NULL;
    if (e)
        e->facts.read = true;
    cfx_buffer_free(&owner);
    return *status;
}

static cfx_status note_node(cfxi_survey *s, const cfx_node *n, bool written, cfx_error *err)
{
    cfx_status status = CFX_OK;
    const cfx_str *path = n->callee->ref->name;
    cfxi_seen *e = entry_at(s, path->data, &status);
    if (e && n->op == CFX_OP_CALL_MODULE)
        e->facts.calls++;
    if (e && n->op == CFX_OP_GET_ATTR) {
        e->facts.read = true;
        e->facts.written = e->facts.written || written;
        status = note_owner(s, path, &status);
    }
    return status == CFX_OK ? CFX_OK : cfxi_nomem(err);
}

static cfx_status look_at(cfx_graph *g, void *ctx, cfx_error *err)
{
    cfxi_survey *s = ctx;
    uint32_t written = cfxi_graph_stamp(g, 1);
    cfxi_graph_freeze(g);  /* the host may run any code */
    cfx_status status = mark_written(s, g, written, err);
    for (cfx_node *n = g->root.next; n != &g->root && status == CFX_OK; n = n->next)
        if (n->op == CFX_OP_CALL_MODULE || n->op == CFX_OP_GET_ATTR)
            status = note_node(s, n, n->mark == written, err);
    cfxi_graph_thaw(g);
    return status == CFX_OK ? cfxi_each_region(g, look_at, s, err) : status;
}

/* ---- what others ask ----------------------------------------------------------------------- */

cfx_status cfxi_survey_begin(cfxi_survey *s, cfx_graph *g, const cfx_modules *modules,
                             cfx_error *err)
{
    *s = (cfxi_survey){.modules = modules, .allocator = g->allocator};
    return look_at(g, s, err);
}

void cfxi_survey_end(cfxi_survey *s)
{
    size_t at = 0;
    for (cfxi_seen *e; (e = cfxi_table_next(&s->table, &at)) != NULL;)
        cfxi_free(s->allocator, e, sizeof *e);
    cfxi_table_free(&s->table, s->allocator);
}

cfxi_seen_facts cfxi_survey_find(const cfxi_survey *s, const char *path)
{
    const cfxi_seen *e = find(s, s->modules->identity(s->modules->ctx, path));
    return e ? e->facts : (cfxi_seen_facts){0};
}

cfx_status cfxi_survey_note_call(cfxi_survey *s, const char *path, cfx_error *err)
{
    cfx_status status = CFX_OK;
    cfxi_seen *e = entry_at(s, path, &status);
    if (e)
        e->facts = (cfxi_seen_facts){.calls = 1};
    return status == CFX_OK ? CFX_OK : cfxi_nomem(err);
}

int cfxi_survey_is_inside(const cfxi_survey *s, const char *path)
{
    cfx_buffer outer;
    int inside = 0;
    cfx_buffer_init(&outer, s->allocator);
    if (cfx_buffer_append(&outer, path, strlen(path)) != CFX_OK)
        inside = -1;
    for (char *dot; inside == 0 && (dot = strrchr(outer.data, '.')) != NULL;) {
        *dot = '\0';
        inside = cfxi_survey_find(s, outer.data).calls > 0;
    }
    cfx_buffer_free(&outer);
    return inside;
}
