/* control.c - branches and loops: operators that run regions, which are programs.
 *
 * When only types and shapes are asked for, both branches are followed, and the body of a loop
 * until nothing changes any more: what is not the same every time around is a size that nobody
 * knows.
 */
#include "../dim_impl.h"
#include "../python_impl.h"

static cfx_status status_of(const cfxi_call *c) { return c->err->status; }

/* What Python's bool() gives; when computing it never depends. */
static cfx_status truth(cfxi_call *c, cfx_datum d, bool *out)
{
    cfxi_truth t;
    CFX_TRY(cfxi_python_truth(c, d, &t));
    *out = t == CFXI_TRUE;
    return CFX_OK;
}

static cfx_status is_region(cfxi_call *c, size_t i, const char *what)
{
    if (c->args[i].kind == CFX_DATUM_REGION)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_TYPE, "%s: '%s' must be a region, not %s", cfx_operator_name(c->op),
                     what, cfx_datum_kind_name((cfx_datum_kind)c->args[i].kind));
}

/* ---- what two ways give -------------------------------------------------------------------- */

/* "one way gives float32[2, 3], another int64[N]" */
static cfx_datum cannot_join(cfxi_call *c, cfx_datum a, cfx_datum b)
{
    cfx_buffer text[2];
    const cfx_datum both[] = {a, b};
    for (size_t i = 0; i < 2; i++) {
        cfx_buffer_init(&text[i], c->rt->allocator);
        if (both[i].kind == CFX_DATUM_TENSOR)
            cfx_datum_print(both[i], c->dims, cfx_buffer_sink(&text[i]), NULL);
    }
    cfxi_fail(c, CFX_E_SHAPE, "%s: one way gives %.180s, another %.180s", cfx_operator_name(c->op),
              text[0].size ? text[0].data : cfx_datum_kind_name((cfx_datum_kind)a.kind),
              text[1].size ? text[1].data : cfx_datum_kind_name((cfx_datum_kind)b.kind));
    cfx_buffer_free(&text[0]);
    cfx_buffer_free(&text[1]);
    return cfx_datum_invalid();
}

/* Whether a loop has made it unknown: its symbols begin with `widened`. */
static bool is_widened(int64_t size, int64_t widened)
{
    return size == CFX_DIM_UNKNOWN || (cfx_dim_is_symbol(size) && size >= widened);
}

/* A size that is either of two: itself if they are the same, else one that nobody knows. */
static int64_t join_sizes(cfxi_call *c, int64_t a, int64_t b, int64_t widened)
{
    if (a == b || is_widened(a, widened) || cfx_dim_compare_eq(c->dims, a, b) == 1)
        return a;
    return cfxi_fresh(c);
}

/* A tensor with the sizes that both have, and unknown ones where they differ. */
static cfx_datum join_tensors(cfxi_call *c, cfx_datum x, cfx_datum y, int64_t widened)
{
    int64_t sizes[CFX_MAX_DIMS];
    const cfx_tensor *a = x.as.tensor;
    const cfx_tensor *b = y.as.tensor;
    if (a->dtype != b->dtype || a->ndim != b->ndim)
        return cannot_join(c, x, y);
    for (size_t i = 0; i < a->ndim; i++)
        sizes[i] = join_sizes(c, a->size[i], b->size[i], widened);
    return cfx_datum_tensor(cfx_tensor_new_abstract((cfx_dtype)a->dtype, sizes, a->ndim,
                                                    c->rt->allocator, c->err));
}

static cfx_datum join(cfxi_call *c, cfx_datum a, cfx_datum b, int64_t widened);

