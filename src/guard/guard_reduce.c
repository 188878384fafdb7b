/* guard_reduce.c - drops guards that always hold, or that follow from others: N > 0 beside N > 1.
 *
 *     before                        after
 *     x.shape[0] >= 0 is True       x.shape[0] > 1 is True
 *     x.shape[0] > 0 is True
 *     x.shape[0] > 1 is True
 *     x.shape[0] > 1 is True
 *
 * Guards on integers are compared as sizes (dim.h): first each with those before it, then each with
 * those behind it that are left. Two passes, so that it stays linear in the proofs; one guard that
 * follows only from some before and some behind together is kept. The order is kept. Others are
 * dropped only if they are there already.
 */
#include "guard_impl.h"

#include <cfx/embed/dim.h>

/* What is known while guards are compared. */
typedef struct knowledge {
    const cfx_guards *g;
    cfx_dims *dims;
    cfx_datum *values;  /* of terms: symbols */
} knowledge;

static cfx_status learn_terms(knowledge *k, const cfx_settle_options *options, cfx_error *err)
{
    char name[CFXI_NUMBER_SIZE + 1] = "t";
    for (size_t i = 0; i < k->g->terms.size; i++) {
        const cfxi_guard_term *t = &cfxi_guard_terms(k->g)[i];
        const bool size = t->dim != CFX_GUARD_NUMBER;
        k->values[i] = cfxi_rt_py_unknown(CFX_DATUM_FLOAT);
        if (!size && options->inputs[t->input].number.kind != CFX_DATUM_INT)
            continue;
        cfxi_base_format_int((int64_t)i, name + 1);
        k->values[i] = cfx_datum_int(cfx_dims_symbol(k->dims, name, size ? 0 : INT64_MIN, err));
        k->values[i].symbolic = 1;
        if (k->values[i].as.i == CFX_DIM_UNKNOWN)
            return err->status;
    }
    return CFX_OK;
}

static bool is_total(const cfx_guards *g, const cfxi_guard_row *row)
{
    return cfxi_guard_is_total(cfxi_guard_items(g, row, false), row->left) &&
           cfxi_guard_is_total(cfxi_guard_items(g, row, true), row->right);
}

/* Whether the guard holds if what is known does. */
static bool follows(const knowledge *k, const cfxi_guard_row *row, cfx_error *err)
{
    cfx_error own = {0};
    const cfx_datum answer = cfxi_guard_answer(k->g, row, k->values, k->dims, &own);
    if (own.status == CFX_E_NOMEM)
        *err = own;
    return answer.kind == CFX_DATUM_BOOL && !answer.symbolic && answer.as.b && is_total(k->g, row);
}

/* From here on the guard is known to hold. What cannot be said of sizes is left out. */
static void learn(const knowledge *k, const cfxi_guard_row *row)
{
    static const uint8_t opposites[] = {
#define CFX_GUARD_RELATION(id, sign, opposite) [CFX_GUARD_##id] = CFX_GUARD_##opposite,
#include <cfx/guard.def>
#undef CFX_GUARD_RELATION
    };
    int64_t side[2];
    for (int i = 0; i < 2; i++) {
        const cfx_datum d = cfxi_guard_evaluate(cfxi_guard_items(k->g, row, i == 1),
                                                i == 1 ? row->right : row->left, k->values, k->dims,
                                                NULL);
        if (d.kind != CFX_DATUM_INT || d.as.i == CFX_DIM_UNKNOWN)
            return;
        side[i] = d.as.i;
    }
    switch ((cfx_guard_relation)(row->truth ? row->relation : opposites[row->relation])) {
    case CFX_GUARD_EQ: cfx_dim_expect_eq(k->dims, side[0], side[1]); break;
    case CFX_GUARD_LE: cfx_dim_expect_le(k->dims, side[0], side[1]); break;
    case CFX_GUARD_GE: cfx_dim_expect_le(k->dims, side[1], side[0]); break;
    case CFX_GUARD_LT:
        cfx_dim_expect_le(k->dims, cfx_dim_add(k->dims, side[0], 1, NULL), side[1]);
        break;
    case CFX_GUARD_GT:
        cfx_dim_expect_le(k->dims, cfx_dim_add(k->dims, side[1], 1, NULL), side[0]);
        break;
    case CFX_GUARD_NE:
    case CFX_GUARD_RELATION_COUNT: break;
    }
}

static bool same_items(const cfxi_guard_item *a, const cfxi_guard_item *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i].op != b[i].op || a[i].term != b[i].term || a[i].number.kind != b[i].number.kind ||
            a[i].number.as.i != b[i].number.as.i)
            return false;
    return true;
}

