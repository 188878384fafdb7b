/* control_rows.c - branches and loops: operators that run regions, which are programs.
 *
 * When only types and shapes are asked for, both branches are followed, and the body of a loop
 * until nothing changes any more: what is not the same every time around is a number that nobody
 * knows. Where the predicate is known, the result is that of the one branch, and a loop that is
 * known to run a few times is followed as often: then its state may even change its type. Lists and
 * dicts that a region writes to hold afterwards what is known of them on all paths.
 */
#include "dim/dim_impl.h"
#include "runtime/python_impl.h"
#include "written_lists_impl.h"

static cfx_status status_of(const cfxi_call *c) { return c->err->status; }

/* What Python's bool() gives; when computing it never depends. */
static cfx_status truth(cfxi_call *c, cfx_datum d, bool *out)
{
    cfxi_truth t;
    CFX_TRY(cfxi_rt_python_truth(c, d, &t));
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
    cfxi_fail(c, CFX_E_SHAPE, "%s: one path returns %.180s, another %.180s",
              cfx_operator_name(c->op),
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
    return cfxi_rt_fresh(c);
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
        cfxi_fail(c, CFX_E_SHAPE, "%s: one path returns %zu results, another %zu",
                  cfx_operator_name(c->op), n, m);
        return cfx_datum_invalid();
    }
    cfx_datum *items = cfxi_rt_scratch(c->rt, (n + 1) * sizeof *items);
    size_t i = 0;
    for (; items && i < n; i++)
        if ((items[i] = join(c, x[i], y[i], widened)).kind == CFX_DATUM_INVALID)
            break;
    if (items && i == n)
        both = cfx_datum_seq((cfx_datum_kind)a.kind, items, n, c->rt->allocator, c->err);
    else if (!items)
        cfxi_base_nomem(c->err);
    if (cfx_datum_row(a) == cfx_datum_row(b))
        cfx_datum_set_row(both, cfx_datum_row(a));
    while (i > 0)
        cfx_datum_release(items[--i]);
    cfxi_rt_scratch_free(c->rt, items);
    return both;
}

static bool can_be_unknown(cfx_datum d)
{
    return d.kind == CFX_DATUM_BOOL || d.kind == CFX_DATUM_FLOAT || d.kind == CFX_DATUM_COMPLEX;
}

static bool same_number(cfx_datum a, cfx_datum b)
{
    if (a.kind == CFX_DATUM_BOOL)
        return a.as.b == b.as.b;
    return memcmp(a.as.c, b.as.c, (a.kind == CFX_DATUM_COMPLEX ? 2 : 1) * sizeof *a.as.c) == 0;
}

/* There are no texts that nobody knows. */
static bool same_text(cfx_datum a, cfx_datum b)
{
    size_t n;
    size_t m;
    const char *x = cfx_datum_text(a, &n);
    const char *y = cfx_datum_text(b, &m);
    return n == m && memcmp(x, y, n) == 0;
}

/* What is known of a value that is either `a` or `b`. */
static cfx_datum join(cfxi_call *c, cfx_datum a, cfx_datum b, int64_t widened)
{
    size_t n;
    if (a.kind != b.kind)
        return cannot_join(c, a, b);
    if (a.kind == CFX_DATUM_TENSOR)
        return join_tensors(c, a, b, widened);
    if (cfx_datum_items(a, &n) && a.as.seq == b.as.seq)
        return cfx_datum_retain(a);  /* what was written to it is joined in it (join_lists) */
    if (cfx_datum_items(a, &n))
        return join_items(c, a, b, widened);
    if (a.kind == CFX_DATUM_INT && a.as.i != b.as.i &&
        !(a.symbolic && is_widened(a.as.i, widened)))
        return cfxi_rt_unknown_int(c);
    if (can_be_unknown(a))
        a.symbolic = a.symbolic || b.symbolic || !same_number(a, b);
    else if (a.kind == CFX_DATUM_STR && !same_text(a, b))
        return cannot_join(c, a, b);
    return cfx_datum_retain(a);
}

static bool same_items(cfx_datum a, cfx_datum b)
{
    size_t n;
    size_t m;
    const cfx_datum *x = cfx_datum_items(a, &n);
    const cfx_datum *y = cfx_datum_items(b, &m);
    return n == m && (n == 0 || memcmp(x, y, n * sizeof *x) == 0);
}

