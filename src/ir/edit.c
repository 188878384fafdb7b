/* edit.c - changing nodes in place: arguments, targets, names, position, uses. */
#include "callee_impl.h"

static cfx_status check_alive(const cfx_node *n, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(n, "node", err));
    if (!cfxi_ir_node_erased(n) && !cfxi_ir_node_is_root(n))
        return cfxi_ir_graph_begin_edit(n->graph, err);
    return cfx_error_set(err, CFX_E_GRAPH, "node %%%s was erased and cannot be edited",
                         cfx_node_name(n, NULL));
}

/* ---- arguments ----------------------------------------------------------------------------- */

cfx_status cfx_node_set_args_kwargs(cfx_node *n, cfx_value args, cfx_value kwargs, cfx_error *err)
{
    cfxi_arg_change change;
    CFX_TRY(check_alive(n, err));
    CFX_TRY(cfxi_ir_args_prepare(&change, n, args, kwargs, err));
    cfxi_ir_args_commit(&change);
    cfxi_ir_graph_settle(n->graph);
    return CFX_OK;
}

cfx_status cfx_node_set_args(cfx_node *n, cfx_value args, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(n, "node", err));
    return cfx_node_set_args_kwargs(n, args, cfx_node_kwargs(n), err);
}

cfx_status cfx_node_set_kwargs(cfx_node *n, cfx_value kwargs, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(n, "node", err));
    return cfx_node_set_args_kwargs(n, cfx_node_args(n), kwargs, err);
}

/* A copy of `seq` with `n` items from `with` in place of the `removed` items from `at` on. */
static cfx_value splice(cfx_graph *g, cfx_kind kind, const cfx_seq *seq, size_t at, size_t removed,
                        const cfx_value *with, size_t n, cfx_error *err)
{
    size_t old = seq ? seq->size : 0;
    size_t size = old - removed + n;
    cfx_value *items = cfxi_base_alloc(g->allocator, size * sizeof *items);
    if (!items) {
        cfxi_base_nomem(err);
        return cfx_value_invalid();
    }
    if (at > 0)
        memcpy(items, seq->items, at * sizeof *items);
    memcpy(items + at, with, n * sizeof *items);
    if (old > at + removed)
        memcpy(items + at + n, seq->items + at + removed, (old - at - removed) * sizeof *items);
    cfx_value v = cfx_value_seq(g, kind, items, size, err);
    cfxi_base_free(g->allocator, items, size * sizeof *items);
    return v;
}

/* Recycles a spliced container, but leaves the value that went into it as it was. */
static void unsplice(cfx_graph *g, cfx_value container, cfx_value given)
{
    cfxi_ir_value_hold(given);
    cfx_value_discard(g, container);
    cfxi_ir_value_unhold(given);
}

cfx_status cfx_node_set_arg(cfx_node *n, size_t i, cfx_value v, cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    CFX_TRY(check_alive(n, err));
    if (i >= cfx_node_num_args(n))
        return cfx_error_set(err, CFX_E_INDEX, "node %%%s has %zu arguments; index %zu is out of "
                             "range", n->name->data, cfx_node_num_args(n), i);
    cfx_value args = splice(n->graph, CFX_KIND_TUPLE, n->args, i, 1, &v, 1, err);
    if (args.kind == CFX_KIND_INVALID)
        return err->status;
    cfx_status status = cfx_node_set_args(n, args, err);
    if (status != CFX_OK)
        unsplice(n->graph, args, v);
    return status;
}

cfx_status cfx_node_insert_arg(cfx_node *n, size_t i, cfx_value v, cfx_error *err)
{
    cfx_error own;
    cfxi_arg_change change;
    err = cfxi_base_error_or(err, &own);
    CFX_TRY(check_alive(n, err));
    if (i > cfx_node_num_args(n))
        return cfx_error_set(err, CFX_E_INDEX, "node %%%s has %zu arguments; an argument cannot be "
                             "inserted at index %zu", n->name->data, cfx_node_num_args(n), i);
    cfx_value args = splice(n->graph, CFX_KIND_TUPLE, n->args, i, 0, &v, 1, err);
    if (args.kind == CFX_KIND_INVALID)
        return err->status;
    cfx_status status = cfxi_ir_args_prepare_more(&change, n, args, err);
    if (status != CFX_OK) {
        unsplice(n->graph, args, v);
        return status;
    }
    cfxi_ir_args_commit(&change);
    cfxi_ir_graph_settle(n->graph);
    return CFX_OK;
}

