/* pystmt.c - one Python statement for each node, and the clearing of what is used no more.
 *
 * The order in which a statement asks for names is torch.fx's: the type, the function, the node's
 * own name, the arguments; for `a += b` and `a[b] = c` the arguments come before the name. It only
 * shows where names collide.
 */
#include "pycode_impl.h"

/* ---- types --------------------------------------------------------------------------------- */

/* Moves what was written to the body since `start` to another buffer. */
static cfx_status take_text(cfx_pycode *gen, size_t start, cfx_buffer *to, cfx_error *err)
{
    if (gen->nomem || cfx_buffer_append(to, gen->body.data + start, gen->body.size - start))
        return cfxi_base_nomem(err);
    gen->body.size = start;
    return CFX_OK;
}

static cfx_status write_type(cfx_pycode *gen, cfx_node *n, cfx_value type, cfx_error *err)
{
    const cfx_pycode_options *options = gen->options;
    if (options->type) {
        cfx_sink out = cfxi_emit_py_scratch(gen);
        CFX_TRY(options->type(options->ctx, gen, type, out, err));
        if (gen->scratch.size && !cfxi_ir_is_type_text(gen->scratch.data, gen->scratch.size))
            return cfxi_emit_py_fail(n, CFX_E_VALUE, err, "its type cannot be written in Python: "
                                     "'%.80s'", gen->scratch.data);
        if (gen->scratch.size) {
            cfxi_emit_py_put_text(gen, gen->scratch.data, gen->scratch.size);
            return CFX_OK;
        }
    }
    if (type.kind != CFX_KIND_HOST)
        return cfxi_emit_py_value(gen, type, n, err);
    cfx_pycode_text text;
    CFX_TRY(cfxi_emit_py_ref_text(gen, n->graph, type.as.ref, n, &text, err));
    cfxi_emit_py_put(gen, text.data, text.size);
    return CFX_OK;
}

cfx_status cfxi_emit_py_type_text(cfx_pycode *gen, cfx_node *n, cfx_error *err)
{
    gen->type_text.size = 0;
    cfx_value type = n->ext ? n->ext->type : cfx_value_invalid();
    if (type.kind == CFX_KIND_INVALID || type.kind == CFX_KIND_NONE)
        return CFX_OK;
    size_t start = gen->body.size;
    gen->raw = true;
    cfx_status status = write_type(gen, n, type, err);
    gen->raw = false;
    CFX_TRY(status);
    return take_text(gen, start, &gen->type_text, err);
}

/* What follows the name: the host's annotation, or the type that cfxi_emit_py_type_text found. */
static cfx_status put_annotation(cfx_pycode *gen, cfx_node *n, cfx_error *err)
{
    const cfx_pycode_options *options = gen->options;
    if (options->annotation) {
        cfx_sink out = cfxi_emit_py_scratch(gen);
        CFX_TRY(options->annotation(options->ctx, gen, n, out, err));
        if (gen->scratch.size) {
            cfxi_emit_py_put_text(gen, gen->scratch.data, gen->scratch.size);
            return CFX_OK;
        }
    }
    if (gen->type_text.size) {
        CFXI_PY_LIT(gen, " : ");
        cfxi_emit_py_put(gen, gen->type_text.data, gen->type_text.size);
    }
    return CFX_OK;
}

cfx_status cfxi_emit_py_assigned_name(cfx_pycode *gen, cfx_node *n, cfx_error *err)
{
    cfxi_emit_py_put_name(gen, n);
    return put_annotation(gen, n, err);
}

/* ---- clearing ------------------------------------------------------------------------------ */

void cfxi_emit_py_refresh(cfxi_py_frame *frame)
{
    if (frame->graph->stamp == frame->next)
        return;
    const cfxi_py_frame old = *frame;
    *frame = cfxi_emit_py_frame_of(frame->graph, frame->region);
    frame->index = old.index;
    frame->returns = old.returns;
}

/* Inputs of a region belong to someone else, a variable to who holds it. */
static bool is_cleared(const cfx_pycode *gen, const cfxi_py_frame *frame, const cfx_node *def,
                       const cfxi_name *name)
{
    if ((frame->region && def->op == CFX_OP_PLACEHOLDER) ||
        cfxi_emit_py_placed(gen, def) == CFXI_PY_INLINE ||
        cfxi_base_pointers_get(&gen->instead, def))
        return false;
    const cfx_node *holder = cfxi_emit_py_holder(gen, name);
    return !holder || holder == def;
}

