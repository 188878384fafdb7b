/* pyvar.c - which variables the values of a function with regions are in.
 *
 * A node has a variable of its own, called after it, unless control flow lets it share one: an
 * input of a branch is the value outside; what a branch gives is assigned in the branch; the state
 * of a loop is assigned where its next value is computed. A variable that several nodes share
 * belongs to one of them at a time, its holder: the one that is used longest. Another node can have
 * it once the holder is used no more.
 */
#include "pycode_impl.h"

cfx_node *cfxi_emit_py_holder(const cfx_pycode *gen, const cfxi_name *name)
{
    return cfxi_base_pointers_get(&gen->holders, name);
}

cfx_status cfxi_emit_py_hold(cfx_pycode *gen, const cfxi_name *name, const cfx_node *n,
                             cfx_error *err)
{
    if (!cfxi_base_pointers_set(&gen->holders, name, (void *)(uintptr_t)n, gen->allocator))
        return cfxi_base_nomem(err);
    return CFX_OK;
}

cfx_status cfxi_emit_py_hold_longest(cfx_pycode *gen, const cfxi_name *name, const cfx_node *n,
                                     cfx_error *err)
{
    const cfx_node *holder = cfxi_emit_py_holder(gen, name);
    if (holder && (holder->graph != n->graph || holder->mark >= n->mark))
        return CFX_OK;
    return cfxi_emit_py_hold(gen, name, n, err);
}

bool cfxi_emit_py_may_take(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *def)
{
    cfxi_emit_py_refresh(frame);
    if (def->graph != frame->graph || def->mark != frame->stamp + frame->index ||
        cfxi_emit_py_placed(gen, def) == CFXI_PY_INLINE)
        return false;
    const cfx_node *holder = cfxi_emit_py_holder(gen, cfxi_emit_py_name(gen, def));
    /* an input of a region is the region's own only where it was made the holder */
    return holder ? holder == def : !(frame->region && def->op == CFX_OP_PLACEHOLDER);
}

cfx_status cfxi_emit_py_want(cfx_pycode *gen, const cfx_node *n, const cfxi_name *name,
                             cfx_error *err)
{
    if (!cfxi_base_pointers_set(&gen->wanted, n, (void *)(uintptr_t)name, gen->allocator))
        return cfxi_base_nomem(err);
    return CFX_OK;
}

const cfxi_name *cfxi_emit_py_wanted(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *n)
{
    const cfxi_name *name = cfxi_base_pointers_get(&gen->wanted, n);
    if (!name)
        return NULL;
    cfxi_emit_py_refresh(frame);
    const cfx_node *holder = cfxi_emit_py_holder(gen, name);
    bool busy = holder && holder->graph == frame->graph &&
                holder->mark > frame->stamp + frame->index;
    return busy ? NULL : name;
}

cfx_status cfxi_emit_py_name_own(cfx_pycode *gen, const cfxi_py_frame *frame, const cfx_node *n,
                                 cfx_error *err)
{
    const cfx_node *wish = cfxi_base_pointers_get(&gen->wishes, n);
    if (!wish || cfxi_emit_py_same_base(n->name, wish->name->data, wish->name->size))
        return frame->region ? cfxi_emit_py_define_local(gen, n, err) : CFX_OK;
    CFX_TRY(cfxi_emit_py_define_local(gen, wish, err));
    return cfxi_emit_py_alias(gen, n, cfxi_emit_py_name(gen, wish), err);
}

cfx_status cfxi_emit_py_name_local(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *n,
                                   cfx_error *err)
{
    const cfxi_name *name = cfxi_emit_py_wanted(gen, frame, n);
    if (!name)
        return cfxi_emit_py_name_own(gen, frame, n, err);
    CFX_TRY(cfxi_emit_py_alias(gen, n, name, err));
    return cfxi_emit_py_hold(gen, name, n, err);
}

bool cfxi_emit_py_same_base(const cfxi_name *a, const char *b, size_t size)
{
    const size_t n = cfxi_ir_base_size(a->data, a->size);
    return n == cfxi_ir_base_size(b, size) && memcmp(a->data, b, n) == 0;
}

cfx_status cfxi_emit_py_takes_item(cfx_pycode *gen, const cfx_use *use, size_t size, size_t *item,
                                   bool *takes, cfx_error *err)
{
    cfx_node *user = use->user;
    const cfxi_py_callee *callee;
    *takes = false;
    if (user->op != CFX_OP_CALL_FUNCTION || !user->args || user->args->size != 2 || user->kwargs ||
        user->args->items[0].kind != CFX_KIND_NODE || user->args->items[1].kind != CFX_KIND_INT ||
        (user->ext && user->ext->type.kind != CFX_KIND_INVALID))
        return CFX_OK;
    CFX_TRY(cfxi_emit_py_callee_of(gen, user, &callee, err));
    int64_t i = user->args->items[1].as.i;
    i = i < 0 ? i + (int64_t)size : i;
    *takes = callee->form == CFXI_PY_GETITEM && i >= 0 && i < (int64_t)size;
    *item = (size_t)i;
    return CFX_OK;
}