static size_t find_key(const cfx_seq *dict, const char *key, size_t size)
{
    size_t n = dict ? dict->size : 0;
    for (size_t i = 0; i < n; i += 2) {
        const cfx_str *str = dict->items[i].as.str;
        if (str->size == size && memcmp(str->data, key, size) == 0)
            return i;
    }
    return n;
}

cfx_status cfx_node_set_kwarg(cfx_node *n, const char *key, cfx_value v, cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    CFX_TRY(check_alive(n, err));
    cfx_graph *g = n->graph;
    size_t at = find_key(n->kwargs, key, strlen(key));
    bool known = n->kwargs && at < n->kwargs->size;
    cfx_value entry[2] = {cfx_value_str(g, key, strlen(key), err), v};
    if (entry[0].kind == CFX_KIND_INVALID)
        return err->status;
    cfx_value dict = splice(g, CFX_KIND_DICT, n->kwargs, at, known ? 2 : 0, entry, 2, err);
    if (dict.kind == CFX_KIND_INVALID) {
        cfx_value_discard(g, entry[0]);
        return err->status;
    }
    cfx_status status = cfx_node_set_kwargs(n, dict, err);
    if (status != CFX_OK)
        unsplice(g, dict, v);
    return status;
}

/* ---- what it calls, its type, its name ----------------------------------------------------- */

static void switch_callee(cfx_node *n, cfxi_callee *callee)
{
    cfxi_callee *old = n->callee;
    cfxi_ir_callee_unlist(n);
    cfxi_ir_callee_add(callee, n);
    old->count--;
    cfxi_ir_callee_tidy(n->graph, old);
    n->graph->version++;
    const cfx_host *host = n->graph->host;
    if (n->binding && host && host->retarget)
        host->retarget(host->ctx, n);
    cfxi_ir_graph_settle(n->graph);
}

cfx_status cfx_node_set_target(cfx_node *n, cfx_target target, cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    CFX_TRY(check_alive(n, err));
    cfxi_callee *callee = cfxi_ir_callee_get(n->graph, cfx_node_op(n), target, err);
    if (callee) {
        switch_callee(n, callee);
        return CFX_OK;
    }
    const cfx_status status = err->status;
    cfxi_ir_graph_settle(n->graph);
    return status;
}

cfx_status cfx_node_set_op(cfx_node *n, cfx_opcode op, cfx_error *err)
{
    CFX_TRY(check_alive(n, err));
    if ((unsigned)op >= CFX_OPCODE_COUNT)
        return cfx_error_set(err, CFX_E_VALUE, "%d is not an opcode", (int)op);
    cfxi_callee *callee = cfxi_ir_callee_of_ref(n->graph, op, n->callee->ref, err);
    if (!callee)
        return CFX_E_NOMEM;
    switch_callee(n, callee);
    return CFX_OK;
}

cfx_status cfx_node_set_type(cfx_node *n, cfx_value type, cfx_error *err)
{
    CFX_TRY(check_alive(n, err));
    cfx_graph *g = n->graph;
    CFX_TRY(cfxi_ir_type_check(g, type, err));
    if (!cfxi_ir_node_set_type(n, type))
        return cfxi_base_nomem(err);
    g->version++;
    cfxi_ir_graph_settle(g);
    return CFX_OK;
}

static void give_name(cfx_node *n, cfxi_name *name)
{
    if (n->name->owner == n)
        n->name->owner = NULL;
    if (!name->owner)
        name->owner = n;
    n->name = name;
    n->graph->version++;
}

cfx_status cfx_node_rename(cfx_node *n, const char *wish, cfx_error *err)
{
    CFX_TRY(check_alive(n, err));
    size_t size = strlen(wish);
    if (size == n->name->size && memcmp(wish, n->name->data, size) == 0)
        return CFX_OK;
    cfxi_name *name = cfxi_ir_namespace_take(&n->graph->names, wish, size, false, err);
    if (!name)
        return CFX_E_NOMEM;
    give_name(n, name);
    return CFX_OK;
}