size_t cfxi_emit_py_dead_inputs(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *n)
{
    size_t dead = 0;
    cfxi_emit_py_refresh(frame);
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const cfx_node *def = n->inputs[i].def;
        if (def->mark != frame->stamp + frame->index)
            continue;
        const cfxi_name *name = cfxi_emit_py_name(gen, def);
        if (!is_cleared(gen, frame, def, name))
            continue;
        cfxi_emit_py_put(gen, name->data, name->size);
        CFXI_PY_LIT(gen, " = ");
        dead++;
    }
    return dead;
}

/* "a = b = " for what `n` uses last, and for `n` if nobody uses it; returns how many names. */
static size_t dead_names(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *n)
{
    size_t dead = cfxi_emit_py_dead_inputs(gen, frame, n);
    if (n->n_users == 0 && n->op != CFX_OP_OUTPUT) {
        cfxi_emit_py_put_name(gen, n);
        CFXI_PY_LIT(gen, " = ");
        dead++;
    }
    return dead;
}

/* ";  a = b = None" if there are any. */
static void clear_dead(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *n)
{
    size_t start = gen->body.size;
    CFXI_PY_LIT(gen, ";  ");
    if (gen->options->colored)
        CFXI_PY_LIT(gen, "\033[2m");
    if (dead_names(gen, frame, n) == 0) {
        gen->body.size = gen->nomem ? gen->body.size : start;
        return;
    }
    CFXI_PY_LIT(gen, "None");
    if (gen->options->colored)
        CFXI_PY_LIT(gen, "\033[0m");
}

/* ---- placeholders -------------------------------------------------------------------------- */

static cfx_status param_remark(cfx_pycode *gen, cfx_node *n, cfx_error *err)
{
    const cfx_pycode_options *options = gen->options;
    if (!options->expanded_def || !options->remark)
        return CFX_OK;
    cfx_sink out = cfxi_emit_py_scratch(gen);
    CFX_TRY(options->remark(options->ctx, gen, n, out, err));
    if (gen->scratch.size) {
        cfxi_emit_py_one_line(&gen->scratch);
        CFXI_PY_LIT(gen, "  # ");
        cfxi_emit_py_put_text(gen, gen->scratch.data, gen->scratch.size);
    }
    return CFX_OK;
}

static cfx_status param_text(cfx_pycode *gen, cfx_node *n, const cfx_str *target, cfx_error *err)
{
    cfxi_emit_py_put(gen, target->data, gen->own_params ? strspn(target->data, "*") : target->size);
    if (gen->own_params)
        cfxi_emit_py_put_name(gen, n);
    CFX_TRY(put_annotation(gen, n, err));
    if (n->args && n->args->size > 0) {
        CFXI_PY_LIT(gen, " = ");
        CFX_TRY(cfxi_emit_py_value(gen, n->args->items[0], n, err));
    }
    return param_remark(gen, n, err);
}

/* Whether the parameter, without its stars, is called otherwise than the node. */
static bool is_renamed(const cfx_str *target, const cfxi_name *name)
{
    uint32_t same = 0;
    for (uint32_t i = 0; i < target->size; i++) {
        if (target->data[i] == '*')
            continue;
        if (same == name->size || target->data[i] != name->data[same])
            return true;
        same++;
    }
    return same != name->size;
}

/* The gate for the names of parameters. `for` and `a.b` pass, as in torch.fx: Python refuses to
 * compile the function. A file has none of these, as its parameters have the names of the nodes. */
static cfx_status check_parameter(const cfx_pycode *gen, const cfx_node *n, const cfx_str *target,
                                  cfx_error *err)
{
    const size_t stars = strspn(target->data, "*");
    if (stars <= 2 &&
        (gen->own_params || cfxi_base_is_keyword(target->data + stars, target->size - stars) ||
         cfxi_base_is_python_path(target->data + stars, target->size - stars)))
        return CFX_OK;
    return cfxi_emit_py_fail(n, CFX_E_VALUE, err, "'%.80s' cannot be the name of a parameter in "
                             "Python; set the target of the placeholder to an identifier",
                             target->data);
}

