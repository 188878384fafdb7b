/* module_state.c - the weights of a module by dotted name: read, replaced, loaded and saved. */
#include "capture_impl.h"

#include <cfx/embed/weights.h>
#include <cfx/weights.h>

#include <stdio.h>

/* ---- all of them --------------------------------------------------------------------------- */

static bool is_weight(const cfxi_member *e)
{
    return (e->kind == CFXI_MEMBER_PARAMETER || e->kind == CFXI_MEMBER_BUFFER) &&
           e->value.kind == CFX_DATUM_TENSOR;
}

typedef struct path {
    cfx_buffer text;
    size_t depth;
    const cfx_state *from;  /* where parameters that are only declared find a tensor; or NULL */
    const cfx_allocator *allocator;
    cfxi_pointers bare;     /* modules: without weights, in however many places they are */
} path;

/* One that is only declared has what `from` has; it is missing in a file that has not. */
static cfx_status collect_one(cfx_state *s, const path *p, cfx_tensor *t, cfx_error *err)
{
    if (cfx_tensor_is_abstract(t)) {
        cfx_tensor *found = p->from ? cfx_state_get(p->from, p->text.data) : NULL;
        if (!p->from)
            return CFX_OK;
        t = found ? found : t;
    }
    return cfx_state_set(s, p->text.data, t, err);
}

static cfx_status enter(path *p, const char *name, cfx_error *err)
{
    if (cfx_buffer_append(&p->text, ".", p->text.size > 0) != CFX_OK ||
        cfx_buffer_append(&p->text, name, strlen(name)) != CFX_OK)
        return cfxi_base_nomem(err);
    return CFX_OK;
}

static void leave(path *p, size_t size)
{
    p->text.size = size;
    p->text.data[size] = '\0';
}

static cfx_status collect(cfx_state *s, const cfx_module *m, path *p, cfx_error *err);

static cfx_status collect_child(cfx_state *s, cfx_module *child, path *p, cfx_error *err)
{
    const size_t before = cfx_state_size(s);
    if (cfxi_base_pointers_get(&p->bare, child))
        return CFX_OK;
    CFX_TRY(collect(s, child, p, err));
    if (cfx_state_size(s) > before || cfxi_base_pointers_set(&p->bare, child, child, p->allocator))
        return CFX_OK;
    return cfxi_base_nomem(err);
}

/* As PyTorch orders them: those of a module itself, parameters first, then those of its children.
 * What several modules share comes under each name. */
static cfx_status collect(cfx_state *s, const cfx_module *m, path *p, cfx_error *err)
{
    static const cfxi_member_kind order[] = {CFXI_MEMBER_PARAMETER, CFXI_MEMBER_BUFFER,
                                             CFXI_MEMBER_CHILD};
    const size_t size = p->text.size;
    if (p->depth++ >= CFX_MAX_REGION_DEPTH)
        return cfx_error_set(err, CFX_E_LIMIT, "modules nest more than %d deep",
                             CFX_MAX_REGION_DEPTH);
    for (size_t pass = 0; pass < 3; pass++) {
        for (size_t i = 0; i < m->members.size; i++) {
            const cfxi_member *e = cfxi_capture_member_at(m, i);
            if (e->kind != order[pass] || (e->kind != CFXI_MEMBER_CHILD && !is_weight(e)))
                continue;
            CFX_TRY(enter(p, e->name, err));
            CFX_TRY(e->kind == CFXI_MEMBER_CHILD
                        ? collect_child(s, e->child, p, err)
                        : collect_one(s, p, e->value.as.tensor, err));
            leave(p, size);
        }
    }
    p->depth--;
    return CFX_OK;
}

static cfx_state *state_of(const cfx_module *m, const cfx_state *from, cfx_error *err)
{
    path p = {.from = from, .allocator = m->allocator};
    cfx_state *s = cfx_state_new(m->allocator, err);
    cfx_buffer_init(&p.text, m->allocator);
    cfx_status status = !s                                              ? CFX_E_NOMEM
                        : cfx_buffer_reserve(&p.text, 64) != CFX_OK ? cfxi_base_nomem(err)
                                                                     : collect(s, m, &p, err);
    cfx_buffer_free(&p.text);
    cfxi_base_pointers_free(&p.bare, m->allocator);
    if (status == CFX_OK)
        return s;
    cfx_state_free(s);
    return NULL;
}