cfx_status cfx_node_set_name(cfx_node *n, const char *text, size_t size, cfx_error *err)
{
    CFX_TRY(check_alive(n, err));
    cfxi_name *name = cfxi_ir_namespace_entry(&n->graph->names, text, size, err);
    if (!name)
        return CFX_E_NOMEM;
    if (name != n->name)
        give_name(n, name);
    return CFX_OK;
}

bool cfxi_ir_has_usual_name(const cfx_node *n)
{
    const cfx_str *usual = n->callee->wish;
    const size_t size = cfxi_ir_base_size(n->name->data, n->name->size);
    if (!usual && cfxi_ir_callee_ask(n->graph, n->callee, NULL) == CFX_OK)
        usual = n->callee->wish;
    if (!usual || usual->size < size)
        return !usual;
    for (size_t i = 0; i < size; i++)
        if (n->name->data[i] != (cfxi_base_is_ident(usual->data[i]) ? usual->data[i] : '_'))
            return false;
    return size == usual->size || !cfxi_base_is_ident(usual->data[size]) ||
           cfxi_ir_base_size(usual->data, usual->size) == size;
}

/* The name of a node that somebody has set is kept if it is free; not one that it came with. */
static cfxi_name *name_anew(cfx_node *n, const char *wish, const cfxi_name *none, cfx_error *err)
{
    cfx_graph *g = n->graph;
    if (wish)
        return cfxi_ir_namespace_take(&g->names, wish, strlen(wish), false, err);
    if (n->op == CFX_OP_PLACEHOLDER && n->name != none)
        return cfxi_ir_namespace_keep(&g->names, n->name->data, n->name->size, false, err);
    if (cfxi_ir_callee_ask(g, n->callee, err) != CFX_OK)
        return NULL;
    if (none && n->name != none && !cfxi_ir_has_usual_name(n) &&
        !cfx_namespace_has(&g->names, n->name->data, n->name->size))
        return cfxi_ir_namespace_keep(&g->names, n->name->data, n->name->size, false, err);
    return cfxi_ir_callee_name(g, n->callee, err);
}

/* Names that nodes were made with, in a graph where that is put off, are none of theirs. */
static void drop_taken_names(cfx_graph *g)
{
    for (cfx_node *n = g->root.next; g->nameless && n != &g->root; n = n->next)
        if (n->op != CFX_OP_PLACEHOLDER && n->name->taken)
            n->name = g->nameless;
}

cfx_status cfxi_ir_graph_defer_names(cfx_graph *g, cfx_error *err)
{
    g->nameless = cfxi_ir_namespace_exact(&g->names, "_", 1, err);
    return g->nameless ? CFX_OK : CFX_E_NOMEM;
}

cfx_status cfxi_ir_graph_name_anew(cfx_graph *g, const char *const *inputs, cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    const cfxi_name *none = g->nameless;
    drop_taken_names(g);
    g->nameless = NULL;
    cfxi_ir_namespace_forget(&g->names);
    for (size_t op = 0; op < CFX_OPCODE_COUNT; op++)
        for (cfxi_callee *callee = g->callees[op]; callee; callee = callee->next)
            callee->base = NULL;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        const char *wish = inputs && n->op == CFX_OP_PLACEHOLDER ? *inputs++ : NULL;
        cfxi_name *name = name_anew(n, wish, none, err);
        if (!name)
            return err->status;
        name->owner = n;
        n->name = name;
    }
    g->version++;
    return CFX_OK;
}

cfx_status cfxi_ir_graph_name_rest(cfx_graph *g, cfx_node *last, cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    const cfxi_name *none = g->nameless;
    g->nameless = NULL;
    for (cfx_node *n = last->next; none && n != &g->root; n = n->next) {
        const bool keeps = n->name != none && n->name->owner == n;
        if (!keeps && cfxi_ir_callee_ask(g, n->callee, err) != CFX_OK)
            return err->status;
        cfxi_name *name = keeps ? cfxi_ir_namespace_exact(&g->names, n->name->data,
                                                          n->name->size, err)
                                : cfxi_ir_callee_name(g, n->callee, err);
        if (!name)
            return err->status;
        name->owner = n;
        n->name = name;
    }
    g->version++;
    return CFX_OK;
}

