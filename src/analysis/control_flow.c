/* control_flow.c - branches and loops as passes see them: see control_flow_impl.h. */
#include "control_flow_impl.h"

/* Cheaper than asking which operator it is: every pass asks every node. */
static bool may_have_regions(const cfx_node *n)
{
    for (size_t i = 0; i < cfx_node_num_args(n); i++)
        if (cfx_node_arg(n, i).kind == CFX_KIND_GRAPH)
            return true;
    size_t named;
    cfx_value_items(cfx_node_kwargs(n), &named);
    return named > 0;
}

static bool is_sequence(cfx_value v)
{
    return v.kind == CFX_KIND_TUPLE || v.kind == CFX_KIND_LIST;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Whether a region has its inputs first, so many of them, then calls, then one output. */
static bool is_plain(const cfx_graph *region, size_t inputs)
{
    size_t has = 0;
    const cfx_node *last = region->root.prev;
    bool calls = false;
    for (const cfx_node *n = region->root.next; n != &region->root; n = n->next) {
        bool input = n->op == CFX_OP_PLACEHOLDER;
        if ((n->op == CFX_OP_OUTPUT && n != last) || (input && calls) ||
            (input && n->callee->ref->name && n->callee->ref->name->data[0] == '*'))
            return false;
        has += input;
        calls = calls || !input;
    }
    return has == inputs && last->op == CFX_OP_OUTPUT && cfx_node_num_args(last) == 1;
}

static bool count_results(cfxi_control *c)
{
    const cfx_value a = cfx_node_arg(c->outputs[0], 0);
    const cfx_value b = cfx_node_arg(c->outputs[cfxi_analysis_control_body(c)], 0);
    size_t n;
    size_t m;
    cfx_value_items(a, &n);
    cfx_value_items(b, &m);
    if (cfxi_analysis_control_is_loop(c)) {
        c->n_results = c->n;
        return is_sequence(b) && m == c->n;
    }
    c->whole = !is_sequence(a) || a.kind != b.kind || n != m;
    c->n_results = c->whole ? 1 : n;
    return true;
}

static cfx_value container_of(const cfxi_control *c)
{
    const cfx_value v = cfxi_ir_region_arg(c->form, c->node, c->form->operands);
    return v.kind == CFX_KIND_INVALID && c->op == CFX_OPID_cond
               ? cfxi_ir_seq_value(CFX_KIND_TUPLE, c->node->graph->empty, 0) : v;
}

bool cfxi_analysis_control_of(cfx_node *n, cfxi_control *c)
{
    const cfxi_region_form *f = may_have_regions(n) ? cfxi_ir_node_form(n) : NULL;
    if (!f || cfxi_ir_node_erased(n))
        return false;
    *c = (cfxi_control){.node = n, .form = f, .op = cfx_node_operator(n), .n_regions = f->regions};
    c->container = container_of(c);
    c->operands = cfx_value_items(c->container, &c->n);
    if (!is_sequence(c->container))
        return false;
    for (size_t i = 0; i < c->n_regions; i++) {
        c->regions[i] = cfx_value_graph(cfxi_ir_region_arg(f, n, f->first + i));
        if (!c->regions[i] || !is_plain(c->regions[i], c->n + cfxi_analysis_control_extra(c)))
            return false;
        c->outputs[i] = c->regions[i]->root.prev;
    }
    return count_results(c);
}

cfx_node *cfxi_analysis_control_input(const cfxi_control *c, size_t i, size_t k)
{
    cfx_node *n = cfxi_ir_next_input(c->regions[i], NULL);
    for (k += cfxi_analysis_control_extra(c); k > 0 && n; k--)
        n = cfxi_ir_next_input(c->regions[i], n);
    return n;
}

cfx_status cfxi_analysis_control_each_kept(const cfxi_control *c, size_t i, cfxi_kept_fn *fn,
                                           void *ctx)
{
    const bool loop = cfxi_analysis_control_is_loop(c);
    const size_t body = cfxi_analysis_control_body(c);
    const cfx_node *back = cfxi_analysis_control_input(c, body, 0);
    cfx_node *n = cfxi_analysis_control_input(c, i, 0);
    for (size_t k = 0; k < c->n; k++) {
        cfx_node *next = cfxi_ir_next_input(c->regions[i], n);
        const cfx_value v = loop ? cfxi_analysis_control_result(c, body, k) : cfx_value_invalid();
        if (!loop || (v.kind == CFX_KIND_NODE && v.as.node == back))
            CFX_TRY(fn(ctx, n, k));
        back = cfxi_ir_next_input(c->regions[body], back);
        n = next;
    }
    return CFX_OK;
}

cfx_status cfxi_analysis_control_number_inputs(const cfxi_control *c, cfx_node_map *inputs,
                                               cfx_error *err)
{
    for (size_t i = 0; i < c->n_regions; i++) {
        cfx_node *n = cfxi_analysis_control_input(c, i, 0);
        for (size_t k = 0; k < c->n; k++, n = cfxi_ir_next_input(c->regions[i], n))
            CFX_TRY(cfx_node_map_set(inputs, n, cfx_value_int((int64_t)k), err));
    }
    return CFX_OK;
}

cfx_value cfxi_analysis_control_result(const cfxi_control *c, size_t i, size_t k)
{
    const cfx_value v = cfx_node_arg(c->outputs[i], 0);
    if (c->whole || (cfxi_analysis_control_is_loop(c) && i != cfxi_analysis_control_body(c)))
        return v;
    return cfx_value_items(v, NULL)[k];
}

size_t cfxi_analysis_control_taken(const cfxi_control *c, const cfx_node *user)
{
    const cfx_value of = cfx_node_arg(user, 0);
    const cfx_value i = cfx_node_arg(user, 1);
    if (c->whole || !cfxi_analysis_is_getitem(user) || cfx_node_num_args(user) != 2 ||
        user->kwargs || of.kind != CFX_KIND_NODE || of.as.node != c->node || i.kind != CFX_KIND_INT)
        return SIZE_MAX;
    const int64_t n = (int64_t)c->n_results;
    const int64_t at = i.as.i < 0 ? i.as.i + n : i.as.i;
    return i.as.i >= -n && at < n ? (size_t)at : SIZE_MAX;
}

bool cfxi_analysis_control_is_apart(const cfxi_control *c)
{
    for (const cfx_use *use = cfx_node_first_use(c->node); use; use = cfx_use_next(use))
        if (cfxi_analysis_control_taken(c, use->user) == SIZE_MAX)
            return false;
    return true;
}

int cfxi_analysis_is_not_output(void *ctx, cfx_node *user)
{
    (void)ctx;
    return user->op != CFX_OP_OUTPUT;
}

/* ---- owning its regions -------------------------------------------------------------------- */

static const cfx_ref *ref_of(const cfxi_control *c, size_t i)
{
    return cfxi_ir_region_arg(c->form, c->node, c->form->first + i).as.ref;
}

bool cfxi_analysis_control_is_alone(const cfxi_control *c)
{
    const cfx_node *n = c->node;
    if ((n->args && n->args->refs > 1) || (n->kwargs && n->kwargs->refs > 1))
        return false;  /* a copy of the node has the same array */
    for (size_t i = 0; i < c->n_regions; i++)
        if (ref_of(c, i)->refs > 1)
            return false;
    return true;
}

/* ---- changing it --------------------------------------------------------------------------- */

/* The items that are kept, in a container of their kind. */
static cfx_value kept_items(cfx_graph *g, cfx_value container, const bool *keep, cfx_error *err)
{
    size_t n;
    size_t kept = 0;
    const cfx_value *items = cfx_value_items(container, &n);
    cfx_value *some = cfxi_base_alloc(g->allocator, (n + 1) * sizeof *some);
    if (!some) {
        cfxi_base_nomem(err);
        return cfx_value_invalid();
    }
    for (size_t i = 0; i < n; i++)
        if (keep[i])
            some[kept++] = items[i];
    cfx_value v = cfx_value_seq(g, (cfx_kind)container.kind, some, kept, err);
    cfxi_base_free(g->allocator, some, (n + 1) * sizeof *some);
    return v;
}

static cfx_status give_numbers(const cfxi_control *c, cfxi_changes *changes,
                               const int64_t *numbers, cfx_error *err)
{
    for (const cfx_use *use = cfx_node_first_use(c->node); use; use = cfx_use_next(use)) {
        const size_t old = cfxi_analysis_control_taken(c, use->user);
        if (cfx_node_arg(use->user, 1).as.i != numbers[old])
            CFX_TRY(cfxi_analysis_changes_add_arg(changes, use->user, 1, NULL,
                                                  cfx_value_int(numbers[old]), err));
    }
    return CFX_OK;
}

/* New numbers for those who take results; all are kept if `keep` is NULL. */
static cfx_status renumber(const cfxi_control *c, cfxi_changes *changes, const bool *keep,
                           cfx_error *err)
{
    const cfx_allocator *allocator = c->node->graph->allocator;
    int64_t kept = 0;
    int64_t *numbers = cfxi_base_alloc(allocator, (c->n_results + 1) * sizeof *numbers);
    if (!numbers)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < c->n_results; i++) {
        numbers[i] = kept;
        kept += !keep || keep[i];
    }
    cfx_status status = give_numbers(c, changes, numbers, err);
    cfxi_base_free(allocator, numbers, (c->n_results + 1) * sizeof *numbers);
    return status;
}

