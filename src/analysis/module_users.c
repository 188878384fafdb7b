/* module_users.c - who else calls, reads or writes the modules and tensors of a graph.
 *
 * A pass that gives a module new weights has to know that nobody else sees them. Two paths may lead
 * to the same object, so the objects count, not the paths. What may be written to is found
 * backwards: what a node that writes is given, and what that shares its memory with, as far as the
 * operator table does not deny it.
 */
#include "ops/ops_impl.h"
#include "module_users_impl.h"

static cfxi_seen_facts *find(const cfxi_survey *s, const void *object)
{
    return object ? cfxi_base_pointers_get(&s->seen, object) : NULL;
}

/* The entry of what `path` leads to, made if there is none; NULL if that fails, or nothing is
 * there: then *status tells. */
static cfxi_seen_facts *entry_at(cfxi_survey *s, const char *path, cfx_status *status)
{
    const void *object = s->modules->identity(s->modules->ctx, path);
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

/* A node, by its place in the graph: whether it writes, whether its result shares no memory with
 * what it is given, and whether that result may be written to. */
typedef struct entry {
    cfx_node *node;
    bool writes, fresh, written;
} entry;

/* A batch-norm that does not say whether it is training is that of torch.nn.functional, and not. */
static bool keeps_statistics(const cfx_node *n, cfx_operator op)
{
    return op == CFX_OPID_batch_norm && cfx_node_operand(n, "training").kind == CFX_KIND_INVALID;
}

static cfx_status ask_node(const cfxi_survey *s, entry *e, cfx_error *err)
{
    cfx_effect effect = CFX_EFFECT_NONE;
    cfx_operator op;
    cfx_schema_param result;
    CFX_TRY(cfx_node_operator_of(e->node, s->modules, &op, err));
    if (e->node->op == CFX_OP_CALL_MODULE) {
        CFX_TRY(cfxi_ops_module_writes(e->node, s->modules, &e->writes, err));
    } else {
        CFX_TRY(cfx_node_effect(e->node, s->modules, &effect, err));
        e->writes = effect == CFX_EFFECT_WRITES && !keeps_statistics(e->node, op);
    }
    e->fresh = op != CFX_OPID_NONE && cfx_operator_num_results(op) == 1 &&
               cfx_operator_result(op, 0, &result) && result.alias == 0;
    return CFX_OK;
}

/* Modules are trusted not to write to their inputs, but not if these are weights. */
static void find_written(entry *entries, size_t n, uint32_t stamp)
{
    while (n-- > 0) {
        const entry *e = &entries[n];
        const bool module = e->node->op == CFX_OP_CALL_MODULE;
        for (uint32_t i = 0; i < e->node->n_inputs; i++) {
            const cfx_node *def = e->node->inputs[i].def;
            entry *input = &entries[def->mark - stamp];
            input->written = input->written || e->writes || (e->written && !e->fresh) ||
                             (module && def->op == CFX_OP_GET_ATTR);
        }
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
    find_written(entries, g->size, cfxi_ir_graph_number(g));
    for (size_t i = 0; i < g->size; i++) {
        const cfx_node *n = entries[i].node;
        if (n->op == CFX_OP_CALL_MODULE || n->op == CFX_OP_GET_ATTR)
            CFX_TRY(note_node(s, n, entries[i].written, err));
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

cfx_status cfxi_analysis_survey_begin(cfxi_survey *s, cfx_graph *g, const cfx_module_tree *modules,
                                      cfx_error *err)
{
    *s = (cfxi_survey){.modules = modules, .allocator = g->allocator};
    return look_at(g, s, err);
}

void cfxi_analysis_survey_end(cfxi_survey *s)
{
    cfxi_base_pointers_free_all(&s->seen, sizeof(cfxi_seen_facts), s->allocator);
}

cfxi_seen_facts cfxi_analysis_survey_find(const cfxi_survey *s, const char *path)
{
    const cfxi_seen_facts *e = find(s, s->modules->identity(s->modules->ctx, path));
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