/* ---- position ------------------------------------------------------------------------------ */

static cfx_status move(cfx_node *before, cfx_node *n, cfx_error *err)
{
    CFX_TRY(check_alive(n, err));
    if (n->graph != before->graph)
        return cfx_error_set(err, CFX_E_GRAPH, "node %%%s belongs to another graph and cannot be "
                             "moved into this one; copy it instead", n->name->data);
    if (n == before)
        return CFX_OK;
    cfxi_ir_list_remove(n);
    cfxi_ir_list_insert(before, n);
    n->graph->version++;
    return CFX_OK;
}

static cfx_status check_anchor(const cfx_node *at, cfx_error *err)
{
    if (!cfxi_ir_node_erased(at))
        return CFX_OK;
    return cfx_error_set(err, CFX_E_GRAPH, "node %%%s was erased; choose a node that is still in "
                         "the graph as insertion point",
                         at->name->data);
}

cfx_status cfx_node_prepend(cfx_node *n, cfx_node *x, cfx_error *err)
{
    CFX_TRY(check_anchor(n, err));
    return move(n, x, err);
}

cfx_status cfx_node_append(cfx_node *n, cfx_node *x, cfx_error *err)
{
    CFX_TRY(check_anchor(n, err));
    return n == x ? CFX_OK : move(n->next, x, err);
}

/* ---- replacing uses ------------------------------------------------------------------------ */

typedef struct replacement {
    const cfx_node *old;
    cfx_value with;
} replacement;

static cfx_value replace_one(void *ctx, cfx_node *n, cfx_error *err)
{
    const replacement *r = ctx;
    (void)err;
    return n == r->old ? r->with : cfx_value_node(n);
}

/* Prepares `user` with its uses of `old` replaced. */
static cfx_status prepare_user(cfxi_arg_change *change, cfx_node *user, replacement *r,
                               cfx_error *err)
{
    cfx_graph *g = user->graph;
    cfx_value args = cfx_value_map(g, g, cfx_node_args(user), replace_one, r, err);
    if (args.kind == CFX_KIND_INVALID)
        return err->status;
    cfx_value kwargs = cfx_value_map(g, g, cfx_node_kwargs(user), replace_one, r, err);
    cfx_status status = err->status;
    if (kwargs.kind != CFX_KIND_INVALID)
        status = cfxi_ir_args_prepare(change, user, args, kwargs, err);
    if (status != CFX_OK) {
        cfx_value_discard(g, args);
        cfx_value_discard(g, kwargs);
    }
    return status;
}

static cfx_status replace_input(cfx_node *n, cfx_node *old, cfx_value with, cfx_error *err)
{
    replacement r = {old, with};
    cfxi_arg_change change;
    if (cfx_node_uses(n, old))
        CFX_TRY(cfxi_ir_run_hooks(n->graph, CFX_HOOK_REPLACE, old, with, n, err));
    CFX_TRY(check_alive(n, err));
    CFX_TRY(prepare_user(&change, n, &r, err));
    cfxi_ir_args_commit(&change);
    return CFX_OK;
}

cfx_status cfx_node_replace_input(cfx_node *n, cfx_node *old, cfx_value with, cfx_error *err)
{
    cfx_error own;
    cfx_iter pin;  /* a hook may erase what we look at */
    err = cfxi_base_error_or(err, &own);
    CFX_TRY(cfxi_base_expect(n, "node", err));
    if (cfxi_ir_node_erased(n))  /* it has no inputs */
        return CFX_OK;
    CFX_TRY(check_alive(n, err));
    CFX_TRY(cfxi_ir_value_check(n->graph, with, err));
    cfx_iter_begin(&pin, n->graph, false);
    cfxi_ir_value_hold(with);
    const cfx_status status = replace_input(n, old, with, err);
    cfxi_ir_value_unhold(with);
    cfx_iter_end(&pin);
    return status;
}