static void outdate(cfx_node *n)
{
    const cfx_host *host = n->graph->host;
    if (n->binding && host && host->outdate)
        host->outdate(host->ctx, n);
}

/* It gives a tuple of other items than before: what is known of that one does not hold. */
static cfx_status forget_results(const cfxi_control *c, cfx_error *err)
{
    CFX_TRY(cfx_node_set_type(c->node, cfx_value_invalid(), err));
    outdate(c->node);
    for (size_t i = cfxi_analysis_control_is_loop(c) ? cfxi_analysis_control_body(c) : 0;
         i < c->n_regions; i++)
        outdate(c->outputs[i]);
    return CFX_OK;
}

static cfx_status cut_output(const cfxi_control *c, cfxi_changes *changes, size_t i,
                             const bool *keep, cfx_error *err)
{
    cfx_value v = cfx_node_arg(c->outputs[i], 0);
    return cfxi_analysis_changes_add_arg(changes, c->outputs[i], 0, NULL,
                                         kept_items(c->regions[i], v, keep, err), err);
}

cfx_status cfxi_analysis_control_drop_results(cfxi_control *c, const bool *keep, cfx_error *err)
{
    cfxi_changes changes = {.allocator = c->node->graph->allocator};
    cfx_status status = renumber(c, &changes, keep, err);
    for (size_t i = 0; status == CFX_OK && i < c->n_regions; i++)
        status = cut_output(c, &changes, i, keep, err);
    CFX_TRY(cfxi_analysis_changes_end(&changes, status));
    CFX_TRY(forget_results(c, err));
    cfxi_analysis_control_of(c->node, c);
    return CFX_OK;
}

