/* region_scan.c - Scan and SequenceMap: loops of as many rounds as their inputs have items. */
#include "regions_impl.h"

/* ---- Scan ---------------------------------------------------------------------------------- */

/* Runs `length` rounds: their results, or NULL, and the scope fails. */
static cfx_var *count_rounds(cfxi_looping *l, const cfx_var *inputs, cfx_var length,
                             const int64_t *axes, const int64_t *turned)
{
    const cfx_at at = {.scope = l->c->scope};
    size_t n;
    const cfx_var *state = cfxi_import_first_state(l, inputs, cfx_var_empty(), &n);
    if (!state || !cfx_scope_ok(at.scope))
        return NULL;
    const cfx_vars in = cfx_vars_make(state, n);
    const cfx_var all = cfx_for_at(at, length, cfxi_import_counted_round, l, in);
    return cfxi_import_loop_results(l, all, n, axes, turned);
}

/* The loop of a Scan whose inputs begin with input `first`; false, and the scope fails. */
static bool read_scan(cfxi_looping *l, size_t first)
{
    cfxi_import_call *c = l->c;
    const int64_t scanned = cfxi_import_int(c, "num_scan_inputs", 0);
    l->counts = true;
    l->body = cfxi_import_region_of(c, "body");
    if (!l->body || scanned < 1 || c->node->inputs.n < first ||
        (size_t)scanned > c->node->inputs.n - first)
        return cfxi_import_fail(c, CFX_E_VALUE, "num_scan_inputs does not fit the inputs"), false;
    l->sliced = (size_t)scanned;
    l->carried = c->node->inputs.n - first - l->sliced;
    if (l->body->outputs.n < l->carried)
        return cfxi_import_fail(c, CFX_E_VALUE, "the body has too few outputs"), false;
    l->lists = l->body->outputs.n - l->carried;
    return true;
}

cfx_var cfxi_import_scan(cfxi_import_call *c)
{
    cfxi_looping l = {.c = c, .captured = {.m = c->import, .outer = c->frame}};
    size_t n[4];
    if (cfxi_import_later(c) || !read_scan(&l, 0))
        return cfx_var_empty();
    l.axes = cfxi_import_ints(c, "scan_input_axes", &n[0]);
    l.turned = cfxi_import_ints(c, "scan_input_directions", &n[1]);
    const int64_t *axes = cfxi_import_ints(c, "scan_output_axes", &n[2]);
    const int64_t *turned = cfxi_import_ints(c, "scan_output_directions", &n[3]);
    if ((l.axes && n[0] != l.sliced) || (l.turned && n[1] != l.sliced) ||
        (axes && n[2] != l.lists) || (turned && n[3] != l.lists))
        return cfxi_import_fail(c, CFX_E_VALUE, "axes or directions do not fit the inputs");
    const int rank = cfxi_import_need_rank(c, l.carried);
    const int axis = cfxi_import_axis(c, l.axes ? l.axes[0] : 0, rank);
    if (axis >= 0 && cfxi_import_outer_use(&l.captured, l.body)) {
        const cfx_var length = cfxi_import_size(c, l.carried, axis);
        const cfx_var *inputs = cfxi_import_inputs_from(c, 0);
        cfxi_import_set_results(&l, count_rounds(&l, inputs, length, axes, turned));
    }
    cfxi_import_outer_free(&l.captured);
    return cfx_var_empty();
}

/* Opset 8 has many sequences, along dimension 0 of everything, each scanned along the next: a loop
 * over the sequences around the one over items. All sequences are scanned to the end of the
 * longest; what is carried stays as it was at the end of each. */
typedef struct batch {
    cfxi_looping over;    /* the sequences: they are its slices, and all results are its lists */
    cfxi_looping one;     /* the items of one */
    cfx_var length;  /* of the longest; not a number: to be asked for */
} batch;

