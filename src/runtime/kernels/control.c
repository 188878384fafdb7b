/* control.c - branches and loops: operators that run regions, which are programs.
 *
 * When only types and shapes are asked for, both branches are followed, and the body of a loop
 * twice at most: what is not the same every time around is a size that nobody knows.
 */
#include "../runtime_impl.h"

static const cfx_datum nothing = {.kind = CFX_DATUM_INVALID};

static cfx_status status_of(const cfxi_call *c) { return c->err->status; }

static cfx_status is_region(cfxi_call *c, size_t i, const char *what)
{
    if (c->args[i].kind == CFX_DATUM_REGION)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_TYPE, "%s: '%s' must be a region, not %s", cfx_operator_name(c->op),
                     what, cfx_datum_kind_name((cfx_datum_kind)c->args[i].kind));
}

/* ---- truth --------------------------------------------------------------------------------- */

static cfx_status tensor_truth(cfxi_call *c, const cfx_tensor *t, bool *out)
{
    double both[2] = {0, 0};
    if (!t->storage || cfxi_numel(t) != 1)
        return cfxi_fail(c, CFX_E_SHAPE, "%s: Boolean value of Tensor with %s is ambiguous",
                         cfx_operator_name(c->op), t->storage && cfxi_numel(t) == 0
                             ? "no values" : "more than one value");
    if (cfx_dtype_is_complex((cfx_dtype)t->dtype))
        cfxi_load_complex((cfx_dtype)t->dtype, t->data, both);
    else if (cfx_dtype_is_float((cfx_dtype)t->dtype))
        both[0] = cfxi_load_float((cfx_dtype)t->dtype, t->data);
    else
        both[0] = cfxi_load_int((cfx_dtype)t->dtype, t->data) != 0;
    *out = both[0] != 0 || both[1] != 0;
    return CFX_OK;
}

/* What Python's bool() gives. */
static cfx_status truth(cfxi_call *c, cfx_datum d, bool *out)
{
    size_t n;
    switch ((cfx_datum_kind)d.kind) {
    case CFX_DATUM_INVALID:
    case CFX_DATUM_NONE: *out = false; return CFX_OK;
    case CFX_DATUM_BOOL: *out = d.as.b; return CFX_OK;
    case CFX_DATUM_INT: *out = d.as.i != 0; return CFX_OK;
    case CFX_DATUM_FLOAT: *out = d.as.f != 0; return CFX_OK;
    case CFX_DATUM_COMPLEX: *out = d.as.c[0] != 0 || d.as.c[1] != 0; return CFX_OK;
    case CFX_DATUM_TENSOR: return tensor_truth(c, d.as.tensor, out);
    case CFX_DATUM_STR: cfx_datum_str(d, &n); *out = n > 0; return CFX_OK;
    case CFX_DATUM_LIST:
    case CFX_DATUM_TUPLE:
    case CFX_DATUM_DICT: cfx_datum_items(d, &n); *out = n > 0; return CFX_OK;
    case CFX_DATUM_ELLIPSIS:
    case CFX_DATUM_DTYPE:
    case CFX_DATUM_LAYOUT:
    case CFX_DATUM_MEMORY_FORMAT:
    case CFX_DATUM_DEVICE:
    case CFX_DATUM_SLICE:
    case CFX_DATUM_REGION: *out = true; return CFX_OK;
    }
    return CFX_OK;
}

/* ---- what two ways give -------------------------------------------------------------------- */

/* A tensor with the sizes that both have, and unknown ones where they differ. */
static cfx_datum join_tensors(cfxi_call *c, const cfx_tensor *a, const cfx_tensor *b)
{
    int64_t sizes[CFX_MAX_DIMS];
    if (a->dtype != b->dtype || a->ndim != b->ndim) {
        cfxi_fail(c, CFX_E_SHAPE, "%s: results have different types or numbers of dimensions",
                  cfx_operator_name(c->op));
        return nothing;
    }
    for (size_t i = 0; i < a->ndim; i++)
        sizes[i] = a->size[i] == b->size[i] ? a->size[i] : cfxi_fresh(c);
    return cfx_datum_tensor(cfx_tensor_new_abstract((cfx_dtype)a->dtype, sizes, a->ndim,
                                                    c->rt->allocator, c->err));
}