static cfx_status erase_inputs(const cfxi_control *c, size_t i, const bool *keep, cfx_error *err)
{
    cfx_node *n = cfxi_analysis_control_input(c, i, 0);
    for (size_t k = 0; k < c->n; k++) {
        cfx_node *next = cfxi_ir_next_input(c->regions[i], n);
        if (!keep[k])
            CFX_TRY(cfx_graph_erase(c->regions[i], n, err));
        n = next;
    }
    return CFX_OK;
}

cfx_status cfxi_analysis_control_drop_inputs(cfxi_control *c, const bool *keep, cfx_error *err)
{
    const size_t operand = c->form->operands;
    const char *name = c->form->parameters[operand];
    const size_t body = cfxi_analysis_control_body(c);
    const bool loop = cfxi_analysis_control_is_loop(c);
    cfxi_changes changes = {.allocator = c->node->graph->allocator};
    cfx_value operands = kept_items(c->node->graph, c->container, keep, err);
    cfx_status status =
        cfxi_analysis_changes_add_arg(&changes, c->node, operand, name, operands, err);
    if (loop && status == CFX_OK)
        status = renumber(c, &changes, keep, err);
    if (loop && status == CFX_OK)
        status = cut_output(c, &changes, body, keep, err);
    CFX_TRY(cfxi_analysis_changes_end(&changes, status));
    for (size_t i = 0; i < c->n_regions; i++)
        CFX_TRY(erase_inputs(c, i, keep, err));
    if (loop)
        CFX_TRY(forget_results(c, err));
    cfxi_analysis_control_of(c->node, c);
    return CFX_OK;
}

/* ---- adding to it -------------------------------------------------------------------------- */