static cfx_status join_list(cfxi_call *c, const cfxi_written *w, int64_t widened)
{
    size_t n;
    size_t m;
    cfx_datum_items(w->items, &n);
    cfx_datum_items(w->container, &m);
    const char *what = w->items.kind == CFX_DATUM_DICT ? "dict" : "list";
    const size_t each = w->items.kind == CFX_DATUM_DICT ? 2 : 1;
    if (n != m)
        return cfxi_fail(c, CFX_E_SHAPE, "%s: after one path a %s has %zu items, after another "
                         "%zu", cfx_operator_name(c->op), what, n / each, m / each);
    const cfx_datum both = join_items(c, w->items, w->container, widened);
    const cfx_status status =
        both.kind ? cfxi_python_fill_list(c, w->container, both) : status_of(c);
    cfx_datum_release(both);
    return status;
}

/* Lists that hold what one path gave them, `lists` saying what another one did, hold what is known
 * of both. */
static cfx_status join_lists(cfxi_call *c, const cfxi_vec *lists, int64_t widened)
{
    for (size_t i = 0; i < lists->size; i++) {
        const cfxi_written *w = (const cfxi_written *)lists->data + i;
        if (!same_items(w->container, w->items))
            CFX_TRY(join_list(c, w, widened));
    }
    return CFX_OK;
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
    if (can_be_unknown(d))
        count = !d.symbolic;
    for (size_t i = 0; d.kind == CFX_DATUM_TENSOR && i < d.as.tensor->ndim; i++)
        count += !is_widened(d.as.tensor->size[i], widened);
    return count;
}

/* Whether it is known, when only types are, what Python's bool() gives. */
static bool truth_is_known(cfx_datum d, bool *yes)
{
    *yes = d.kind == CFX_DATUM_BOOL ? d.as.b
           : d.kind == CFX_DATUM_INT ? d.as.i != 0
           : d.kind == CFX_DATUM_FLOAT && d.as.f != 0;
    return !d.symbolic && (d.kind == CFX_DATUM_NONE || d.kind == CFX_DATUM_BOOL ||
                           d.kind == CFX_DATUM_INT || d.kind == CFX_DATUM_FLOAT);
}

/* ---- state --------------------------------------------------------------------------------- */

/* The state as a tuple of its own. */
static cfx_datum first_state(cfxi_call *c, size_t i)
{
    size_t n;
    const cfx_datum *items = cfxi_rt_list(c, i, &n);
    return cfx_datum_seq(CFX_DATUM_TUPLE, items, n, c->rt->allocator, c->err);
}

/* The same where the call gives its arguments up: what is in the tuple that it has is in no other
 * one then, and a list in it can grow in place. The tuple is the caller's and this call's. */
static cfx_datum taken_state(cfxi_call *c, size_t i)
{
    enum { HOLDERS = 2 };
    size_t n;
    const cfx_datum state = first_state(c, i);
    const cfx_datum given = c->args[i];
    cfx_datum *items = cfx_datum_items(given, &n);
    if (state.kind == CFX_DATUM_INVALID || !c->gives || given.kind != CFX_DATUM_TUPLE ||
        atomic_load_explicit(&given.as.seq->refs, memory_order_acquire) != HOLDERS)
        return state;
    for (size_t k = 0; k < n; k++) {
        cfx_datum_release(items[k]);
        items[k] = cfx_datum_none();
    }
    return state;
}

/* Runs a region with the state, which is gone afterwards when it computes; `index` comes first if
 * it is not INVALID. */
static cfx_datum run_with(cfxi_call *c, cfx_datum region, cfx_datum index, cfx_datum *state)
{
    size_t n;
    cfx_datum some[32];
    const cfx_datum *items = cfx_datum_items(*state, &n);
    const size_t extra = index.kind != CFX_DATUM_INVALID;
    cfx_datum *args = n + extra <= 32 ? some : cfxi_rt_scratch(c->rt, (n + extra) * sizeof *args);
    if (!args) {
        cfxi_base_nomem(c->err);
        return cfx_datum_invalid();
    }
    args[0] = index;
    for (size_t i = 0; i < n; i++)
        args[i + extra] = cfx_datum_retain(items[i]);
    if (!c->infer) {  /* the state is nobody else's: what is in it goes to the region */
        cfx_datum_release(*state);
        *state = cfx_datum_none();
    }
    const cfx_datum result = cfxi_rt_region_take(c, region, args, n + extra);
    if (args != some)
        cfxi_rt_scratch_free(c->rt, args);
    return result;
}

/* ---- cond ---------------------------------------------------------------------------------- */

