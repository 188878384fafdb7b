/* pycontext.c - calls that enter and leave a context of PyTorch, as `with` blocks.
 *
 *     %before = torch.is_grad_enabled()                 with torch.no_grad():
 *     torch._C._set_grad_enabled(False)                     mul = x * 2
 *     %mul = operator.mul(%x, 2)
 *     torch._C._set_grad_enabled(%before)
 *
 * So the mode is restored when a statement inside raises. Calls that do not nest, as a pass may
 * leave them, stay calls.
 */
#include "pycode_impl.h"

#include <cfx/embed/context.h>

enum { STEP = 4 };

bool cfxi_emit_py_is_context(const char *name, size_t size)
{
    static const char names[][48] = {
        "torch.is_grad_enabled",
        "torch._C._set_grad_enabled",
        "torch.autograd.grad_mode._enter_inference_mode",
        "torch.autograd.grad_mode._exit_inference_mode",
        "torch.amp.autocast_mode._enter_autocast",
        "torch.amp.autocast_mode._exit_autocast",
        "cfx._glue.contexts.enter_kernels",
        "cfx._glue.contexts.exit_kernels",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0)
            return true;
    return false;
}

static const cfx_node *innermost_end(const cfx_pycode *gen)
{
    const cfx_node *const *ends = gen->blocks.data;
    return gen->blocks.size ? ends[gen->blocks.size - 1] : NULL;
}

/* Where the block ends that `opens` begins; NULL if it is not one, or not inside the one around. */
static const cfx_node *block_end(const cfx_pycode *gen, const cfx_node *opens,
                                 cfx_context_kind *kind)
{
    const cfx_node *end = cfx_node_context_end(opens, kind);
    const cfx_node *outer = innermost_end(gen);
    if (!end || (outer && outer->graph == end->graph && !cfx_node_before(end, outer)) ||
        (*kind != CFX_CONTEXT_GRAD && opens->n_users != 1))
        return NULL;
    return end;
}

/* enter_kernels(["MATH"], False) is sdpa_kernel([SDPBackend.MATH], False). */
static cfx_status put_kernels(cfx_pycode *gen, cfx_node *n, cfx_error *err)
{
    size_t count = 0;
    const cfx_value *names = cfx_value_items(cfx_node_arg(n, 0), &count);
    CFXI_PY_LIT(gen, "torch.nn.attention.sdpa_kernel([");
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        const char *name = names[i].kind == CFX_KIND_STR ? cfx_value_text(names[i], &size) : "";
        if (i > 0)
            CFXI_PY_LIT(gen, ", ");
        CFXI_PY_LIT(gen, "torch.nn.attention.SDPBackend.");
        cfxi_emit_py_put(gen, name, size);
    }
    CFXI_PY_LIT(gen, "], ");
    CFX_TRY(cfxi_emit_py_value(gen, cfx_node_arg(n, 1), n, err));
    cfxi_emit_py_char(gen, ')');
    return CFX_OK;
}

static cfx_status put_manager(cfx_pycode *gen, cfx_node *n, cfx_context_kind kind, cfx_error *err)
{
    const cfx_value mode = cfx_node_arg(n, 0);
    gen->builtins |= CFX_PYCODE_TORCH;
    if (kind == CFX_CONTEXT_GRAD && mode.kind == CFX_KIND_BOOL) {
        if (mode.as.b)
            CFXI_PY_LIT(gen, "torch.enable_grad()");
        else
            CFXI_PY_LIT(gen, "torch.no_grad()");
        return CFX_OK;
    }
    if (kind == CFX_CONTEXT_KERNELS)
        return put_kernels(gen, n, err);
    if (kind == CFX_CONTEXT_GRAD)
        CFXI_PY_LIT(gen, "torch.set_grad_enabled(");
    else if (kind == CFX_CONTEXT_INFERENCE)
        CFXI_PY_LIT(gen, "torch.inference_mode(");
    else
        CFXI_PY_LIT(gen, "torch.autocast(");
    for (size_t i = 0; i < cfx_node_num_args(n); i++) {
        if (i > 0)
            CFXI_PY_LIT(gen, ", ");
        CFX_TRY(cfxi_emit_py_value(gen, cfx_node_arg(n, i), n, err));
    }
    cfxi_emit_py_char(gen, ')');
    return CFX_OK;
}

static cfx_status open_block(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                             const cfx_node *end, cfx_context_kind kind, cfx_error *err)
{
    if (!cfxi_base_vec_reserve(&gen->blocks, 1, sizeof end, gen->allocator))
        return cfxi_base_nomem(err);
    ((const cfx_node **)gen->blocks.data)[gen->blocks.size++] = end;
    cfxi_emit_py_begin_line(gen);
    CFXI_PY_LIT(gen, "with ");
    CFX_TRY(put_manager(gen, n, kind, err));
    cfxi_emit_py_char(gen, ':');
    cfxi_emit_py_end_piece(gen);
    cfxi_emit_py_end_line(gen);
    gen->indent += STEP;
    const size_t start = gen->body.size;
    cfxi_emit_py_begin_line(gen);
    if (cfxi_emit_py_dead_inputs(gen, frame, n) > 0) {
        CFXI_PY_LIT(gen, "None");
        cfxi_emit_py_end_line(gen);
    } else if (n->next == end) {
        CFXI_PY_LIT(gen, "pass");
        cfxi_emit_py_end_line(gen);
    } else if (!gen->nomem) {
        gen->body.size = start;
    }
    return CFX_OK;
}

cfx_status cfxi_emit_py_context(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, bool *done,
                                cfx_error *err)
{
    cfx_context_kind kind;
    *done = false;
    if (n->kwargs)
        return CFX_OK;
    if (n == innermost_end(gen)) {
        gen->blocks.size--;
        gen->indent -= STEP;
        *done = true;
        return CFX_OK;
    }
    const cfx_node *end = block_end(gen, n, &kind);
    if (end && kind == CFX_CONTEXT_GRAD) {  /* the next node enters */
        *done = n->n_users == 1;
        return CFX_OK;
    }
    if (!end && n->prev != &n->graph->root && !(end = block_end(gen, n->prev, &kind)))
        return CFX_OK;
    if (!end || (kind == CFX_CONTEXT_GRAD) != (cfx_node_operator(n) == CFX_OPID_set_grad_enabled))
        return CFX_OK;
    *done = true;
    return open_block(gen, frame, n, end, kind, err);
}