/* Behind the last input of a region, called after `like`. */
static cfx_node *add_input(cfx_graph *region, const cfx_node *like, cfx_error *err)
{
    const cfx_insert_point old = cfx_graph_insert_point(region);
    cfx_insert_point here = {region->root.next, false};
    cfx_value args = cfx_value_invalid();
    for (; here.node->op == CFX_OP_PLACEHOLDER && !cfxi_ir_node_is_root(here.node);
         here.node = here.node->next)
        if (here.node->args)  /* after an input with a default, Python wants all to have one */
            args = cfx_value_none();
    if (cfxi_ir_node_is_root(here.node))
        here.node = NULL;
    if (args.kind == CFX_KIND_NONE)
        args = cfx_value_tuple(region, &args, 1, err);
    if (cfx_graph_set_insert_point(region, here, err) != CFX_OK)
        return NULL;
    const cfx_target target = {.name = like->name->data, .size = like->name->size};
    cfx_node *n = cfx_graph_create(region, CFX_OP_PLACEHOLDER, target, args, cfx_value_invalid(),
                                   NULL, cfx_value_invalid(), err);
    cfx_graph_set_insert_point(region, old, NULL);
    const cfx_target own = {.name = n ? n->name->data : NULL, .size = n ? n->name->size : 0};
    if (n && cfx_node_set_target(n, own, err) == CFX_OK)
        return n;
    if (n)
        cfx_graph_erase(region, n, NULL);
    else
        cfx_value_discard(region, args);
    return NULL;
}

/* `container` with further items. */
static cfx_value more_items(cfx_graph *g, cfx_value container, const cfx_value *more, size_t n,
                            cfx_error *err)
{
    size_t old;
    const cfx_value *items = cfx_value_items(container, &old);
    cfx_value *all = cfxi_base_alloc(g->allocator, (old + n) * sizeof *all);
    if (!all) {
        cfxi_base_nomem(err);
        return cfx_value_invalid();
    }
    for (size_t i = 0; i < old + n; i++)
        all[i] = i < old ? items[i] : more[i - old];
    cfx_value v = cfx_value_seq(g, (cfx_kind)container.kind, all, old + n, err);
    cfxi_base_free(g->allocator, all, (old + n) * sizeof *all);
    return v;
}

static cfx_value kept_state(const cfxi_control *c, cfx_node *const *made, size_t n, cfx_error *err)
{
    const size_t body = cfxi_analysis_control_body(c);
    cfx_graph *region = c->regions[body];
    cfx_value *values = cfxi_base_alloc(region->allocator, n * sizeof *values);
    if (!values) {
        cfxi_base_nomem(err);
        return cfx_value_invalid();
    }
    for (size_t k = 0; k < n; k++)
        values[k] = cfx_value_node(made[body * n + k]);
    cfx_value v = more_items(region, cfx_node_arg(c->outputs[body], 0), values, n, err);
    cfxi_base_free(region->allocator, values, n * sizeof *values);
    return v;
}

/* A cond that left its operands out is given some. */
static cfx_status add_operands(const cfxi_control *c, cfxi_changes *changes, cfx_value operands,
                               cfx_error *err)
{
    const size_t operand = c->form->operands;
    const char *name = c->form->parameters[operand];
    cfx_node *n = c->node;
    if (cfxi_ir_region_arg(c->form, n, operand).kind != CFX_KIND_INVALID)
        return cfxi_analysis_changes_add_arg(changes, n, operand, name, operands, err);
    if (operands.kind == CFX_KIND_INVALID)
        return CFX_E_NOMEM;
    if (cfx_node_num_args(n) == operand)
        return cfxi_analysis_changes_add(changes, n,
                                         more_items(n->graph, cfx_node_args(n), &operands, 1, err),
                                         cfx_node_kwargs(n), err);
    const cfx_value entry[] = {cfx_value_str(n->graph, name, strlen(name), err), operands};
    if (entry[0].kind == CFX_KIND_INVALID)
        return CFX_E_NOMEM;
    return cfxi_analysis_changes_add(changes, n, cfx_node_args(n),
                                     more_items(n->graph, cfx_node_kwargs(n), entry, 2, err), err);
}

/* Adds operands, or state that never changes, and their inputs, which are called after `names` and
 * go to `made`: those of the first region, then those of the second. The users of a loop must be
 * such as cfxi_analysis_control_taken knows: it gives more than before. */