/* Who watches sees the other branch, too, but whatever is wrong there does not matter, nor what it
 * writes. */
static cfx_datum infer_branch(cfxi_call *c, const cfx_datum *operands, size_t n, bool yes)
{
    cfx_error ignored = {.status = CFX_OK};
    cfxi_vec before = {0};
    cfxi_vec after = {0};
    cfxi_call other = *c;
    cfx_datum result = cfx_datum_invalid();
    if (!c->watch || cfxi_python_note_lists(c, operands, n, &before) == CFX_OK)
        result = cfxi_rt_region_run(c, c->args[yes ? 1 : 2], operands, n);
    other.err = &ignored;
    if (c->watch && result.kind && cfxi_python_note_again(&other, &before, &after) == CFX_OK &&
        cfxi_python_put_back(&other, &before) == CFX_OK)
        cfx_datum_release(cfxi_rt_region_run(&other, c->args[yes ? 2 : 1], operands, n));
    if (c->watch && result.kind && cfxi_python_put_back(c, &after) != CFX_OK) {
        cfx_datum_release(result);
        result = cfx_datum_invalid();
    }
    cfxi_python_lists_free(c, &before);
    cfxi_python_lists_free(c, &after);
    return result;
}

/* Follows both, each from what lists held before them. */
static cfx_datum infer_branches(cfxi_call *c, const cfx_datum *operands, size_t n)
{
    cfxi_vec before = {0};
    cfxi_vec after = {0};
    cfx_datum no = cfx_datum_invalid();
    cfx_datum yes = cfx_datum_invalid();
    cfx_datum both = cfx_datum_invalid();
    if (cfxi_python_note_lists(c, operands, n, &before) == CFX_OK)
        yes = cfxi_rt_region_run(c, c->args[1], operands, n);
    if (yes.kind && cfxi_python_note_again(c, &before, &after) == CFX_OK &&
        cfxi_python_put_back(c, &before) == CFX_OK)
        no = cfxi_rt_region_run(c, c->args[2], operands, n);
    if (no.kind && join_lists(c, &after, INT64_MAX) == CFX_OK)
        both = join(c, yes, no, INT64_MAX);
    cfx_datum_release(yes);
    cfx_datum_release(no);
    cfxi_python_lists_free(c, &before);
    cfxi_python_lists_free(c, &after);
    return both;
}

cfx_status cfxi_rule_cond(cfxi_call *c)
{
    size_t n;
    bool way;
    const cfx_datum *operands = cfxi_rt_list(c, 3, &n);
    CFX_TRY(is_region(c, 1, "then"));
    CFX_TRY(is_region(c, 2, "otherwise"));
    if (!c->infer)
        return CFX_OK;
    cfx_datum result = truth_is_known(c->args[0], &way) ? infer_branch(c, operands, n, way)
                                                        : infer_branches(c, operands, n);
    cfxi_rt_result_datum(c, 0, result);
    return result.kind ? CFX_OK : status_of(c);
}

cfx_status cfxi_kernel_cond(cfxi_call *c)
{
    bool yes = false;
    CFX_TRY(truth(c, c->args[0], &yes));
    cfx_datum state = taken_state(c, 3);
    cfx_datum result = cfx_datum_invalid();
    if (state.kind != CFX_DATUM_INVALID)
        result = run_with(c, c->args[yes ? 1 : 2], cfx_datum_invalid(), &state);
    cfx_datum_release(state);
    cfxi_rt_result_datum(c, 0, result);
    return result.kind ? CFX_OK : status_of(c);
}

/* ---- loops --------------------------------------------------------------------------------- */

/* *state becomes what the body gives for it; `index` comes first if it is not INVALID. */
static cfx_status turn(cfxi_call *c, cfx_datum body, cfx_datum index, cfx_datum *state)
{
    size_t n;
    size_t m;
    CFX_TRY(cfxi_rt_go_on(c->rt, c->err));  /* a body may be without instructions */
    cfx_datum_items(*state, &n);
    cfx_datum next = run_with(c, body, index, state);
    if (next.kind == CFX_DATUM_INVALID)
        return status_of(c);
    cfx_datum_items(next, &m);
    if ((next.kind != CFX_DATUM_TUPLE && next.kind != CFX_DATUM_LIST) || m != n) {
        cfx_datum_release(next);
        return cfxi_fail(c, CFX_E_TYPE, "%s: the body must return %zu values, as many as the state "
                         "has", cfx_operator_name(c->op), n);
    }
    next.kind = CFX_DATUM_TUPLE;
    cfx_datum_release(*state);
    *state = next;
    return CFX_OK;
}