static bool expect(cfx_at at, const void *given, const char *what)
{
    if (cfx_scope_ok(at.scope) && !given)
        cfx_scope_fail_at(at, CFX_E_VALUE, "the %s is NULL", what);
    return cfx_scope_ok(at.scope);
}

cfx_state *cfx_module_state_at(cfx_at at, const cfx_module *m)
{
    cfx_error err = {0};
    if (!expect(at, m, "module"))
        return NULL;
    cfx_state *s = state_of(m, NULL, &err);
    if (!s)
        cfxi_capture_scope_take(at, &err);
    return s;
}

/* ---- others in their place ----------------------------------------------------------------- */

static bool has_same_elements(const cfx_tensor *a, const cfx_tensor *b)
{
    const size_t n = cfx_tensor_ndim(a);
    return cfx_tensor_dtype(a) == cfx_tensor_dtype(b) && cfx_tensor_ndim(b) == n &&
           memcmp(cfx_tensor_sizes(a), cfx_tensor_sizes(b), n * sizeof(int64_t)) == 0 &&
           cfx_tensor_is_contiguous(a) && cfx_tensor_is_contiguous(b) &&
           memcmp(cfx_tensor_data(a), cfx_tensor_data(b),
                  (size_t)cfx_tensor_numel(a) * cfx_dtype_size(cfx_tensor_dtype(a))) == 0;
}

/* Weights that were one under two names stay one, if they are given the same elements: a file may
 * have them twice. `heirs`: the tensor that was there -> what takes its place. */
static cfx_status keep_tied(cfx_state *s, const cfx_module *m, cfxi_pointers *heirs, cfx_error *err)
{
    for (size_t i = 0; i < cfx_state_size(s); i++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(s, i, &t);
        const cfx_tensor *was = cfxi_capture_module_at(m, name)->value.as.tensor;
        cfx_tensor *given = cfxi_base_pointers_get(heirs, was);
        if (given && given != t && has_same_elements(given, t))
            CFX_TRY(cfx_state_set(s, name, given, err));
        if (!given && !cfxi_base_pointers_set(heirs, was, t, m->allocator))
            return cfxi_base_nomem(err);
    }
    return CFX_OK;
}

/* All names lead somewhere, so only memory could be out; but nothing here needs any. */
static void put_back(cfx_module *m, const cfx_state *s)
{
    for (size_t i = 0; i < cfx_state_size(s); i++) {
        cfx_tensor *t;
        const char *last;
        const char *name = cfx_state_entry(s, i, &t);
        cfx_module *owner = cfxi_capture_module_owner(m, name, &last);
        cfxi_member *e = cfxi_capture_module_find(owner, last, strlen(last));
        if (e->value.as.tensor != t)
            cfxi_capture_module_put(owner, last, strlen(last), e->kind, NULL, cfx_datum_tensor(t),
                                    NULL);
    }
}

void cfx_module_load_state_at(cfx_at at, cfx_module *m, const cfx_state *from, unsigned flags)
{
    cfx_error err = {0};
    if (!expect(at, m, "module") || !expect(at, from, "state"))
        return;
    cfxi_pointers heirs = {0};
    cfx_state *s = state_of(m, from, &err);
    if (s && cfx_state_assign(s, from, flags, &err) == CFX_OK &&
        keep_tied(s, m, &heirs, &err) == CFX_OK)
        put_back(m, s);
    else
        cfxi_capture_scope_take(at, &err);
    cfxi_base_pointers_free(&heirs, m->allocator);
    cfx_state_free(s);
}

void cfx_module_load_at(cfx_at at, cfx_module *m, const char *file, unsigned flags)
{
    cfx_error err = {0};
    if (!expect(at, m, "module") || !expect(at, file, "file name"))
        return;
    cfx_state *from = cfx_state_load(file, m->allocator, &err);
    if (from)
        cfx_module_load_state_at(at, m, from, flags);
    else
        cfxi_capture_scope_take(at, &err);
    cfx_state_free(from);
}

void cfx_module_save_at(cfx_at at, const cfx_module *m, const char *file)
{
    cfx_error err = {0};
    if (!expect(at, m, "module") || !expect(at, file, "file name"))
        return;
    cfx_state *s = state_of(m, NULL, &err);
    if (!s || cfx_state_save_safetensors(s, file, &err) != CFX_OK)
        cfxi_capture_scope_take(at, &err);
    cfx_state_free(s);
}