static cfx_status add_inputs(cfxi_control *c, const cfx_value *values,
                             cfx_node *const *names, size_t n, cfx_node **made,
                             cfx_error *err)
{
    const size_t body = cfxi_analysis_control_body(c);
    size_t count = 0;
    cfxi_changes changes = {.allocator = c->node->graph->allocator};
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < c->n_regions; i++)
        for (size_t k = 0; status == CFX_OK && k < n; k++) {
            made[count] = add_input(c->regions[i], names[k], err);
            status = made[count] ? CFX_OK : CFX_E_NOMEM;
            count += status == CFX_OK;
        }
    if (status == CFX_OK)
        status = add_operands(c, &changes, more_items(c->node->graph, c->container, values, n, err),
                              err);
    if (status == CFX_OK && cfxi_analysis_control_is_loop(c))
        status = renumber(c, &changes, NULL, err);  /* [-1] is another one then */
    if (status == CFX_OK && cfxi_analysis_control_is_loop(c))
        status = cfxi_analysis_changes_add_arg(&changes, c->outputs[body], 0, NULL,
                                               kept_state(c, made, n, err), err);
    status = cfxi_analysis_changes_end(&changes, status);
    while (status != CFX_OK && count > 0) {
        count--;
        cfx_graph_erase(made[count]->graph, made[count], NULL);
    }
    CFX_TRY(status);
    if (cfxi_analysis_control_is_loop(c))
        CFX_TRY(forget_results(c, err));
    cfxi_analysis_control_of(c->node, c);
    return CFX_OK;
}

cfx_status cfxi_analysis_control_hand_in(cfxi_control *c, cfx_node *const *nodes, size_t n,
                                         const cfx_node_map *outside, cfx_error *err)
{
    const cfx_allocator *allocator = c->node->graph->allocator;
    const size_t bytes = n * (sizeof(cfx_value) + CFXI_MAX_REGIONS * sizeof(cfx_node *));
    cfx_value *values = n > 0 ? cfxi_base_alloc(allocator, bytes) : NULL;
    if (!values)
        return n > 0 ? cfxi_base_nomem(err) : CFX_OK;
    cfx_node **made = (cfx_node **)(values + n);
    for (size_t k = 0; k < n; k++)
        values[k] = cfx_node_map_get(outside, nodes[k]);
    cfx_status status = add_inputs(c, values, nodes, n, made, err);
    for (size_t k = 0; status == CFX_OK && k < n; k++) {
        const size_t i = nodes[k]->graph == c->regions[0] ? 0 : 1;
        status = cfx_node_replace_uses(nodes[k], cfx_value_node(made[i * n + k]), NULL, NULL, NULL,
                                       err);
    }
    cfxi_base_free(allocator, values, bytes);
    return status;
}

cfx_status cfxi_analysis_control_set_output(cfxi_control *c, size_t i, cfx_value v, cfx_error *err)
{
    cfxi_changes changes = {.allocator = c->node->graph->allocator};
    cfx_status status = cfxi_analysis_changes_add_arg(&changes, c->outputs[i], 0, NULL, v, err);
    CFX_TRY(cfxi_analysis_changes_end(&changes, status));
    cfxi_analysis_control_of(c->node, c);
    return CFX_OK;
}

cfx_status cfxi_analysis_control_hand_on(cfxi_control *c, const bool *keep, bool *changed,
                                         cfx_error *err)
{
    const size_t body = cfxi_analysis_control_body(c);
    cfx_graph *region = c->regions[body];
    const cfx_value old = cfx_node_arg(c->outputs[body], 0);
    const cfx_value *items = cfx_value_items(old, NULL);
    const cfx_node *input = cfxi_analysis_control_input(c, body, 0);
    cfx_value *all = cfxi_base_alloc(region->allocator, (c->n + 1) * sizeof *all);
    if (!all)
        return cfxi_base_nomem(err);
    *changed = false;
    for (size_t k = 0; k < c->n; k++, input = cfxi_ir_next_input(region, input)) {
        const bool same = items[k].kind == CFX_KIND_NODE && items[k].as.node == input;
        all[k] = keep[k] || same ? items[k] : cfx_value_node((cfx_node *)(uintptr_t)input);
        *changed = *changed || !(keep[k] || same);
    }
    cfx_value v = *changed ? cfx_value_seq(region, (cfx_kind)old.kind, all, c->n, err)
                           : cfx_value_invalid();
    cfxi_base_free(region->allocator, all, (c->n + 1) * sizeof *all);
    return *changed ? cfxi_analysis_control_set_output(c, body, v, err) : CFX_OK;
}
