/* lower_write.c - a bound call in the place of the node it stands for. */
#include "lower_impl.h"

#include <cfx/runtime.h>

#include <stdarg.h>
#include <stdio.h>

/* ---- what cannot be ------------------------------------------------------------------------ */

/* "x.max(dim=1)" as far as the graph tells. */
static void show_call(cfxi_lower *l, const cfx_node *n, char *out, size_t size)
{
    const char *target = cfx_node_target(n, NULL, NULL);
    const bool method = n->op == CFX_OP_CALL_METHOD;
    const bool module = n->op == CFX_OP_CALL_MODULE;  /* has its attributes as keywords by now */
    const char *gap = "";
    cfx_buffer text;
    cfx_buffer_init(&text, l->g->allocator);
    const cfx_sink sink = cfx_buffer_sink(&text);
    if (method && cfx_node_num_args(n) > 0) {
        cfxi_ir_value_repr(l->g, cfx_node_arg(n, 0), sink, NULL);
        cfx_buffer_append(&text, ".", 1);
    } else if (module) {
        cfx_buffer_append(&text, "self.", 5);
    }
    cfx_buffer_append(&text, target ? target : "?", target ? strlen(target) : 1);
    cfx_buffer_append(&text, "(", n->op != CFX_OP_GET_ATTR);
    for (size_t i = method; i < cfx_node_num_args(n); i++, gap = ", ") {
        cfx_buffer_append(&text, gap, strlen(gap));
        cfxi_ir_value_repr(l->g, cfx_node_arg(n, i), sink, NULL);
    }
    for (uint32_t i = 0; !module && n->kwargs && i + 1 < n->kwargs->size; i += 2, gap = ", ") {
        cfx_buffer_append(&text, gap, strlen(gap));
        cfx_buffer_append(&text, n->kwargs->items[i].as.str->data,
                          n->kwargs->items[i].as.str->size);
        cfx_buffer_append(&text, "=", 1);
        cfxi_ir_value_repr(l->g, n->kwargs->items[i + 1], sink, NULL);
    }
    cfx_buffer_append(&text, ")", n->op != CFX_OP_GET_ATTR);
    snprintf(out, size, "%s", text.data);
    if (text.size >= size)
        memcpy(out + size - 5, "...)", 5);
    cfx_buffer_free(&text);
}

cfx_status cfxi_lower_refuse(cfxi_lower *l, const cfx_node *n, const char *format, ...)
{
    cfx_error why = {0};
    char call[180];
    char where[160] = "";
    char text[200];
    va_list args;
    if (l->err->status == CFX_E_NOMEM || l->err->status == CFX_E_HOST)
        return l->err->status;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    show_call(l, n, call, sizeof call);
    if (cfx_node_file(n))
        snprintf(where, sizeof where, "%.130s:%u: ", cfx_node_file(n), cfx_node_line(n));
    cfx_error_set(&why, CFX_E_TYPE, "%s%s: %s (node %%%.60s)", where, call, text, n->name->data);
    if (l->refused++ == 0)
        l->first = why;
    *l->err = (cfx_error){0};
    cfx_status status = l->options.each ? l->options.each(l->options.ctx, n, why.message) : CFX_OK;
    return status == CFX_OK ? CFX_OK : cfxi_base_failed(l->err, status);
}

/* ---- defaults ------------------------------------------------------------------------------ */

static cfx_value number(cfx_schema_text t)
{
    int64_t i;
    double f;
    if (cfxi_base_parse_int(t.text, t.size, &i))
        return cfx_value_int(i);
    return cfxi_base_parse_float(t.text, t.size, &f) ? cfx_value_float(f) : cfx_value_invalid();
}

