/* guards.c - sets of guards: what is in them, and checking them. */
#include "guard_impl.h"

#include <stdio.h>

/* ---- sets ---------------------------------------------------------------------------------- */

static const char *keep_text(cfx_guards *g, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = cfxi_base_arena_alloc(&g->arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

static cfx_status check_name(const cfx_guards *g, const char *name, size_t i, cfx_error *err)
{
    if (!name[0] || !cfxi_base_utf8_valid(name, strlen(name)))
        return cfx_error_set(err, CFX_E_VALUE, "the name of input %zu is %s", i,
                             name[0] ? "not UTF-8" : "empty");
    for (size_t k = 0; k < i; k++)
        if (strcmp(g->names[k], name) == 0)
            return cfx_error_set(err, CFX_E_VALUE, "two inputs are called '%.100s'", name);
    return CFX_OK;
}

cfx_guards *cfx_guards_new(const char *const *names, size_t n, const cfx_allocator *allocator,
                           cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    allocator = cfxi_base_allocator(allocator);
    cfx_guards *g = cfxi_base_alloc(allocator, sizeof *g);
    if (!g) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *g = (cfx_guards){.allocator = allocator};
    cfxi_base_arena_init(&g->arena, allocator);
    g->names = cfxi_base_arena_zeros(&g->arena, n, sizeof *g->names);
    cfx_status status = g->names ? CFX_OK : cfxi_base_nomem(err);
    for (; status == CFX_OK && g->num_inputs < n; g->num_inputs++) {
        status = check_name(g, names[g->num_inputs], g->num_inputs, err);
        if (status == CFX_OK && !(g->names[g->num_inputs] = keep_text(g, names[g->num_inputs])))
            status = cfxi_base_nomem(err);
    }
    if (status == CFX_OK)
        return g;
    cfx_guards_free(g);
    return NULL;
}

void cfx_guards_free(cfx_guards *g)
{
    if (!g)
        return;
    cfxi_base_vec_free(&g->terms, sizeof(cfxi_guard_term), g->allocator);
    cfxi_base_vec_free(&g->items, sizeof(cfxi_guard_item), g->allocator);
    cfxi_base_vec_free(&g->rows, sizeof(cfxi_guard_row), g->allocator);
    cfxi_base_arena_release(&g->arena);
    cfxi_base_free(g->allocator, g, sizeof *g);
}

static bool copy_vec(cfxi_vec *to, const cfxi_vec *from, size_t item, const cfx_allocator *a)
{
    if (from->size == 0)
        return true;
    if (!cfxi_base_vec_reserve(to, from->size, item, a))
        return false;
    memcpy(to->data, from->data, from->size * item);
    to->size = from->size;
    return true;
}

cfx_guards *cfx_guards_copy(const cfx_guards *g, cfx_error *err)
{
    cfx_guards *copy = cfx_guards_new(g->names, g->num_inputs, g->allocator, err);
    if (!copy)
        return NULL;
    bool good = copy_vec(&copy->terms, &g->terms, sizeof(cfxi_guard_term), g->allocator) &&
                copy_vec(&copy->items, &g->items, sizeof(cfxi_guard_item), g->allocator) &&
                copy_vec(&copy->rows, &g->rows, sizeof(cfxi_guard_row), g->allocator);
    for (size_t i = 0; good && i < copy->rows.size; i++) {
        cfx_guard *guard = &cfxi_guard_at(copy, i)->guard;
        guard->line = keep_text(copy, guard->line);
        good = guard->line != NULL;
    }
    if (good)
        return copy;
    cfxi_base_nomem(err);
    cfx_guards_free(copy);
    return NULL;
}

size_t cfx_guards_num_inputs(const cfx_guards *g) { return g->num_inputs; }

const char *cfx_guards_input(const cfx_guards *g, size_t i)
{
    return i < g->num_inputs ? g->names[i] : NULL;
}

size_t cfx_guards_count(const cfx_guards *g) { return g->rows.size; }

bool cfx_guards_get(const cfx_guards *g, size_t i, cfx_guard *out)
{
    if (i >= g->rows.size)
        return false;
    *out = cfxi_guard_at(g, i)->guard;
    return true;
}

/* ---- terms --------------------------------------------------------------------------------- */

size_t cfx_guards_num_terms(const cfx_guards *g) { return g->terms.size; }

bool cfx_guards_term(const cfx_guards *g, size_t i, size_t *input, size_t *dim)
{
    if (i >= g->terms.size)
        return false;
    *input = cfxi_guard_terms(g)[i].input;
    *dim = cfxi_guard_terms(g)[i].dim;
    return true;
}

/* There are few: a list is enough. */
bool cfxi_guard_term_of(cfx_guards *g, size_t input, size_t dim, uint32_t *term)
{
    const cfxi_guard_term *terms = cfxi_guard_terms(g);
    for (size_t i = 0; i < g->terms.size; i++) {
        if (terms[i].input == input && terms[i].dim == dim) {
            *term = (uint32_t)i;
            return true;
        }
    }
    if (!cfxi_base_vec_reserve(&g->terms, 1, sizeof *terms, g->allocator))
        return false;
    *term = (uint32_t)g->terms.size;
    ((cfxi_guard_term *)g->terms.data)[g->terms.size++] = (cfxi_guard_term){input, dim};
    return true;
}

/* ---- guards -------------------------------------------------------------------------------- */

cfx_status cfxi_guard_add(cfx_guards *g, const cfx_guard *guard, cfx_guard_relation relation,
                          bool truth, const cfxi_guard_code *left, const cfxi_guard_code *right,
                          cfx_error *err)
{
    if (!cfxi_base_vec_reserve(&g->items, left->n + right->n, sizeof *left->items, g->allocator) ||
        !cfxi_base_vec_reserve(&g->rows, 1, sizeof(cfxi_guard_row), g->allocator))
        return cfxi_base_nomem(err);
    cfxi_guard_row row = {.guard = *guard, .relation = (uint8_t)relation, .truth = truth,
                          .first = (uint32_t)g->items.size, .left = (uint32_t)left->n,
                          .right = (uint32_t)right->n};
    row.guard.line = keep_text(g, guard->line ? guard->line : "");
    if (!row.guard.line)
        return cfxi_base_nomem(err);
    cfxi_guard_item *end = (cfxi_guard_item *)g->items.data + g->items.size;
    memcpy(end, left->items, left->n * sizeof *end);
    memcpy(end + left->n, right->items, right->n * sizeof *end);
    g->items.size += left->n + right->n;
    *cfxi_guard_at(g, g->rows.size++) = row;
    return CFX_OK;
}

void cfxi_guard_cut(cfx_guards *g, size_t n)
{
    if (n >= g->rows.size)
        return;
    g->items.size = cfxi_guard_at(g, n)->first;
    g->rows.size = n;
}

/* ---- checking ------------------------------------------------------------------------------ */

/* "x.shape[0] > 1 was True at model.py:12 when the model was captured" */
static void explain(const cfx_guards *g, size_t which, cfx_error *err)
{
    char value[CFXI_NUMBER_SIZE];
    cfx_buffer question;
    const cfx_guard *guard = &cfxi_guard_at(g, which)->guard;
    if (!err)
        return;
    const cfx_status status = err->status == CFX_OK ? CFX_E_ASSERTION : err->status;
    cfx_buffer_init(&question, g->allocator);
    cfx_guards_print_question(g, which, cfx_buffer_sink(&question), NULL);  /* else it is short */
    if (guard->value.kind == CFX_DATUM_BOOL)
        snprintf(value, sizeof value, "%s", guard->value.as.b ? "True" : "False");
    else if (guard->value.kind == CFX_DATUM_INT)
        cfxi_base_format_int(guard->value.as.i, value);
    else
        cfxi_base_format_float(guard->value.as.f, value);
    cfx_error_set(err, status, "%.300s was %s%s%.100s when the model was captured", question.data,
                  value, guard->line[0] ? " at " : "", guard->line);
    cfx_buffer_free(&question);
}

bool cfx_guards_hold(const cfx_guards *g, const cfx_datum *values, size_t *which, cfx_error *err)
{
    cfx_error own = {0};
    for (size_t i = 0; i < g->rows.size; i++) {
        const cfx_datum answer = cfxi_guard_answer(g, cfxi_guard_at(g, i), values, NULL, &own);
        if (answer.kind == CFX_DATUM_BOOL && answer.as.b)
            continue;
        if (which)
            *which = i;
        if (err) {
            explain(g, i, &own);
            *err = own;
        }
        return false;
    }
    return true;
}
