/* callee.c - what nodes call: one entry for each (opcode, target) in use.
 *
 * Nodes that share an opcode and a target share the entry, which lists them (so that finding them
 * is O(found)) and remembers what is costly to ask of the host: the name their names derive from,
 * and whether the call has effects.
 */
#include "callee_impl.h"

/* ---- entries ------------------------------------------------------------------------------- */

static cfxi_callee *find_callee(const cfx_ref *ref, cfx_opcode op)
{
    for (cfxi_callee *callee = ref->callees; callee; callee = callee->next_of_ref)
        if (callee->op == op)
            return callee;
    return NULL;
}

cfxi_callee *cfxi_ir_callee_of_ref(cfx_graph *g, cfx_opcode op, cfx_ref *ref, cfx_error *err)
{
    cfxi_callee *callee = find_callee(ref, op);
    if (callee)
        return callee;
    callee = cfxi_base_arena_alloc(&g->arena, sizeof *callee);
    if (!callee) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *callee = (cfxi_callee){.ref = ref, .op = (uint8_t)op};
    callee->next_of_ref = ref->callees;
    ref->callees = callee;
    ref->refs++;
    callee->next = g->callees[op];
    if (callee->next)
        callee->next->prev = callee;
    g->callees[op] = callee;
    return callee;
}

static cfxi_callee *make_callee(cfx_graph *g, cfx_opcode op, cfx_ref *ref, cfx_error *err)
{
    cfxi_callee *callee = ref ? cfxi_ir_callee_of_ref(g, op, ref, err) : NULL;
    if (ref && !callee)
        cfxi_ir_ref_discard(g, ref);
    return callee;
}

/* Where a name's entry is kept that was asked for lately: programs call few things often. */
static cfxi_callee **recent(cfx_graph *g, const char *name, size_t size)
{
    size_t last = size ? (unsigned char)name[size - 1] : 0;
    return &g->recent[(size + last) % CFXI_RECENT];
}

static bool is_named(const cfxi_callee *callee, cfx_opcode op, const char *name, size_t size)
{
    const cfx_str *own = callee->ref->name;  /* of an object it is something else */
    return callee->op == op && callee->ref->kind == CFXI_REF_NAME && own->size == size &&
           memcmp(own->data, name, size) == 0;
}

cfxi_callee *cfxi_ir_callee_get(cfx_graph *g, cfx_opcode op, cfx_target target, cfx_error *err)
{
    if (target.object)
        return make_callee(g, op, cfxi_ir_ref_object(g, target.object, err), err);
    if (!target.name) {
        cfx_error_set(err, CFX_E_VALUE, "a node needs a target");
        return NULL;
    }
    cfxi_callee **slot = recent(g, target.name, target.size);
    if (*slot && is_named(*slot, op, target.name, target.size))
        return *slot;
    *slot = make_callee(g, op, cfxi_ir_ref_name(g, target.name, target.size, err), err);
    return *slot;
}

void cfxi_ir_callee_tidy(cfx_graph *g, cfxi_callee *callee)
{
    if (callee->count > 0)
        return;
    cfxi_callee **link = &callee->ref->callees;
    while (*link != callee)
        link = &(*link)->next_of_ref;
    *link = callee->next_of_ref;
    if (callee->prev)
        callee->prev->next = callee->next;
    else
        g->callees[callee->op] = callee->next;
    if (callee->next)
        callee->next->prev = callee->prev;
    if (callee->ref->kind == CFXI_REF_NAME) {
        cfxi_callee **slot = recent(g, callee->ref->name->data, callee->ref->name->size);
        *slot = *slot == callee ? NULL : *slot;
    }
    cfxi_ir_ref_drop(g, callee->ref);
    cfxi_ir_str_free(&g->arena, callee->wish);
    cfxi_base_arena_free(&g->arena, callee, sizeof *callee);
}

/* ---- the nodes of an entry ----------------------------------------------------------------- */

void cfxi_ir_callee_add(cfxi_callee *callee, cfx_node *n)
{
    cfx_node *first = callee->first;
    n->callee = callee;
    n->op = callee->op;
    callee->count++;
    if (first) {
        n->same_prev = first->same_prev;
        n->same_next = first;
        first->same_prev->same_next = n;
        first->same_prev = n;
    } else {
        n->same_prev = n->same_next = n;
        callee->first = n;
    }
}