/* In a file: torch.fx leaves it to Python to refuse the function. */
static cfx_status check_order(cfx_pycode *gen, const cfx_node *n, const cfx_str *target,
                              cfx_error *err)
{
    const bool has_default = n->args && n->args->size > 0;
    const size_t stars = strspn(target->data, "*");
    const cfxi_py_order last = gen->order_of_params;
    const cfxi_py_order now = stars == 2 ? CFXI_PY_STARS : stars == 1 ? CFXI_PY_STAR
                              : last == CFXI_PY_STAR ? CFXI_PY_STAR
                              : has_default ? CFXI_PY_DEFAULT : CFXI_PY_PLAIN;
    if (now < last || last == CFXI_PY_STARS || (stars > 0 && has_default) ||
        (stars == 1 && last == CFXI_PY_STAR))
        return cfxi_emit_py_fail(n, CFX_E_VALUE, err, "the parameter '%.80s' stands in the wrong "
                                 "place: Python wants those without a default first, then those "
                                 "with one, then *args, and **kwargs last; move the placeholder",
                                 target->data);
    gen->order_of_params = now;
    return CFX_OK;
}

static cfx_status placeholder(cfx_pycode *gen, cfx_node *n, cfx_error *err)
{
    const cfx_str *target = n->callee->ref->name;
    if (!target)
        return cfxi_emit_py_fail(n, CFX_E_TYPE, err,
                                 "the target of a placeholder must be a string");
    CFX_TRY(check_parameter(gen, n, target, err));
    if (gen->names_only)
        CFX_TRY(check_order(gen, n, target, err));
    CFX_TRY(cfxi_emit_py_type_text(gen, n, err));
    cfxi_py_param param = {.start = gen->params_text.size};
    size_t start = gen->body.size;
    if (gen->own_params)
        CFX_TRY(cfxi_emit_py_define(gen, n, err));
    gen->raw = true;
    cfx_status status = param_text(gen, n, target, err);
    gen->raw = false;
    CFX_TRY(status);
    CFX_TRY(take_text(gen, start, &gen->params_text, err));
    param.size = gen->params_text.size - param.start;
    if (!cfxi_base_vec_reserve(&gen->params, 1, sizeof param, gen->allocator))
        return cfxi_base_nomem(err);
    ((cfxi_py_param *)gen->params.data)[gen->params.size++] = param;
    if (gen->own_params)
        return CFX_OK;
    CFX_TRY(cfxi_emit_py_define(gen, n, err));
    if (!is_renamed(target, cfxi_emit_py_name(gen, n)))
        return CFX_OK;
    cfxi_emit_py_begin_line(gen);
    cfxi_emit_py_put_name(gen, n);
    CFXI_PY_LIT(gen, " = ");
    for (uint32_t i = 0; i < target->size; i++)
        if (target->data[i] != '*')
            cfxi_emit_py_char(gen, target->data[i]);
    cfxi_emit_py_end_line(gen);
    return CFX_OK;
}

/* ---- the other nodes ----------------------------------------------------------------------- */

static cfx_status output(cfx_pycode *gen, cfx_node *n, cfx_error *err)
{
    const cfx_pycode_options *options = gen->options;
    CFX_TRY(cfxi_emit_py_type_text(gen, n, err));
    if (gen->type_text.size) {
        gen->returns.size = 0;
        if (cfx_buffer_append(&gen->returns, " -> ", 4) ||
            cfx_buffer_append(&gen->returns, gen->type_text.data, gen->type_text.size))
            return cfxi_base_nomem(err);
    }
    CFX_TRY(cfxi_emit_py_define(gen, n, err));
    if (!n->args || n->args->size == 0)
        return cfxi_emit_py_fail(n, CFX_E_INDEX, err, "the output has no value");
    if (gen->returned)
        return CFX_OK;
    cfxi_emit_py_begin_line(gen);
    cfx_sink out = cfxi_emit_py_scratch(gen);
    if (options->output)
        CFX_TRY(options->output(options->ctx, gen, n, out, err));
    if (gen->scratch.size) {
        cfxi_emit_py_put_text(gen, gen->scratch.data, gen->scratch.size);
    } else {
        CFXI_PY_LIT(gen, "return ");
        CFX_TRY(cfxi_emit_py_value(gen, n->args->items[0], n, err));
    }
    cfxi_emit_py_end_piece(gen);
    cfxi_emit_py_end_line(gen);
    return CFX_OK;
}