static cfx_datum join_items(cfxi_call *c, cfx_datum a, cfx_datum b, int64_t widened)
{
    size_t n;
    size_t m;
    cfx_datum *x = cfx_datum_items(a, &n);
    cfx_datum *y = cfx_datum_items(b, &m);
    cfx_datum both = cfx_datum_invalid();
    if (n != m) {
        cfxi_fail(c, CFX_E_SHAPE, "%s: one way gives %zu results, another %zu",
                  cfx_operator_name(c->op), n, m);
        return cfx_datum_invalid();
    }
    cfx_datum *items = cfxi_scratch(c->rt, (n + 1) * sizeof *items);
    size_t i = 0;
    for (; items && i < n; i++)
        if ((items[i] = join(c, x[i], y[i], widened)).kind == CFX_DATUM_INVALID)
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
static cfx_datum join(cfxi_call *c, cfx_datum a, cfx_datum b, int64_t widened)
{
    size_t n;
    if (a.kind != b.kind)
        return cannot_join(c, a, b);
    if (a.kind == CFX_DATUM_TENSOR)
        return join_tensors(c, a, b, widened);
    if (cfx_datum_items(a, &n))
        return join_items(c, a, b, widened);
    if (a.kind == CFX_DATUM_INT && a.as.i != b.as.i &&
        !(a.symbolic && is_widened(a.as.i, widened)))
        return cfxi_unknown_int(c);
    if (a.kind == CFX_DATUM_BOOL || a.kind == CFX_DATUM_FLOAT || a.kind == CFX_DATUM_COMPLEX)
        a.symbolic = a.symbolic || b.symbolic || memcmp(&a.as, &b.as, sizeof a.as) != 0;
    return cfx_datum_retain(a);
}

/* How many things in it can still become unknown. */
static size_t count_known(cfx_datum d, int64_t widened)
{
    size_t n;
    size_t count = 0;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; items && i < n; i++)
        count += count_known(items[i], widened);
    if (d.kind == CFX_DATUM_INT)
        count = !(d.symbolic && is_widened(d.as.i, widened));
    for (size_t i = 0; d.kind == CFX_DATUM_TENSOR && i < d.as.tensor->ndim; i++)
        count += !is_widened(d.as.tensor->size[i], widened);
    return count;
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
    cfx_datum no = yes.kind ? cfxi_region_run(c, c->args[2], operands, n) : cfx_datum_invalid();
    cfx_datum both = no.kind ? join(c, yes, no, INT64_MAX) : cfx_datum_invalid();
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
    CFX_TRY(cfxi_go_on(c->rt, c->err));  /* a body may be without instructions */
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

/* What the state is after any number of turns: what a turn changes becomes unknown, until a turn
 * changes nothing that is still known. Who watches sees one more turn, with what is known then. */
static cfx_status infer_loop(cfxi_call *c, cfx_datum body, cfx_datum index, cfx_datum *state)
{
    int64_t widened = cfxi_dim_next(c->dims);
    size_t before = count_known(*state, widened);
    for (;;) {
        cfx_datum after = cfx_datum_retain(*state);
        cfxi_call unseen = *c;
        unseen.watch = NULL;
        cfx_status status = turn(&unseen, body, index, &after);
        cfx_datum both = status == CFX_OK ? join(c, *state, after, widened) : cfx_datum_invalid();
        cfx_datum_release(after);
        if (both.kind == CFX_DATUM_INVALID)
            return status_of(c);
        cfx_datum_release(*state);
        *state = both;
        size_t known = count_known(both, widened);
        if (known == before)
            break;
        before = known;
    }
    cfx_datum seen = cfx_datum_retain(*state);
    cfx_status status = c->watch ? turn(c, body, index, &seen) : CFX_OK;
    cfx_datum_release(seen);
    return status;
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
    return end_loop(c, infer_loop(c, c->args[1], cfx_datum_invalid(), &state), state);
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
        status = turn(c, c->args[1], cfx_datum_invalid(), &state);
    }
    return end_loop(c, status, state);
}

cfx_status cfxi_rule_for_loop(cfxi_call *c)
{
    CFX_TRY(is_region(c, 1, "body"));
    if (!c->infer)
        return CFX_OK;
    cfx_datum index = cfxi_unknown_int(c);
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