/* "[0, 1]", "()" */
static cfx_value numbers(cfx_graph *g, cfx_schema_text t, cfx_error *err)
{
    cfx_value items[16];
    size_t n = 0;
    const char *at = t.text + 1;
    for (cfx_schema_text item; n < 16 && (item = cfxi_ops_schema_next(&at)).size > 0;)
        items[n++] = number(item);
    return cfx_value_list(g, items, n, err);
}

cfx_value cfxi_lower_row_default(cfx_graph *g, const cfx_schema_param *param, cfx_schema_text t,
                                 cfx_error *err)
{
    if (!t.text || cfxi_ops_text_is_word(t, "None"))
        return cfx_value_none();
    if (cfxi_ops_text_is_word(t, "True") || cfxi_ops_text_is_word(t, "False"))
        return cfx_value_bool(t.text[0] == 'T');
    if (t.text[0] == '\'')
        return cfx_value_str(g, t.text + 1, t.size - 2, err);
    if (t.text[0] == '[' || t.text[0] == '(')
        return numbers(g, t, err);
    if (strncmp(param->type, "ScalarType", 10) == 0 ||
        strncmp(param->type, "MemoryFormat", 12) == 0)
        return cfx_value_none();  /* numbers of PyTorch's, which the row knows */
    return number(t);
}

static bool param_at(const cfxi_lowered *c, size_t i, cfx_schema_param *param)
{
    return c->custom ? cfxi_ops_schema_param(c->custom->schema, i, param)
                     : cfx_operator_param(c->op, i, param);
}

/* Whether the argument is what is meant without it. */
static bool is_default(const cfxi_lowered *c, size_t i)
{
    cfx_schema_param param;
    char digits[CFXI_NUMBER_SIZE];
    const cfx_value v = c->args[i];
    if (v.kind == CFX_KIND_INVALID) {  /* the spelling may have another default than the row */
        param_at(c, i, &param);
        const cfx_schema_text t = c->defaults[i];
        return !t.text || (param.value.text && cfxi_ops_text_is(param.value, t.text, t.size));
    }
    if (!param_at(c, i, &param) || !param.value.text)
        return false;
    switch ((cfx_kind)v.kind) {
    case CFX_KIND_NONE: return cfxi_ops_text_is_word(param.value, "None");
    case CFX_KIND_BOOL: return cfxi_ops_text_is_word(param.value, v.as.b ? "True" : "False");
    case CFX_KIND_INT:
        return cfxi_ops_text_is(param.value, digits, cfxi_base_format_int(v.as.i, digits));
    default: return false;
    }
}

/* ---- writing ------------------------------------------------------------------------------- */

static void row_name(cfx_operator op, char name[CFX_SPELLING_SIZE])
{
    snprintf(name, CFX_SPELLING_SIZE, "cfx.ops.%s", cfx_operator_name(op));
}

/* The row of this name as a target: the host's function if it has one, else the name. *keep is to
 * be discarded afterwards. */
static cfx_status row_target(cfxi_lower *l, const char *name, cfx_target *target, cfx_value *keep)
{
    *target = (cfx_target){.name = name, .size = strlen(name)};
    *keep = cfx_value_name(l->g, name, target->size, l->err);
    if (keep->kind == CFX_KIND_INVALID)
        return l->err->status;
    const char *known = cfx_value_object(*keep) ? cfx_value_host_name(l->g, *keep, NULL) : NULL;
    if (known && strcmp(known, name) == 0)
        target->object = cfx_value_object(*keep);
    return CFX_OK;
}

/* The arguments up to the last that is not its default, as a tuple. */
static cfx_value arguments(cfxi_lower *l, const cfxi_lowered *c)
{
    cfx_value all[CFXI_MOST_PARAMS];
    cfx_schema_param param;
    size_t n = c->n;
    while (n > 0 && is_default(c, n - 1))
        n--;
    for (size_t i = 0; i < n; i++) {
        all[i] = c->args[i];
        if (all[i].kind == CFX_KIND_INVALID && param_at(c, i, &param))
            all[i] = cfxi_lower_row_default(l->g, &param, c->defaults[i], l->err);
    }
    return cfx_value_tuple(l->g, all, n, l->err);
}

