/* verify_links.c - whether the structures of a graph agree with each other.
 *
 * A finding here is a mistake of cfx, or memory that somebody wrote to; the messages name the
 * structure for whoever looks for it.
 */
#include "verify_impl.h"

/* ---- the list ------------------------------------------------------------------------------ */

bool cfxi_ir_verify_list(cfxi_verifier *v)
{
    const cfx_graph *g = v->graph;
    const cfx_node *prev = &g->root;
    size_t count = 0;
    for (const cfx_node *n = g->root.next; n != &g->root; prev = n, n = n->next) {
        if (count++ == g->size) {
            cfxi_ir_finding(v, NULL, "the node list is longer than the graph's size, %zu", g->size);
            return false;
        }
        if (n->graph != g || cfxi_ir_node_erased(n)) {
            cfxi_ir_finding(v, n, "it is in the node list, but %s", n->graph != g
                            ? "belongs to another graph" : "was erased");
            return false;
        }
        if (n->prev != prev) {
            cfxi_ir_finding(v, n, "its link to the previous node is wrong");
            return false;
        }
        if (prev != &g->root && prev->order >= n->order)
            cfxi_ir_finding(v, n, "its order label is not above that of %%%s", prev->name->data);
    }
    if (g->root.prev != prev)
        cfxi_ir_finding(v, NULL, "the end of the node list is not its last node");
    if (count != g->size)
        cfxi_ir_finding(v, NULL, "the node list has %zu nodes, but the graph's size is %zu", count,
                        g->size);
    return count == g->size && g->root.prev == prev;
}

/* ---- uses ---------------------------------------------------------------------------------- */

/* Edges are not always in the order of the arguments: inserting one adds its edges at the end. */
typedef struct matcher {
    cfxi_verifier *v;
    const cfx_node *user;
} matcher;

static cfx_status match_use(void *ctx, cfx_node *def)
{
    matcher *m = ctx;
    cfxi_verifier *v = m->v;
    if (!cfxi_ir_is_listed(v, def))
        return CFX_OK;  /* reported with the arguments */
    uint32_t slot = v->slot[def->mark - v->stamp];
    if (slot == 0 || v->left[slot - 1] == 0) {
        cfxi_ir_finding(v, m->user, "its use of %%%s is not counted", def->name->data);
        return CFX_OK;
    }
    v->left[slot - 1]--;
    return CFX_OK;
}

static bool open_edges(cfxi_verifier *v, const cfx_node *n)
{
    if (n->n_inputs > v->graph->size) {
        cfxi_ir_finding(v, n, "it has %u inputs in a graph of %zu nodes", n->n_inputs,
                        v->graph->size);
        return false;
    }
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const cfx_use *edge = &n->inputs[i];
        v->left[i] = edge->count;
        if (edge->user != n)
            cfxi_ir_finding(v, n, "its use edge %u names another user", i);
        if (!cfxi_ir_is_listed(v, edge->def))
            cfxi_ir_finding(v, n, "its use edge %u points at a node that is not in the graph", i);
        else if (v->slot[edge->def->mark - v->stamp])
            cfxi_ir_finding(v, n, "it has two use edges to %%%s", edge->def->name->data);
        else
            v->slot[edge->def->mark - v->stamp] = i + 1;
    }
    return true;
}

static void close_edges(cfxi_verifier *v, const cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const cfx_use *edge = &n->inputs[i];
        if (!cfxi_ir_is_listed(v, edge->def))
            continue;
        uint32_t *slot = &v->slot[edge->def->mark - v->stamp];
        if (*slot == i + 1 && v->left[i] != 0)
            cfxi_ir_finding(v, n, "it counts %u more uses of %%%s than its arguments have",
                            v->left[i], edge->def->name->data);
        if (*slot == i + 1)
            *slot = 0;
    }
}

void cfxi_ir_verify_inputs(cfxi_verifier *v, const cfx_node *n)
{
    matcher m = {v, n};
    if (!open_edges(v, n))
        return;
    if (cfx_value_each_node(cfx_node_args(n), match_use, &m) != CFX_OK ||
        cfx_value_each_node(cfx_node_kwargs(n), match_use, &m) != CFX_OK)
        cfxi_ir_verify_nomem(v);
    close_edges(v, n);
}

static bool is_input_edge(const cfx_use *use)
{
    const cfx_node *user = use->user;
    return use >= user->inputs && use < user->inputs + user->n_inputs;
}