/* `name = expression`. */
static cfx_status assignment(cfx_pycode *gen, cfx_node *n, const cfxi_py_callee *callee,
                             cfx_error *err)
{
    CFX_TRY(cfxi_emit_py_assigned_name(gen, n, err));
    CFXI_PY_LIT(gen, " = ");
    return cfxi_emit_py_rhs(gen, n, callee, err);
}

/* `x += y;  name = x` as torch.fx writes it: for `x` that nobody reads afterwards. */
static cfx_status update(cfx_pycode *gen, cfx_node *n, const cfxi_py_callee *callee, cfx_error *err)
{
    CFX_TRY(cfxi_emit_py_inplace(gen, n, callee, false, err));
    CFX_TRY(cfxi_emit_py_define(gen, n, err));
    CFXI_PY_LIT(gen, ";  ");
    CFX_TRY(cfxi_emit_py_assigned_name(gen, n, err));
    CFXI_PY_LIT(gen, " = ");
    return cfxi_emit_py_value(gen, n->args->items[0], n, err);
}

/* `name = x;  name += y`: where `x` is read afterwards, or may be the variable of other values as
 * well, as where there are regions, it must not be bound to another one if it is a number; unless
 * it is the node's own. */
static cfx_status local_update(cfx_pycode *gen, cfx_node *n, const cfxi_py_callee *callee,
                               cfx_error *err)
{
    cfx_value x = cfx_node_arg(n, 0);
    if (x.kind == CFX_KIND_INVALID ||
        (x.kind == CFX_KIND_NODE && cfxi_emit_py_name(gen, x.as.node) == cfxi_emit_py_name(gen, n)))
        return cfxi_emit_py_inplace(gen, n, callee, true, err);
    CFX_TRY(cfxi_emit_py_assigned_name(gen, n, err));
    CFXI_PY_LIT(gen, " = ");
    CFX_TRY(cfxi_emit_py_value(gen, x, n, err));
    CFXI_PY_LIT(gen, ";  ");
    return cfxi_emit_py_inplace(gen, n, callee, true, err);
}

/* Whether the variable that `n` is wanted in has another operand: `name = x` would overwrite it. */
static bool overwrites_operand(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *n)
{
    const cfxi_name *name = cfxi_emit_py_wanted(gen, frame, n);
    const cfx_node *holder = name ? cfxi_emit_py_holder(gen, name) : NULL;
    cfx_value x = cfx_node_arg(n, 0);
    if (!holder || (x.kind == CFX_KIND_NODE && cfxi_emit_py_name(gen, x.as.node) == name))
        return false;
    return holder->graph == n->graph && holder->mark >= frame->stamp + frame->index;
}

/* Whether `x += y` would take from `x` a value that is still to be read. Where no line of a program
 * is behind it the text stays torch.fx's, which is right for tensors only. */
static bool takes_operand(cfxi_py_frame *frame, const cfx_node *n, const cfxi_py_callee *callee)
{
    cfx_value x = cfx_node_arg(n, 0);
    if (!callee || callee->form != CFXI_PY_INPLACE || x.kind != CFX_KIND_NODE || !n->location)
        return false;
    cfxi_emit_py_refresh(frame);
    return x.as.node->mark > frame->stamp + frame->index;
}

/* `out += [x]`, `d |= more` for a list or dict that the state of a loop alone has, and that stays
 * in its variable. */
static bool grows(cfx_pycode *gen, const cfx_node *n)
{
    return cfxi_base_pointers_get(&gen->growing, n) &&
           cfxi_emit_py_name(gen, n) == cfxi_emit_py_name(gen, n->args->items[0].as.node);
}

static cfx_status growth(cfx_pycode *gen, const cfx_node *n, cfx_error *err)
{
    cfxi_emit_py_put_name(gen, n);
    if (n->args->items[1].kind == CFX_KIND_LIST)
        CFXI_PY_LIT(gen, " += ");
    else
        CFXI_PY_LIT(gen, " |= ");
    return cfxi_emit_py_value(gen, n->args->items[1], n, err);
}