/* The users to change, and their prepared changes. */
typedef struct user_list {
    cfx_node **users;
    cfxi_arg_change *changes;
    size_t n;
} user_list;

static cfx_status choose_users(cfx_node *old, cfx_value with, cfx_use_filter *filter, void *ctx,
                               user_list *list, cfx_error *err)
{
    size_t chosen = 0;
    for (const cfx_use *use = old->users; use; use = cfx_use_next(use))
        list->users[list->n++] = use->user;
    for (size_t i = 0; i < list->n; i++) {
        cfx_node *user = list->users[i];
        int yes = filter ? filter(ctx, user) : 1;
        if (yes < 0)
            return cfx_error_set(err, CFX_E_HOST, "the callback that filters users failed");
        if (yes == 0)
            continue;
        CFX_TRY(cfxi_ir_run_hooks(old->graph, CFX_HOOK_REPLACE, old, with, user, err));
        list->users[chosen++] = user;
    }
    list->n = chosen;
    return CFX_OK;
}

static void abandon(cfx_graph *g, cfxi_arg_change *change)
{
    cfxi_ir_args_abandon(change);
    cfx_value_discard(g, change->args);
    cfx_value_discard(g, change->kwargs);
}

/* The callbacks may have edited the graph: what no longer uses `old` is left out. */
static cfx_status change_users(cfx_node *old, cfx_value with, user_list *list, cfx_error *err)
{
    replacement r = {old, with};
    cfx_status status = CFX_OK;
    size_t ready = 0;
    for (size_t i = 0; i < list->n && status == CFX_OK; i++) {
        if (cfxi_ir_node_erased(list->users[i]) || !cfx_node_uses(list->users[i], old))
            continue;
        status = prepare_user(&list->changes[ready], list->users[i], &r, err);
        ready += status == CFX_OK;
    }
    for (size_t i = 0; i < ready; i++) {
        if (status == CFX_OK)
            cfxi_ir_args_commit(&list->changes[i]);
        else
            abandon(old->graph, &list->changes[i]);
    }
    list->n = ready;
    return status;
}

/* Everything is chosen, then prepared, then changed, so that a failure leaves no trace. */
static cfx_status replace_uses(cfx_node *old, cfx_value with, cfx_use_filter *filter,
                               void (*changed)(void *ctx, cfx_node *user), void *ctx,
                               user_list *list, cfx_error *err)
{
    CFX_TRY(choose_users(old, with, filter, ctx, list, err));
    CFX_TRY(change_users(old, with, list, err));
    for (size_t i = 0; changed && i < list->n; i++)
        changed(ctx, list->changes[i].node);
    return CFX_OK;
}

cfx_status cfx_node_replace_uses(cfx_node *old, cfx_value with, cfx_use_filter *filter,
                                 void (*changed)(void *ctx, cfx_node *user), void *ctx,
                                 cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    CFX_TRY(cfxi_base_expect(old, "node", err));
    if (cfxi_ir_node_erased(old))  /* it has no users */
        return CFX_OK;
    CFX_TRY(check_alive(old, err));
    cfx_graph *g = old->graph;
    CFX_TRY(cfxi_ir_value_check(g, with, err));
    if (old->n_users == 0)
        return CFX_OK;
    user_list list = {.n = 0};
    const size_t pointers = old->n_users * sizeof *list.users;
    const size_t changes = old->n_users * sizeof *list.changes;
    cfx_status status = CFX_E_NOMEM;
    list.users = cfxi_base_alloc(g->allocator, pointers);
    list.changes = cfxi_base_alloc(g->allocator, changes);
    if (list.users && list.changes) {
        cfx_iter pin;  /* users that a callback erases stay readable */
        cfx_iter_begin(&pin, g, false);
        cfxi_ir_value_hold(with);
        status = replace_uses(old, with, filter, changed, ctx, &list, err);
        cfxi_ir_value_unhold(with);
        cfx_iter_end(&pin);
    } else {
        cfxi_base_nomem(err);
    }
    cfxi_base_free(g->allocator, list.users, pointers);
    cfxi_base_free(g->allocator, list.changes, changes);
    return status;
}