cfx_node *cfxi_lower_before(cfxi_lower *l, cfx_node *n, const cfxi_lowered *c)
{
    cfx_value args = arguments(l, c);
    size_t count;
    const cfx_value *items = cfx_value_items(args, &count);
    cfx_node *result = args.kind == CFX_KIND_INVALID ? NULL
                                                     : cfxi_lower_add(l, n, c->op, items, count);
    cfx_value_discard(l->g, args);
    return result;
}

/* kl_div(..., reduction="batchmean") is the sum, divided by the first size; by nothing if there is
 * none: math.prod(x.shape[:1]). */
static cfx_status write_batch_mean(cfxi_lower *l, cfx_node *n, cfxi_lowered *c)
{
    cfx_node *sum = cfxi_lower_before(l, n, c);
    cfx_node *shape = sum ? cfxi_lower_add(l, n, CFX_OPID_size, c->args, 1) : NULL;
    const cfx_value first[] = {
        shape ? cfx_value_node(shape) : cfx_value_invalid(),
        cfx_value_slice(l->g, cfx_value_none(), cfx_value_int(1), cfx_value_none(), l->err),
    };
    cfx_node *sizes = shape ? cfxi_lower_add(l, n, CFX_OPID_getitem, first, 2) : NULL;
    const cfx_value list = sizes ? cfx_value_node(sizes) : cfx_value_invalid();
    cfx_node *batch = sizes ? cfxi_lower_add(l, n, CFX_OPID_math_prod, &list, 1) : NULL;
    if (!batch)
        return l->err->status;
    cfxi_lower_lowered_begin(c, CFX_OPID_div);
    c->args[0] = cfx_value_node(sum);
    c->args[1] = cfx_value_node(batch);
    return cfxi_lower_write(l, n, c);
}

/* An embedding with a `max_norm` scales the rows that it is about to read, in their place. */
static cfx_status write_renorm(cfxi_lower *l, cfx_node *n, const cfxi_lowered *c)
{
    const bool given = c->norm_type.kind != CFX_KIND_INVALID;
    const cfx_value args[] = {c->args[0], c->args[1], c->max_norm,
                              given ? c->norm_type : cfx_value_float(2)};
    return cfxi_lower_add(l, n, CFX_OPID_embedding_renorm_, args, 4) ? CFX_OK : l->err->status;
}

/* Whether `n` is that call already, so that lowering a lowered graph changes nothing. */
static bool is_call(const cfx_node *n, const char *name, cfx_value args, cfx_value none)
{
    const char *target = n->op == CFX_OP_CALL_FUNCTION ? cfx_node_target(n, NULL, NULL) : NULL;
    return target && strcmp(target, name) == 0 && cfx_value_equal(cfx_node_args(n), args) &&
           cfx_value_equal(cfx_node_kwargs(n), none);
}

/* F.embedding_bag gives only the rows. */
static cfx_status write_first(cfxi_lower *l, cfx_node *n, cfxi_lowered *c)
{
    cfx_node *all = cfxi_lower_before(l, n, c);
    if (!all)
        return l->err->status;
    cfxi_lower_lowered_begin(c, CFX_OPID_getitem);
    c->args[0] = cfx_value_node(all);
    c->args[1] = cfx_value_int(0);
    return cfxi_lower_write(l, n, c);
}

