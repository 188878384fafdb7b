/* session.c - values that programs keep from run to run. */
#include <cfx/session.h>

#include "named_impl.h"

#include <stdio.h>

struct cfx_session {
    cfxi_named values;
};

enum { FEW = 32 };  /* inputs for which the C stack has room */

cfx_session *cfx_session_new(const cfx_allocator *allocator, cfx_error *err)
{
    allocator = cfxi_base_allocator(allocator);
    cfx_session *s = cfxi_base_alloc(allocator, sizeof *s);
    if (!s) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *s = (cfx_session){.values = cfxi_rt_named_new(allocator)};
    return s;
}

void cfx_session_free(cfx_session *s)
{
    if (!s)
        return;
    cfxi_rt_named_free(&s->values);
    cfxi_base_free(s->values.allocator, s, sizeof *s);
}

cfx_status cfx_session_set(cfx_session *s, const char *name, cfx_datum value, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(s, "session", err));
    CFX_TRY(cfxi_base_expect(value.kind == CFX_DATUM_INVALID ? NULL : s, "value", err));
    return cfxi_rt_named_set(&s->values, name, value, err);
}

cfx_datum cfx_session_get(const cfx_session *s, const char *name)
{
    return s ? cfxi_rt_named_get(&s->values, name) : cfx_datum_invalid();
}

size_t cfx_session_size(const cfx_session *s) { return s->values.entries.size; }

const char *cfx_session_name(const cfx_session *s, size_t i)
{
    return cfxi_rt_named_entry(&s->values, i, NULL);
}

/* ---- inputs -------------------------------------------------------------------------------- */

static bool is_like(const cfx_tensor *t, const cfx_kept_input *takes)
{
    return (takes->dtype == CFX_DTYPE_COUNT || takes->dtype == cfx_tensor_dtype(t)) &&
           (takes->rank < 0 || (size_t)takes->rank == cfx_tensor_ndim(t));
}

static cfx_status check_value(const cfx_kept_input *takes, cfx_datum d, cfx_error *err)
{
    char want[48];
    char got[48];
    const bool tensor = d.kind == CFX_DATUM_TENSOR;
    const bool fits = d.kind == takes->kind &&
                      (!tensor || is_like(d.as.tensor, takes));
    if (d.kind == CFX_DATUM_INVALID)
        return cfx_error_set(err, CFX_E_KEY, "the session has no value '%.100s'", takes->name);
    if (fits)
        return CFX_OK;
    snprintf(want, sizeof want, "%s", cfx_datum_kind_name(takes->kind));
    snprintf(got, sizeof got, "%s", cfx_datum_kind_name((cfx_datum_kind)d.kind));
    const bool typed = takes->kind == CFX_DATUM_TENSOR && takes->dtype != CFX_DTYPE_COUNT;
    if (typed)
        snprintf(want, sizeof want, "%s", cfx_dtype_name(takes->dtype));
    if (takes->kind == CFX_DATUM_TENSOR && takes->rank >= 0)
        snprintf(want, sizeof want, "%s with %d dimensions",
                 typed ? cfx_dtype_name(takes->dtype) : "tensor", takes->rank);
    if (tensor)
        snprintf(got, sizeof got, "%s with %zu dimensions",
                 cfx_dtype_name(cfx_tensor_dtype(d.as.tensor)), cfx_tensor_ndim(d.as.tensor));
    return cfx_error_set(err, CFX_E_TYPE, "'%.100s' is %s now, but the program is for %s",
                         takes->name, got, want);
}

/* All inputs of a program, borrowed: those that the session has, and between them the caller's. */
static cfx_status fill(const cfx_session *s, const cfx_keeping *k, cfx_datum *all, size_t num_all,
                       const cfx_datum *inputs, size_t n, cfx_error *err)
{
    size_t given = 0;
    for (size_t i = 0; i < num_all; i++)
        all[i] = cfx_datum_invalid();
    for (size_t i = 0; i < k->num_takes; i++) {
        const cfx_kept_input *takes = &k->takes[i];
        const cfx_datum d = cfxi_rt_named_get(&s->values, takes->name);
        if (takes->input >= num_all)
            return cfx_error_set(err, CFX_E_TYPE, "the program has no input %zu for '%.100s'",
                                 takes->input, takes->name);
        CFX_TRY(check_value(takes, d, err));
        all[takes->input] = d;
    }
    for (size_t i = 0; i < num_all && given < n; i++)
        if (all[i].kind == CFX_DATUM_INVALID)
            all[i] = inputs[given++];
    if (given < n)
        return cfx_error_set(err, CFX_E_TYPE, "too many inputs: expected at most %zu, got %zu",
                             given, n);
    return CFX_OK;
}