/* Walks the circle of n_users edges; false if it is broken. */
static bool check_users(cfxi_verifier *v, const cfx_node *def)
{
    const cfx_use *use = def->users;
    if (!use != !def->n_users) {
        cfxi_ir_finding(v, def, "its number of users, %u, and its list of uses differ",
                        def->n_users);
        return false;
    }
    for (uint32_t i = 0; i < def->n_users; i++, use = use->next) {
        if (i > 0 && use == def->users) {
            cfxi_ir_finding(v, def, "it has %u users, but its number of users is %u", i,
                            def->n_users);
            return false;
        }
        if (use->def != def || use->next->prev != use) {
            cfxi_ir_finding(v, def, "its list of uses is broken at edge %u", i);
            return false;
        }
        if (!cfxi_ir_is_listed(v, use->user) || !is_input_edge(use)) {
            cfxi_ir_finding(v, def, "one of its use edges belongs to a node that is not in the "
                            "graph");
            return false;
        }
    }
    if (use != def->users) {
        cfxi_ir_finding(v, def, "it has more users than its number of users, %u", def->n_users);
        return false;
    }
    return true;
}

/* Each edge on a use list is some node's input edge, and no list has one twice: so if there are as
 * many of them as input edges, every input edge is on its list. */
void cfxi_ir_verify_users(cfxi_verifier *v)
{
    uint64_t inputs = 0;
    uint64_t users = 0;
    bool good = true;
    for (const cfx_node *n = v->graph->root.next; n != &v->graph->root; n = n->next) {
        good = check_users(v, n) && good;
        inputs += n->n_inputs;
        users += n->n_users;
    }
    if (good && inputs != users)
        cfxi_ir_finding(v, NULL, "nodes have %llu inputs, but %llu users",
                        (unsigned long long)inputs, (unsigned long long)users);
}

/* ---- callees ------------------------------------------------------------------------------- */

/* How many nodes are on the list of a callee. */
static size_t check_callee(cfxi_verifier *v, const cfxi_callee *callee, int op)
{
    const cfxi_callee *mine = callee->ref->callees;
    while (mine && mine != callee)
        mine = mine->next_of_ref;
    if (callee->op != op || !mine || (callee->next && callee->next->prev != callee))
        cfxi_ir_finding(v, callee->first, "its callee is in the wrong list");
    size_t count = 0;
    const cfx_node *n = callee->first;
    for (; n && count < callee->count; count++) {
        if (n->callee != callee || n->op != op || n->same_next->same_prev != n ||
            !cfxi_ir_is_listed(v, n)) {
            cfxi_ir_finding(v, n, "it is in the list of another callee");
            return count;
        }
        n = n->same_next;
        if (n == callee->first)
            return count + 1;
    }
    if (n)
        cfxi_ir_finding(v, n, "its callee has more nodes than its count, %u", callee->count);
    return count;
}

void cfxi_ir_verify_callees(cfxi_verifier *v)
{
    const cfx_graph *g = v->graph;
    size_t listed = 0;
    size_t counted = 0;
    size_t erased = 0;
    for (int op = 0; op < CFX_OPCODE_COUNT; op++) {
        for (const cfxi_callee *callee = g->callees[op]; callee; callee = callee->next) {
            listed += check_callee(v, callee, op);
            counted += callee->count;
        }
    }
    for (const cfx_node *n = g->limbo; n; n = n->same_next)
        erased++;
    if (listed != g->size)
        cfxi_ir_finding(v, NULL, "callees list %zu nodes, but the graph has %zu", listed, g->size);
    if (counted != g->size + erased)
        cfxi_ir_finding(v, NULL, "callees count %zu nodes, but the graph has %zu and %zu erased "
                        "ones",
                        counted, g->size, erased);
}

/* ---- names --------------------------------------------------------------------------------- */

void cfxi_ir_verify_name_entry(cfxi_verifier *v, const cfx_node *n)
{
    const cfxi_name *name = n->name;
    if (cfxi_ir_namespace_find(&v->graph->names, name->data, name->size) != name)
        cfxi_ir_finding(v, n, "its name is not in the graph's namespace");
    const cfx_node *owner = name->owner;
    if (owner && (owner->graph != v->graph || cfxi_ir_node_erased(owner) || owner->name != name))
        cfxi_ir_finding(v, n, "its name is owned by a node that has another name");
}