/* One more turn, which is seen, and leaves nothing in lists. */
static cfx_status show_turn(cfxi_call *c, cfx_datum body, cfx_datum index, cfx_datum state)
{
    size_t n;
    cfxi_vec before = {0};
    const cfx_datum *items = cfx_datum_items(state, &n);
    cfx_datum seen = cfx_datum_retain(state);
    cfx_status status = cfxi_python_note_lists(c, items, n, &before);
    if (status == CFX_OK)
        status = turn(c, body, index, &seen);
    if (status == CFX_OK)
        status = cfxi_python_put_back(c, &before);
    cfx_datum_release(seen);
    cfxi_python_lists_free(c, &before);
    return status;
}

/* *state becomes what it is after a turn or without it. */
static cfx_status widen(cfxi_call *c, cfx_datum body, cfx_datum index, int64_t widened,
                        cfx_datum *state)
{
    size_t n;
    cfxi_vec before = {0};
    cfxi_call unseen = *c;
    const cfx_datum *items = cfx_datum_items(*state, &n);
    cfx_datum after = cfx_datum_retain(*state);
    cfx_datum both = cfx_datum_invalid();
    unseen.watch = NULL;
    if (cfxi_python_note_lists(c, items, n, &before) == CFX_OK &&
        turn(&unseen, body, index, &after) == CFX_OK && join_lists(c, &before, widened) == CFX_OK)
        both = join(c, *state, after, widened);
    cfx_datum_release(after);
    cfxi_python_lists_free(c, &before);
    if (both.kind == CFX_DATUM_INVALID)
        return status_of(c);
    cfx_datum_release(*state);
    *state = both;
    return CFX_OK;
}

/* What the state is after any number of turns: what a turn changes becomes unknown, until a turn
 * changes nothing that is still known. Who watches sees one more turn, with what is known then. */
static cfx_status infer_loop(cfxi_call *c, cfx_datum body, cfx_datum index, cfx_datum *state)
{
    int64_t widened = cfxi_dim_next(c->dims);
    size_t before = count_known(*state, widened);
    for (;;) {
        CFX_TRY(widen(c, body, index, widened, state));
        size_t known = count_known(*state, widened);
        if (known == before)
            break;
        before = known;
    }
    return c->watch ? show_turn(c, body, index, *state) : CFX_OK;
}

enum { MOST_TURNS = 16 };

/* Whether there is a turn after `done` of them: *known is false if that cannot be told. */
static cfx_status has_turn(cfxi_call *c, cfx_datum state, int64_t done, bool *more, bool *known)
{
    if (c->op == CFX_OPID_for_loop) {
        *known = c->args[0].kind == CFX_DATUM_INT && !c->args[0].symbolic;
        *more = *known && done < c->args[0].as.i;
        return CFX_OK;
    }
    size_t n;
    const cfx_datum *items = cfx_datum_items(state, &n);
    cfx_datum test = cfxi_rt_region_run(c, c->args[0], items, n);
    *known = truth_is_known(test, more);
    cfx_datum_release(test);
    return test.kind ? CFX_OK : status_of(c);
}

static cfx_datum index_of(const cfxi_call *c, int64_t i)
{
    return c->op == CFX_OPID_for_loop ? cfx_datum_int(i) : cfx_datum_invalid();
}

/* Follows a loop as often as it runs; *known is false if that is not known, or too often. */
static cfx_status infer_turns(cfxi_call *c, cfx_datum *state, int64_t *turns, bool *known)
{
    cfxi_call unseen = *c;
    bool more = true;
    unseen.watch = NULL;
    for (*turns = 0; *turns <= MOST_TURNS; ++*turns) {
        CFX_TRY(has_turn(&unseen, *state, *turns, &more, known));
        if (!*known || !more)
            return CFX_OK;
        if (*turns < MOST_TURNS)
            CFX_TRY(turn(&unseen, c->args[1], index_of(c, *turns), state));
    }
    *known = false;
    return CFX_OK;
}

/* Who watches is to see what holds in every turn; if that is nothing, because a type changes, the
 * first one. Lists hold what `lists` says, and are left to be put right. */