cfx_status cfxi_lower_set_call(cfxi_lower *l, cfx_node *n, const cfxi_lowered *c)
{
    char name[CFX_SPELLING_SIZE];
    cfx_target target;
    cfx_value keep;
    cfx_value args = arguments(l, c);
    cfx_value none = cfx_value_seq(l->g, CFX_KIND_DICT, NULL, 0, l->err);
    if (args.kind == CFX_KIND_INVALID || none.kind == CFX_KIND_INVALID) {
        cfx_value_discard(l->g, args);
        return l->err->status;
    }
    if (!c->custom)
        row_name(c->op, name);
    if (is_call(n, c->custom ? c->custom->name : name, args, none)) {
        cfx_value_discard(l->g, args);
        cfx_value_discard(l->g, none);
        return cfxi_lower_note(l, n);
    }
    cfx_status status = cfx_node_set_args_kwargs(n, args, none, l->err);
    if (status != CFX_OK) {
        cfx_value_discard(l->g, args);
        return status;
    }
    if (c->custom)  /* it is the target already */
        return cfxi_lower_note(l, n);
    if (n->op != CFX_OP_CALL_FUNCTION)
        CFX_TRY(cfx_node_set_op(n, CFX_OP_CALL_FUNCTION, l->err));
    status = row_target(l, name, &target, &keep);
    if (status == CFX_OK)
        status = cfx_node_set_target(n, target, l->err);
    cfx_value_discard(l->g, keep);
    return status == CFX_OK ? cfxi_lower_note(l, n) : status;
}

cfx_status cfxi_lower_write(cfxi_lower *l, cfx_node *n, cfxi_lowered *c)
{
    const cfx_operator op = c->in_place ? cfx_operator_in_place(c->op) : c->op;
    if (c->in_place && !op)
        return cfxi_lower_refuse(l, n, "'%s' has no in-place form", cfx_operator_name(c->op));
    c->op = op;
    c->in_place = false;
    if (!cfx_operator_has_kernel(op))  /* it is written all the same: others see what it gives */
        CFX_TRY(cfxi_lower_refuse(l, n, "the operator '%s' has no kernel", cfx_operator_name(op)));
    if (c->max_norm.kind != CFX_KIND_INVALID)
        CFX_TRY(write_renorm(l, n, c));
    if (c->out.kind != CFX_KIND_INVALID)
        return cfxi_lower_out(l, n, c);
    if (c->batch_mean)
        return write_batch_mean(l, n, c);
    if (c->first_only)
        return write_first(l, n, c);
    cfx_status status = cfxi_lower_set_call(l, n, c);
    cfxi_lower_unbind(l, c);
    return status;
}

/* A call of a row beside `n`, with its location. */
static cfx_node *add_beside(cfxi_lower *l, cfx_node *n, bool after, cfx_operator op,
                            const cfx_value *args, size_t count)
{
    char name[CFX_SPELLING_SIZE];
    cfx_target target;
    cfx_value keep;
    cfx_node *call = NULL;
    const cfx_insert_point old = cfx_graph_insert_point(l->g);
    row_name(op, name);
    if (row_target(l, name, &target, &keep) == CFX_OK &&
        cfx_graph_set_insert_point(l->g, (cfx_insert_point){n, after}, l->err) == CFX_OK)
        call = cfxi_analysis_add_call(l->g, CFX_OP_CALL_FUNCTION, target, args, count, l->err);
    cfx_graph_set_insert_point(l->g, old, NULL);
    cfx_value_discard(l->g, keep);
    if (!call)
        return NULL;
    cfxi_analysis_place_like(call, n);
    if (!cfx_operator_has_kernel(op) &&
        cfxi_lower_refuse(l, n, "the operator '%s' has no kernel", cfx_operator_name(op)) != CFX_OK)
        return NULL;
    return cfxi_lower_note(l, call) == CFX_OK ? call : NULL;
}

cfx_node *cfxi_lower_add(cfxi_lower *l, cfx_node *n, cfx_operator op, const cfx_value *args,
                         size_t count)
{
    return add_beside(l, n, false, op, args, count);
}

cfx_node *cfxi_lower_add_after(cfxi_lower *l, cfx_node *n, cfx_operator op, const cfx_value *args,
                               size_t count)
{
    return add_beside(l, n, true, op, args, count);
}
