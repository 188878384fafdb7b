/* module_users.c - who else calls, reads or writes the modules and tensors of a graph.
 *
 * A pass that gives a module new weights must know that nothing else reads them. Two paths may lead
 * to the same memory, so that counts, not the paths. What may be written to is found
 * backwards: what a node that writes is given, and what that shares its memory with, as far as the
 * operator table does not deny it.
 */
#include "ops/ops_impl.h"
#include "module_users_impl.h"

/* What is at `path`, whatever other paths lead there; NULL if nothing is. */
static const void *object_at(const cfxi_survey *s, const char *path)
{
    const cfx_module_tree *m = s->modules;
    const void *memory = m->memory ? m->memory(m->ctx, path) : NULL;
    return memory ? memory : m->identity(m->ctx, path);
}

static cfxi_seen_facts *find(const cfxi_survey *s, const void *object)
{
    return object ? cfxi_base_pointers_get(&s->seen, object) : NULL;
}

/* The entry of what `path` leads to, made if there is none; NULL if that fails, or nothing is
 * there: then *status tells. */
static cfxi_seen_facts *entry_at(cfxi_survey *s, const char *path, cfx_status *status)
{
    const void *object = object_at(s, path);
    cfxi_seen_facts *e = find(s, object);
    if (e || !object)
        return e;
    e = cfxi_base_alloc(s->allocator, sizeof *e);
    if (e && cfxi_base_pointers_set(&s->seen, object, e, s->allocator)) {
        *e = (cfxi_seen_facts){0};
        return e;
    }
    cfxi_base_free(s->allocator, e, sizeof *e);
    *status = CFX_E_NOMEM;
    return NULL;
}

/* ---- what a graph does --------------------------------------------------------------------- */

/* A node, by its place in the graph: what it does, and whether its result may be written to. */
typedef struct entry {
    cfx_node *node;
    cfx_operator op;
    unsigned does;
    bool written;
} entry;

static cfx_status ask_node(cfxi_survey *s, entry *e, cfx_error *err)
{
    CFX_TRY(cfxi_analysis_model_operator(s->model, e->node, &e->op, err));
    CFX_TRY(cfxi_analysis_does(s->model, e->node, &e->does, err));
    s->wrote_any = s->wrote_any || (e->does & CFXI_WRITES_ALL);
    return CFX_OK;
}

typedef struct writing {
    entry *entries;
    uint32_t stamp;
    const entry *by;
} writing;

/* Modules are trusted not to write to their inputs, but not if these are weights. */
static cfx_status note_touch(void *ctx, cfx_node *input, unsigned touch)
{
    const writing *w = ctx;
    entry *e = &w->entries[input->mark - w->stamp];
    e->written = e->written || (touch & CFX_TOUCH_WRITES) ||
                 ((touch & CFX_TOUCH_SHARES) && w->by->written) ||
                 (w->by->node->op == CFX_OP_CALL_MODULE && input->op == CFX_OP_GET_ATTR);
    return CFX_OK;
}

static void find_written(const cfxi_survey *s, entry *entries, size_t n, uint32_t stamp)
{
    const cfx_library *library = cfxi_analysis_model_library(s->model);
    while (n-- > 0) {
        writing w = {entries, stamp, &entries[n]};
        if (w.by->node->op != CFX_OP_OUTPUT)
            (void)cfxi_analysis_node_touches(w.by->node, w.by->op, library, w.by->does, note_touch,
                                             &w);
    }
}

/* "a.b" of "a.b.weight", which is thereby read. */
static cfx_status note_owner(cfxi_survey *s, const cfx_str *path, cfx_status *status)
{
    const char *dot = strrchr(path->data, '.');
    cfx_buffer owner;
    cfx_buffer_init(&owner, s->allocator);
    if (cfx_buffer_append(&owner, path->data, dot ? (size_t)(dot - path->data) : 0) != CFX_OK)
        *status = CFX_E_NOMEM;
    cfxi_seen_facts *e = *status == CFX_OK ? entry_at(s, owner.data, status) : NULL;
    if (e)
        e->read = true;
    cfx_buffer_free(&owner);
    return *status;
}