static bool same(const cfx_guards *g, const cfxi_guard_row *a, const cfxi_guard_row *b)
{
    return a->relation == b->relation && a->truth == b->truth && a->left == b->left &&
           a->right == b->right &&
           same_items(cfxi_guard_items(g, a, false), cfxi_guard_items(g, b, false),
                      (size_t)a->left + a->right);
}

/* Whether the same guard stands before: for those that are not of integers. */
static bool repeats(const cfx_guards *g, const bool *gone, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!gone[k] && same(g, cfxi_guard_at(g, k), cfxi_guard_at(g, i)))
            return true;
    return false;
}

/* Marks what follows from the guards before it, or with `backwards` behind it. */
static cfx_status mark(const cfx_guards *g, const cfx_settle_options *options, bool backwards,
                       bool *gone, cfx_error *err)
{
    const size_t n = g->rows.size;
    knowledge k = {.g = g, .dims = cfx_dims_new(g->allocator, err)};
    if (!k.dims)
        return CFX_E_NOMEM;
    const size_t bytes = (g->terms.size + 1) * sizeof *k.values;
    k.values = cfxi_base_alloc(g->allocator, bytes);
    cfx_status status = k.values ? learn_terms(&k, options, err) : cfxi_base_nomem(err);
    for (size_t step = 0; status == CFX_OK && step < n; step++) {
        const size_t i = backwards ? n - 1 - step : step;
        const cfxi_guard_row *row = cfxi_guard_at(g, i);
        if (gone[i])
            continue;
        gone[i] = follows(&k, row, err) || (!backwards && repeats(g, gone, i));
        if (!gone[i])
            learn(&k, row);
        status = err->status;
    }
    if (k.values)
        cfxi_base_free(g->allocator, k.values, bytes);
    cfx_dims_free(k.dims);
    return status;
}

/* Takes the guards out, and terms that nobody asks for any more. */
static cfx_status sweep(cfx_guards *g, const bool *gone, cfx_error *err)
{
    const cfxi_vec rows = g->rows;
    const cfxi_vec items = g->items;
    const cfxi_vec terms = g->terms;
    cfxi_guard_code side[2];
    cfx_status status = CFX_OK;
    g->rows = g->items = g->terms = (cfxi_vec){0};
    for (size_t i = 0; status == CFX_OK && i < rows.size; i++) {
        const cfxi_guard_row *row = (const cfxi_guard_row *)rows.data + i;
        const cfxi_guard_item *from = (const cfxi_guard_item *)items.data + row->first;
        if (gone[i])
            continue;
        side[0].n = row->left;
        side[1].n = row->right;
        memcpy(side[0].items, from, row->left * sizeof *from);
        memcpy(side[1].items, from + row->left, row->right * sizeof *from);
        for (size_t k = 0; k < side[0].n + side[1].n; k++) {
            cfxi_guard_item *item = k < side[0].n ? &side[0].items[k]
                                                  : &side[1].items[k - side[0].n];
            const cfxi_guard_term *t = (const cfxi_guard_term *)terms.data + item->term;
            if (item->op == CFXI_GUARD_TERM &&
                !cfxi_guard_term_of(g, t->input, t->dim, &item->term))
                status = cfxi_base_nomem(err);
        }
        if (status == CFX_OK)
            status = cfxi_guard_add(g, &row->guard, (cfx_guard_relation)row->relation, row->truth,
                                    &side[0], &side[1], err);
    }
    cfxi_vec old[] = {status == CFX_OK ? rows : g->rows, status == CFX_OK ? items : g->items,
                      status == CFX_OK ? terms : g->terms};
    cfxi_base_vec_free(&old[0], sizeof(cfxi_guard_row), g->allocator);
    cfxi_base_vec_free(&old[1], sizeof(cfxi_guard_item), g->allocator);
    cfxi_base_vec_free(&old[2], sizeof(cfxi_guard_term), g->allocator);
    if (status != CFX_OK) {
        g->rows = rows;
        g->items = items;
        g->terms = terms;
    }
    return status;
}

cfx_status cfxi_guard_reduce(cfx_guards *g, const cfx_settle_options *options, cfx_error *err)
{
    const size_t n = g->rows.size;
    bool *gone = cfxi_base_alloc(g->allocator, n + 1);
    if (!gone)
        return cfxi_base_nomem(err);
    memset(gone, 0, n + 1);
    cfx_status status = mark(g, options, false, gone, err);
    if (status == CFX_OK)
        status = mark(g, options, true, gone, err);
    if (status == CFX_OK)
        status = sweep(g, gone, err);
    cfxi_base_free(g->allocator, gone, n + 1);
    return status;
}