void cfxi_ir_callee_unlist(cfx_node *n)
{
    cfxi_callee *callee = n->callee;
    if (n->same_next == n) {
        callee->first = NULL;
    } else {
        n->same_prev->same_next = n->same_next;
        n->same_next->same_prev = n->same_prev;
        if (callee->first == n)
            callee->first = n->same_next;
    }
    n->same_prev = n->same_next = NULL;
}

static cfx_status each_node(const cfxi_callee *callee, cfx_node_fn *fn, void *ctx)
{
    cfx_node *n = callee->first;
    if (!n)
        return CFX_OK;
    do {
        CFX_TRY(fn(ctx, n));
        n = n->same_next;
    } while (n != callee->first);
    return CFX_OK;
}

cfx_status cfx_graph_find_nodes(cfx_graph *g, cfx_opcode op, const cfx_target *target,
                                cfx_node_fn *fn, void *ctx)
{
    if ((unsigned)op >= CFX_OPCODE_COUNT)
        return CFX_E_VALUE;
    if (target) {
        const cfx_ref *ref = cfxi_ir_ref_find(g, *target);
        const cfxi_callee *callee = ref ? find_callee(ref, op) : NULL;
        return callee ? each_node(callee, fn, ctx) : CFX_OK;
    }
    for (const cfxi_callee *callee = g->callees[op]; callee; callee = callee->next)
        CFX_TRY(each_node(callee, fn, ctx));
    return CFX_OK;
}

/* ---- names of nodes ------------------------------------------------------------------------ */

/* "__add__" counts as "add". */
static void strip_magic(const char **text, size_t *size)
{
    if (*size < 2 || memcmp(*text, "__", 2) != 0 || memcmp(*text + *size - 2, "__", 2) != 0)
        return;
    *text += 2;
    *size = *size > 4 ? *size - 4 : 0;
}

/* Of a function's qualified name the last part counts; of an overload ("torch.ops.aten.add.Tensor")
 * the last two. */
static void last_part(const char **text, size_t *size)
{
    static const char ops[] = "torch.ops.";
    size_t dots = 0;
    for (size_t i = 0; i < *size; i++)
        dots += (*text)[i] == '.';
    bool overload = dots >= 4 && memcmp(*text, ops, sizeof ops - 1) == 0;
    size_t wanted = overload ? 2 : 1;
    for (size_t i = *size; i > 0; i--) {
        if ((*text)[i - 1] != '.' || --wanted > 0)
            continue;
        *text += i;
        *size -= i;
        return;
    }
}

static cfx_status ask_hint(cfx_graph *g, const cfx_ref *ref, cfx_buffer *wish, cfx_error *err)
{
    cfx_buffer hint;
    cfx_buffer_init(&hint, g->allocator);
    cfx_status status = g->host->name_hint(g->host->ctx, ref->object, cfx_buffer_sink(&hint), err);
    if (status != CFX_OK)
        cfxi_base_failed(err, status);
    else if (cfx_name_to_snake_case(hint.data, hint.size, wish) != CFX_OK)
        status = cfxi_base_nomem(err);
    cfx_buffer_free(&hint);
    return status;
}

static cfx_status write_wish(cfx_graph *g, const cfxi_callee *callee, cfx_buffer *wish,
                             cfx_error *err)
{
    const cfx_ref *ref = callee->ref;
    if (ref->kind == CFXI_REF_OBJECT)
        return ask_hint(g, ref, wish, err);
    const char *text = ref->name->data;
    size_t size = ref->name->size;
    if (callee->op == CFX_OP_CALL_FUNCTION)
        last_part(&text, &size);
    else
        strip_magic(&text, &size);
    return cfx_name_to_snake_case(text, size, wish) == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
}

cfx_status cfxi_ir_callee_ask(cfx_graph *g, cfxi_callee *callee, cfx_error *err)
{
    if (callee->wish)
        return CFX_OK;
    cfx_buffer wish;
    cfx_buffer_init(&wish, g->allocator);
    cfx_status status = write_wish(g, callee, &wish, err);
    if (status == CFX_OK && !callee->wish) {
        callee->wish = cfxi_ir_str_new(&g->arena, wish.data, wish.size);
        status = callee->wish ? CFX_OK : cfxi_base_nomem(err);
    }
    cfx_buffer_free(&wish);
    return status;
}

cfxi_name *cfxi_ir_callee_name(cfx_graph *g, cfxi_callee *callee, cfx_error *err)
{
    if (callee->base)
        return cfxi_ir_namespace_next(&g->names, callee->base, err);
    const cfx_str *wish = callee->wish;
    return cfxi_ir_namespace_take_from(&g->names, wish->data, wish->size, false, &callee->base,
                                       err);
}