static cfx_status simple(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                         const cfxi_py_callee *callee, cfx_error *err)
{
    bool inplace = callee && (callee->form == CFXI_PY_INPLACE || callee->form == CFXI_PY_SETITEM);
    cfxi_emit_py_begin_line(gen);
    if (inplace && !gen->all_named && !takes_operand(frame, n, callee))
        CFX_TRY(update(gen, n, callee, err));
    else if (inplace)
        CFX_TRY(local_update(gen, n, callee, err));
    else if (grows(gen, n))
        CFX_TRY(growth(gen, n, err));
    else
        CFX_TRY(assignment(gen, n, callee, err));
    cfxi_emit_py_end_piece(gen);
    clear_dead(gen, frame, n);
    cfxi_emit_py_end_line(gen);
    return CFX_OK;
}

/* torch.fx names these after the node itself, even where its name in the code is another; unless it
 * is not an identifier. */
static void put_record(cfx_pycode *gen, const cfx_node *n)
{
    const bool plain = cfxi_base_is_identifier(n->name->data, n->name->size);
    const cfxi_name *name = plain ? n->name : cfxi_emit_py_name(gen, n);
    CFXI_PY_LIT(gen, "_rf_");
    cfxi_emit_py_put(gen, name->data, name->size);
}

static void record_enter(cfx_pycode *gen, const cfx_node *n)
{
    char number[CFXI_NUMBER_SIZE];
    size_t size = cfxi_base_format_int(gen->node, number);
    cfxi_emit_py_begin_line(gen);
    put_record(gen, n);
    CFXI_PY_LIT(gen, " = torch._C._profiler._RecordFunctionFast('## ");
    cfxi_emit_py_put(gen, number, size);
    CFXI_PY_LIT(gen, " ##'); ");
    put_record(gen, n);
    CFXI_PY_LIT(gen, ".__enter__()");
    cfxi_emit_py_end_line(gen);
}

static void record_exit(cfx_pycode *gen, const cfx_node *n)
{
    cfxi_emit_py_begin_line(gen);
    put_record(gen, n);
    CFXI_PY_LIT(gen, ".__exit__(None, None, None)");
    cfxi_emit_py_end_line(gen);
}

static cfx_status operation(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, cfx_error *err)
{
    const cfxi_py_callee *callee = NULL;
    bool done = false;
    if (cfxi_emit_py_placed(gen, n))
        return CFX_OK;
    CFX_TRY(cfxi_emit_py_type_text(gen, n, err));
    if (n->op == CFX_OP_CALL_FUNCTION) {
        CFX_TRY(cfxi_emit_py_callee_of(gen, n, &callee, err));
        CFX_TRY(cfxi_emit_py_wrap(gen, n, callee, err));
        if (callee->context)
            CFX_TRY(cfxi_emit_py_context(gen, frame, n, &done, err));
        if (done)
            return CFX_OK;
    }
    bool regions = callee && cfxi_emit_py_has_regions(n);
    bool late = callee && (callee->form == CFXI_PY_INPLACE || callee->form == CFXI_PY_SETITEM);
    bool record = gen->options->record_func && n->op != CFX_OP_GET_ATTR && !frame->region;
    if (!frame->region && (!late || gen->all_named || takes_operand(frame, n, callee)))
        CFX_TRY(cfxi_emit_py_define(gen, n, err));
    if (late && gen->all_named && overwrites_operand(gen, frame, n))
        CFX_TRY(cfxi_emit_py_want(gen, n, NULL, err));
    if (gen->all_named && !regions)
        CFX_TRY(cfxi_emit_py_name_local(gen, frame, n, err));
    if (record)
        record_enter(gen, n);
    if (regions)
        CFX_TRY(cfxi_emit_py_control_flow(gen, frame, n, callee->form, err));
    else
        CFX_TRY(simple(gen, frame, n, callee, err));
    if (record)
        record_exit(gen, n);
    return CFX_OK;
}

cfx_status cfxi_emit_py_statement(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                                  cfx_error *err)
{
    switch ((cfx_opcode)n->op) {
    case CFX_OP_PLACEHOLDER:
        return placeholder(gen, n, err);
    case CFX_OP_OUTPUT:
        return output(gen, n, err);
    case CFX_OP_GET_ATTR:
    case CFX_OP_CALL_FUNCTION:
    case CFX_OP_CALL_MODULE:
    case CFX_OP_CALL_METHOD:
        return operation(gen, frame, n, err);
    case CFX_OPCODE_COUNT:
        break;
    }
    return cfxi_emit_py_fail(n, CFX_E_UNSUPPORTED, err, "unknown opcode");
}