static cfx_datum join(cfxi_call *c, cfx_datum a, cfx_datum b);

static cfx_datum join_items(cfxi_call *c, cfx_datum a, cfx_datum b)
{
    size_t n;
    size_t m;
    cfx_datum *x = cfx_datum_items(a, &n);
    cfx_datum *y = cfx_datum_items(b, &m);
    cfx_datum both = nothing;
    if (n != m) {
        cfxi_fail(c, CFX_E_SHAPE, "%s: one way gives %zu results, another %zu",
                  cfx_operator_name(c->op), n, m);
        return nothing;
    }
    cfx_datum *items = cfxi_scratch(c->rt, (n + 1) * sizeof *items);
    size_t i = 0;
    for (; items && i < n; i++)
        if ((items[i] = join(c, x[i], y[i])).kind == CFX_DATUM_INVALID)
            break;
    if (items && i == n)
        both = cfx_datum_seq((cfx_datum_kind)a.kind, items, n, c->rt->allocator, c->err);
    else if (!items)
        cfxi_nomem(c->err);
    while (i > 0)
        cfx_datum_release(items[--i]);
    cfxi_scratch_free(c->rt, items);
    return both;
}

/* What is known of a value that is either `a` or `b`. */
static cfx_datum join(cfxi_call *c, cfx_datum a, cfx_datum b)
{
    size_t n;
    if (a.kind != b.kind) {
        cfxi_fail(c, CFX_E_SHAPE, "%s: one way gives %s, another %s", cfx_operator_name(c->op),
                  cfx_datum_kind_name((cfx_datum_kind)a.kind),
                  cfx_datum_kind_name((cfx_datum_kind)b.kind));
        return nothing;
    }
    if (a.kind == CFX_DATUM_TENSOR)
        return join_tensors(c, a.as.tensor, b.as.tensor);
    if (cfx_datum_items(a, &n))
        return join_items(c, a, b);
    if (a.kind == CFX_DATUM_INT && a.as.i != b.as.i) {
        a.as.i = cfxi_fresh(c);
        a.symbolic = 1;
    }
    return cfx_datum_retain(a);
}

/* ---- cond ---------------------------------------------------------------------------------- */

cfx_status cfxi_rule_cond(cfxi_call *c)
{
    size_t n;
    const cfx_datum *operands = cfxi_list(c, 3, &n);
    CFX_TRY(is_region(c, 1, "then"));
    CFX_TRY(is_region(c, 2, "otherwise"));
    if (!c->infer)
        return CFX_OK;
    cfx_datum yes = cfxi_region_run(c, c->args[1], operands, n);
    cfx_datum no = yes.kind ? cfxi_region_run(c, c->args[2], operands, n) : nothing;
    cfx_datum both = no.kind ? join(c, yes, no) : nothing;
    cfx_datum_release(yes);
    cfx_datum_release(no);
    cfxi_result_datum(c, 0, both);
    return both.kind ? CFX_OK : status_of(c);
}

cfx_status cfxi_kernel_cond(cfxi_call *c)
{
    size_t n;
    bool yes = false;
    const cfx_datum *operands = cfxi_list(c, 3, &n);
    CFX_TRY(truth(c, c->args[0], &yes));
    cfx_datum result = cfxi_region_run(c, c->args[yes ? 1 : 2], operands, n);
    cfxi_result_datum(c, 0, result);
    return result.kind ? CFX_OK : status_of(c);
}

/* ---- loops --------------------------------------------------------------------------------- */

/* The state as a tuple of its own. */
static cfx_datum first_state(cfxi_call *c, size_t i)
{
    size_t n;
    const cfx_datum *items = cfxi_list(c, i, &n);
    return cfx_datum_seq(CFX_DATUM_TUPLE, items, n, c->rt->allocator, c->err);
}