static cfx_status show_from(cfxi_call *c, const cfxi_vec *lists)
{
    cfx_error ignored = {.status = CFX_OK};
    cfxi_call general = *c;
    cfx_datum index = c->op == CFX_OPID_for_loop ? cfxi_rt_unknown_int(c) : cfx_datum_invalid();
    cfx_datum state = first_state(c, 2);
    if (state.kind == CFX_DATUM_INVALID)
        return status_of(c);
    general.err = &ignored;
    cfx_status status = infer_loop(&general, c->args[1], index, &state);
    cfx_datum_release(state);
    if (status == CFX_OK || status == CFX_E_NOMEM)
        return status == CFX_OK ? CFX_OK : cfxi_base_nomem(c->err);
    CFX_TRY(cfxi_python_put_back(c, lists));
    state = first_state(c, 2);
    status = state.kind ? turn(c, c->args[1], index_of(c, 0), &state) : status_of(c);
    cfx_datum_release(state);
    return status;
}

static cfx_status show_turns(cfxi_call *c, int64_t turns, const cfxi_vec *lists)
{
    cfxi_vec after = {0};
    if (!c->watch || turns == 0)
        return CFX_OK;
    cfx_status status = cfxi_python_note_again(c, lists, &after);
    if (status == CFX_OK)
        status = cfxi_python_put_back(c, lists);
    if (status == CFX_OK)
        status = show_from(c, lists);
    if (status == CFX_OK)
        status = cfxi_python_put_back(c, &after);
    cfxi_python_lists_free(c, &after);
    return status;
}

static cfx_status end_loop(cfxi_call *c, cfx_status status, cfx_datum state)
{
    if (status == CFX_OK)
        cfxi_rt_result_datum(c, 0, state);
    else
        cfx_datum_release(state);
    return status;
}

/* The test sees every state that the body gives, and may be wrong for it. */
static cfx_status infer_test(cfxi_call *c, cfx_datum state)
{
    bool more;
    bool known;
    cfxi_call seen = *c;
    if (c->watch && c->watch->meter)
        seen.watch = NULL;
    return has_turn(&seen, state, 0, &more, &known);
}

/* The loop may run any number of times. */
static cfx_status infer_any(cfxi_call *c, cfx_datum *state, const cfxi_vec *lists)
{
    cfx_datum index = c->op == CFX_OPID_for_loop ? cfxi_rt_unknown_int(c) : cfx_datum_invalid();
    cfx_datum_release(*state);
    *state = first_state(c, 2);
    CFX_TRY(state->kind ? CFX_OK : status_of(c));
    CFX_TRY(cfxi_python_put_back(c, lists));
    return infer_loop(c, c->args[1], index, state);
}

static cfx_status rule_loop(cfxi_call *c)
{
    size_t n;
    int64_t turns = 0;
    bool known = false;
    cfxi_vec lists = {0};
    cfx_datum state = first_state(c, 2);
    const cfx_datum *items = cfx_datum_items(state, &n);
    cfx_status status = state.kind ? cfxi_python_note_lists(c, items, n, &lists) : status_of(c);
    if (status == CFX_OK)
        status = infer_turns(c, &state, &turns, &known);
    if (status == CFX_OK)
        status = known ? show_turns(c, turns, &lists) : infer_any(c, &state, &lists);
    cfxi_python_lists_free(c, &lists);
    if (status == CFX_OK && c->op == CFX_OPID_while_loop)
        status = infer_test(c, state);
    return end_loop(c, status, state);
}

cfx_status cfxi_rule_while_loop(cfxi_call *c)
{
    CFX_TRY(is_region(c, 0, "test"));
    CFX_TRY(is_region(c, 1, "body"));
    return c->infer ? rule_loop(c) : CFX_OK;
}

cfx_status cfxi_kernel_while_loop(cfxi_call *c)
{
    cfx_datum state = taken_state(c, 2);
    cfx_status status = state.kind ? CFX_OK : status_of(c);
    while (status == CFX_OK) {
        size_t n;
        bool more = false;
        const cfx_datum *items = cfx_datum_items(state, &n);
        cfx_datum test = cfxi_rt_region_run(c, c->args[0], items, n);
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
    return c->infer ? rule_loop(c) : CFX_OK;
}

cfx_status cfxi_kernel_for_loop(cfxi_call *c)
{
    int64_t count = 0;
    CFX_TRY(cfxi_rt_number(c, 0, &count));
    cfx_datum state = taken_state(c, 2);
    cfx_status status = state.kind ? CFX_OK : status_of(c);
    for (int64_t i = 0; status == CFX_OK && i < count; i++)
        status = turn(c, c->args[1], cfx_datum_int(i), &state);
    return end_loop(c, status, state);
}