/* The tensors that a module writes to count as written, even if nothing reads them. */
static cfx_status note_state(cfxi_survey *s, const cfx_node *n, cfx_error *err)
{
    const cfxi_module_facts *facts;
    cfx_status status = CFX_OK;
    CFX_TRY(cfxi_analysis_module_facts(s->model, n->graph, n->callee->ref->name->data, &facts,
                                       err));
    for (size_t at = 0; status == CFX_OK && at < facts->written.size;
         at += strlen(facts->written.data + at) + 1) {
        cfxi_seen_facts *e = entry_at(s, facts->written.data + at, &status);
        if (e)
            e->written = true;
    }
    return status == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
}

static cfx_status note_node(cfxi_survey *s, const cfx_node *n, bool written, cfx_error *err)
{
    cfx_status status = CFX_OK;
    const cfx_str *path = n->callee->ref->name;
    cfxi_seen_facts *e = entry_at(s, path->data, &status);
    if (e && n->op == CFX_OP_CALL_MODULE)
        e->calls++;
    if (e && n->op == CFX_OP_GET_ATTR) {
        e->read = true;
        e->written = e->written || written;
        status = note_owner(s, path, &status);
    }
    return status == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
}

/* The host may run any code, so the graph is frozen meanwhile. */
static cfx_status look_at_nodes(cfxi_survey *s, cfx_graph *g, entry *entries, cfx_error *err)
{
    entry *e = entries;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next, e++) {
        *e = (entry){.node = n};
        CFX_TRY(ask_node(s, e, err));
    }
    find_written(s, entries, g->size, cfxi_ir_graph_number(g));
    for (size_t i = 0; i < g->size; i++) {
        const cfx_node *n = entries[i].node;
        if (n->op == CFX_OP_PLACEHOLDER && entries[i].written && !g->parent)
            s->wrote_any = true;  /* an input may be any attribute */
        if (n->op == CFX_OP_CALL_MODULE || n->op == CFX_OP_GET_ATTR)
            CFX_TRY(note_node(s, n, entries[i].written, err));
        if (n->op == CFX_OP_CALL_MODULE)
            CFX_TRY(note_state(s, n, err));
    }
    return CFX_OK;
}

static cfx_status look_at(cfx_graph *g, void *ctx, cfx_error *err)
{
    const size_t bytes = g->size * sizeof(entry);
    entry *entries = g->size ? cfxi_base_alloc(g->allocator, bytes) : NULL;
    if (g->size && !entries)
        return cfxi_base_nomem(err);
    cfxi_ir_graph_freeze(g);
    cfx_status status = look_at_nodes(ctx, g, entries, err);
    cfxi_ir_graph_thaw(g);
    cfxi_base_free(g->allocator, entries, bytes);
    return status == CFX_OK ? cfxi_analysis_each_region(g, look_at, ctx, err) : status;
}

/* ---- what others ask ----------------------------------------------------------------------- */

cfx_status cfxi_analysis_survey_begin(cfxi_survey *s, cfx_graph *g, cfxi_effect_model *model,
                                      cfx_error *err)
{
    *s = (cfxi_survey){.model = model, .modules = model->modules, .allocator = g->allocator};
    return look_at(g, s, err);
}

void cfxi_analysis_survey_end(cfxi_survey *s)
{
    cfxi_base_pointers_free_all(&s->seen, sizeof(cfxi_seen_facts), s->allocator);
}

cfxi_seen_facts cfxi_analysis_survey_find(const cfxi_survey *s, const char *path)
{
    const cfxi_seen_facts *e = find(s, object_at(s, path));
    return e ? *e : (cfxi_seen_facts){0};
}

cfx_status cfxi_analysis_survey_note_call(cfxi_survey *s, const char *path, cfx_error *err)
{
    cfx_status status = CFX_OK;
    cfxi_seen_facts *e = entry_at(s, path, &status);
    if (e)
        *e = (cfxi_seen_facts){.calls = 1};
    return status == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
}

int cfxi_analysis_survey_is_inside(const cfxi_survey *s, const char *path)
{
    cfx_buffer outer;
    int inside = 0;
    cfx_buffer_init(&outer, s->allocator);
    if (cfx_buffer_append(&outer, path, strlen(path)) != CFX_OK)
        inside = -1;
    for (char *dot; inside == 0 && (dot = strrchr(outer.data, '.')) != NULL;) {
        *dot = '\0';
        inside = cfxi_analysis_survey_find(s, outer.data).calls > 0;
    }
    cfx_buffer_free(&outer);
    return inside;
}