/* *state becomes what the body gives for it; `index` comes first if it is not INVALID. */
static cfx_status turn(cfxi_call *c, cfx_datum body, cfx_datum index, cfx_datum *state)
{
    size_t n;
    size_t m;
    cfx_datum some[32];
    const cfx_datum *items = cfx_datum_items(*state, &n);
    const size_t extra = index.kind != CFX_DATUM_INVALID;
    cfx_datum *args = n + extra <= 32 ? some : cfxi_scratch(c->rt, (n + extra) * sizeof *args);
    if (!args)
        return cfxi_nomem(c->err);
    args[0] = index;
    for (size_t i = 0; i < n; i++)
        args[i + extra] = items[i];
    cfx_datum next = cfxi_region_run(c, body, args, n + extra);
    if (args != some)
        cfxi_scratch_free(c->rt, args);
    if (next.kind == CFX_DATUM_INVALID)
        return status_of(c);
    cfx_datum_items(next, &m);
    if ((next.kind != CFX_DATUM_TUPLE && next.kind != CFX_DATUM_LIST) || m != n) {
        cfx_datum_release(next);
        return cfxi_fail(c, CFX_E_TYPE, "%s: its body must return %zu values, as many as the state "
                         "has", cfx_operator_name(c->op), n);
    }
    next.kind = CFX_DATUM_TUPLE;
    cfx_datum_release(*state);
    *state = next;
    return CFX_OK;
}

/* What the state is after any number of turns. */
static cfx_status infer_loop(cfxi_call *c, cfx_datum body, cfx_datum index, cfx_datum *state)
{
    for (int i = 0; i < 2; i++) {
        cfx_datum after = cfx_datum_retain(*state);
        cfx_status status = turn(c, body, index, &after);
        cfx_datum both = status == CFX_OK ? join(c, *state, after) : nothing;
        cfx_datum_release(after);
        if (both.kind == CFX_DATUM_INVALID)
            return status_of(c);
        cfx_datum_release(*state);
        *state = both;
    }
    return CFX_OK;
}

static cfx_status end_loop(cfxi_call *c, cfx_status status, cfx_datum state)
{
    if (status == CFX_OK)
        cfxi_result_datum(c, 0, state);
    else
        cfx_datum_release(state);
    return status;
}

cfx_status cfxi_rule_while_loop(cfxi_call *c)
{
    CFX_TRY(is_region(c, 0, "test"));
    CFX_TRY(is_region(c, 1, "body"));
    if (!c->infer)
        return CFX_OK;
    cfx_datum state = first_state(c, 2);
    if (state.kind == CFX_DATUM_INVALID)
        return status_of(c);
    return end_loop(c, infer_loop(c, c->args[1], nothing, &state), state);
}

cfx_status cfxi_kernel_while_loop(cfxi_call *c)
{
    cfx_datum state = first_state(c, 2);
    cfx_status status = state.kind ? CFX_OK : status_of(c);
    while (status == CFX_OK) {
        size_t n;
        bool more = false;
        const cfx_datum *items = cfx_datum_items(state, &n);
        cfx_datum test = cfxi_region_run(c, c->args[0], items, n);
        status = test.kind ? truth(c, test, &more) : status_of(c);
        cfx_datum_release(test);
        if (status != CFX_OK || !more)
            break;
        status = turn(c, c->args[1], nothing, &state);
    }
    return end_loop(c, status, state);
}

cfx_status cfxi_rule_for_loop(cfxi_call *c)
{
    CFX_TRY(is_region(c, 1, "body"));
    if (!c->infer)
        return CFX_OK;
    cfx_datum index = cfx_datum_int(cfxi_fresh(c));
    index.symbolic = 1;
    cfx_datum state = first_state(c, 2);
    if (state.kind == CFX_DATUM_INVALID)
        return status_of(c);
    return end_loop(c, infer_loop(c, c->args[1], index, &state), state);
}

cfx_status cfxi_kernel_for_loop(cfxi_call *c)
{
    int64_t count = 0;
    CFX_TRY(cfxi_number(c, 0, &count));
    cfx_datum state = first_state(c, 2);
    cfx_status status = state.kind ? CFX_OK : status_of(c);
    for (int64_t i = 0; status == CFX_OK && i < count; i++)
        status = turn(c, c->args[1], cfx_datum_int(i), &state);
    return end_loop(c, status, state);
}