/* ---- results ------------------------------------------------------------------------------- */

static bool is_kept(const cfx_keeping *k, size_t result)
{
    for (size_t i = 0; i < k->num_keeps; i++)
        if (k->keeps[i].result == result)
            return true;
    return false;
}

/* The results that are not kept. */
static cfx_datum rest_of(const cfx_session *s, const cfx_keeping *k, const cfx_datum *items,
                         size_t n, cfx_error *err)
{
    size_t count = 0;
    cfx_datum few[FEW];
    cfx_datum *rest = n <= FEW ? few : cfxi_base_alloc(s->values.allocator, n * sizeof *rest);
    if (!rest) {
        cfxi_base_nomem(err);
        return cfx_datum_invalid();
    }
    for (size_t i = 0; i < n; i++)
        if (!is_kept(k, i))
            rest[count++] = items[i];
    const cfx_datum made = cfx_datum_seq(CFX_DATUM_TUPLE, rest, count, s->values.allocator, err);
    if (rest != few)
        cfxi_base_free(s->values.allocator, rest, n * sizeof *rest);
    return made;
}

/* Names that are new may need memory, which may fail: they get a place before any value changes. */
static cfx_status keep(cfx_session *s, const cfx_keeping *k, const cfx_datum *items, cfx_error *err)
{
    for (size_t i = 0; i < k->num_keeps; i++)
        if (cfxi_rt_named_get(&s->values, k->keeps[i].name).kind == CFX_DATUM_INVALID)
            CFX_TRY(cfxi_rt_named_set(&s->values, k->keeps[i].name, cfx_datum_invalid(), err));
    for (size_t i = 0; i < k->num_keeps; i++)
        CFX_TRY(cfxi_rt_named_set(&s->values, k->keeps[i].name, items[k->keeps[i].result], err));
    return CFX_OK;
}

static cfx_datum take_results(cfx_session *s, const cfx_keeping *k, cfx_datum result,
                              cfx_error *err)
{
    size_t n = 0;
    const cfx_datum *items = cfx_datum_items(result, &n);
    for (size_t i = 0; i < k->num_keeps; i++) {
        if (k->keeps[i].result >= n) {
            cfx_error_set(err, CFX_E_TYPE, "the program has no result %zu for '%.100s'",
                          k->keeps[i].result, k->keeps[i].name);
            return cfx_datum_invalid();
        }
    }
    const cfx_datum rest = rest_of(s, k, items, n, err);
    if (rest.kind == CFX_DATUM_INVALID || keep(s, k, items, err) == CFX_OK)
        return rest;
    cfx_datum_release(rest);
    return cfx_datum_invalid();
}

cfx_datum cfx_session_run(cfx_session *s, const cfx_program *p, const cfx_keeping *keeping,
                          cfx_runtime *rt, const cfx_datum *inputs, size_t n, cfx_error *err)
{
    cfx_datum few[FEW];
    cfx_datum result = cfx_datum_invalid();
    cfx_datum rest = cfx_datum_invalid();
    if (cfxi_base_expect(s, "session", err) || cfxi_base_expect(p, "program", err) ||
        cfxi_base_expect(keeping, "keeping", err))
        return rest;
    const size_t num_all = cfx_program_num_inputs(p);
    cfx_datum *all =
        num_all <= FEW ? few : cfxi_base_alloc(s->values.allocator, num_all * sizeof *all);
    if (!all) {
        cfxi_base_nomem(err);
        return rest;
    }
    if (fill(s, keeping, all, num_all, inputs, n, err) == CFX_OK)
        result = cfx_program_run(p, rt, all, num_all, err);
    if (result.kind != CFX_DATUM_INVALID)
        rest = take_results(s, keeping, result, err);
    cfx_datum_release(result);
    if (all != few)
        cfxi_base_free(s->values.allocator, all, num_all * sizeof *all);
    return rest;
}