static cfx_var scan_sequence(cfx_scope *s, void *ctx, cfx_var round, const cfx_var *in)
{
    batch *b = ctx;
    const cfxi_looping *over = &b->over;
    const size_t num_captured = over->captured.vars.size;
    cfx_var *state = cfxi_import_room(over->c, cfxi_import_state_size(over) + 1);
    cfx_var *inputs = cfxi_import_room(over->c, over->sliced);
    cfx_var *outside = cfxi_import_room(over->c, num_captured);
    if (!state || !inputs || !outside)
        return cfx_var_empty();
    for (size_t i = 0; i < over->sliced; i++)
        inputs[i] = cfxi_import_slice_of(over, i, in[i], round, in);
    for (size_t i = 0; i < num_captured; i++)
        outside[i] = in[cfxi_import_at_captured(over) + i];
    b->one.captured.vars = (cfxi_vec){.data = outside, .size = num_captured};
    const size_t end = cfxi_import_state_size(over);
    if (over->masks)
        b->one.limit = cfx_select(s, in[end], 0, cfxi_import_unknown(over->c, round));
    const cfx_var length = b->length.kind == CFX_VAR_INT
                               ? b->length : cfx_size(s, inputs[b->one.carried], .dim = cfx_v(0));
    const cfx_var *rows = count_rounds(&b->one, inputs, length, NULL, NULL);
    if (!rows)
        return cfx_var_empty();
    for (size_t i = 0; i < cfxi_import_at_lists(over); i++)
        state[i] = in[i];
    for (size_t i = 0; i < over->lists; i++) {
        const size_t k = cfxi_import_at_lists(over) + i;
        state[k] = cfxi_import_add_row(over, i, in[k], rows[i]);
    }
    state[end] = over->masks ? in[end] : cfx_var_none();
    return cfxi_import_tuple(s, state, end + over->masks);
}

cfx_var cfxi_import_scan_batch(cfxi_import_call *c)
{
    const cfx_at at = {.scope = c->scope};
    batch b = {.one = {.c = c, .captured = {.m = c->import, .outer = c->frame}}};
    size_t n;
    if (cfxi_import_later(c) || !read_scan(&b.one, 1))
        return cfx_var_empty();
    b.one.turned = cfxi_import_ints(c, "directions", &n);
    if (b.one.turned && n != b.one.sliced)
        return cfxi_import_fail(c, CFX_E_VALUE, "directions do not fit the inputs");
    const int rank = cfxi_import_need_rank(c, 1 + b.one.carried);
    if (cfxi_import_axis(c, 1, rank) < 0)
        return cfx_var_empty();
    if (!cfxi_import_outer_use(&b.one.captured, b.one.body))
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    b.one.masks = cfxi_import_has(c, 0);
    b.over = (cfxi_looping){.c = c, .captured = b.one.captured, .counts = true, .any_rows = true,
                       .masks = b.one.masks, .limit = cfxi_import_optional(c, 0),
                       .sliced = b.one.carried + b.one.sliced,
                       .lists = b.one.carried + b.one.lists};
    b.length = cfxi_import_size(c, 1 + b.one.carried, 1);
    const cfx_var *inputs = cfxi_import_inputs_from(c, 1);
    const cfx_var *state = cfxi_import_first_state(&b.over, inputs, cfx_var_empty(), &n);
    if (state && cfx_scope_ok(c->scope)) {
        const cfx_var sequences = cfxi_import_size(c, 1 + b.one.carried, 0);
        const cfx_var all = cfx_for_at(at, sequences, scan_sequence, &b, cfx_vars_make(state, n));
        cfxi_import_set_results(&b.over, cfxi_import_loop_results(&b.over, all, n, NULL, NULL));
    }
    cfxi_import_outer_free(&b.over.captured);
    return cfx_var_empty();
}

/* ---- SequenceMap --------------------------------------------------------------------------- */

cfx_var cfxi_import_sequence_map(cfxi_import_call *c)
{
    cfxi_looping l = {.c = c, .captured = {.m = c->import, .outer = c->frame}, .counts = true,
                 .any_rows = true, .body = cfxi_import_region_of(c, "body"),
                 .sliced = c->node->inputs.n};
    bool *sequences = cfxi_base_arena_zeros(&c->import->arena, l.sliced, sizeof *sequences);
    if (!sequences)
        return cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    if (cfxi_import_later(c) || !l.body)
        return cfx_var_empty();
    l.lists = l.body->outputs.n;
    l.sequences = sequences;
    for (size_t i = 0; i < l.sliced; i++)
        sequences[i] = i == 0 || cfxi_import_is_sequence(c, i);
    if (!cfxi_import_outer_use(&l.captured, l.body))
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    const cfx_var length = cfx_len(c->scope, cfxi_import_in(c, 0));
    const cfx_var *inputs = cfxi_import_inputs_from(c, 0);
    cfxi_import_set_results(&l, count_rounds(&l, inputs, length, NULL, NULL));
    cfxi_import_outer_free(&l.captured);
    return cfx_var_empty();
}
