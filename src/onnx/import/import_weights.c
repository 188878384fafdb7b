/* import_weights.c - tensors that are known: loaded when they are asked for, and weights of the
 * module where a variable is made of them. */
#include "engine_impl.h"

#include <cfx/embed/tensor.h>

#include <stdio.h>

/* ---- elements ------------------------------------------------------------------------------ */

bool cfxi_import_keep(cfxi_import *m, cfx_tensor *t)
{
    if (!t || !cfxi_base_vec_reserve(&m->tensors, 1, sizeof t, m->allocator)) {
        cfx_tensor_release(t);
        return false;
    }
    ((cfx_tensor **)m->tensors.data)[m->tensors.size++] = t;
    return true;
}

static bool same_layout(const cfx_tensor *a, const cfx_tensor *b)
{
    const size_t n = cfx_tensor_ndim(a);
    return cfx_tensor_dtype(a) == cfx_tensor_dtype(b) && n == cfx_tensor_ndim(b) &&
           (n == 0 || memcmp(cfx_tensor_sizes(a), cfx_tensor_sizes(b), n * sizeof(int64_t)) == 0);
}

/* The tensor that has these elements already, else this one. */
static cfx_tensor *once(cfxi_import *m, cfx_tensor *t)
{
    const char *bytes = cfxi_tensor_bytes(t);
    cfx_tensor *before = cfx_tensor_numel(t) > 0 ? cfxi_base_pointers_get(&m->by_data, bytes)
                                                 : NULL;
    if (before && same_layout(before, t))
        return before;
    if (!before && cfx_tensor_numel(t) > 0)  /* without memory it is there twice */
        cfxi_base_pointers_set(&m->by_data, bytes, t, m->allocator);
    return t;
}

cfx_tensor *cfxi_import_elements(cfxi_import *m, cfxi_imported *v, cfx_error *err)
{
    if (v->known)
        return v->known;
    cfx_tensor *t = v->sparse ? cfxi_onnx_tensor_of_sparse(&m->source, v->sparse, err)
                              : cfxi_onnx_tensor_of(&m->source, v->tensor, err);
    if (!t)
        return NULL;
    if (!cfxi_import_keep(m, t)) {
        cfxi_base_nomem(err);
        return NULL;
    }
    return v->known = once(m, t);
}

/* ---- names --------------------------------------------------------------------------------- */

const char *cfxi_import_identifier(cfxi_import *m, cfxi_text name)
{
    const bool starts = name.size > 0 && cfxi_base_is_ident_start(name.data[0]);
    const size_t shift = starts ? 0 : 1;
    char *text = cfxi_base_arena_zeros(&m->arena, name.size + shift + 2, 1);
    if (!text)
        return NULL;
    text[0] = '_';
    for (size_t i = 0; i < name.size; i++)
        text[i + shift] = cfxi_base_is_ident(name.data[i]) ? name.data[i] : '_';
    if (cfxi_base_is_keyword(text, name.size + shift))
        text[name.size + shift] = '_';
    return text;
}

/* Whether it is identifiers or numbers with dots between them: "layers.0.weight". */
static bool is_path(cfxi_text name)
{
    bool first = true;
    bool digits = false;
    if (name.size == 0 || name.size > 500)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        const char ch = name.data[i];
        if (ch == '.') {
            if (first)
                return false;
            first = true;
            continue;
        }
        if (!cfxi_base_is_ident(ch) || (!first && digits && !cfxi_base_is_digit(ch)))
            return false;
        if (first)
            digits = cfxi_base_is_digit(ch);
        first = false;
    }
    return !first && !digits;
}

/* ---- weights ------------------------------------------------------------------------------- */

/* Puts the tensor into the module under its name, or one like it. */
static void adopt(cfxi_import *m, cfx_at at, const cfxi_imported *v)
{
    const bool trained = v->tensor && !v->fixed && cfx_dtype_is_float(cfx_tensor_dtype(v->known));
    const cfxi_member_kind kind = trained ? CFXI_MEMBER_PARAMETER : CFXI_MEMBER_BUFFER;
    char *path = cfxi_base_arena_zeros(&m->arena, v->name.size + 1, 1);
    const char *flat = cfxi_import_identifier(m, v->name);
    if (!path || !flat) {
        cfx_scope_fail_at(at, CFX_E_NOMEM, "out of memory");
        return;
    }
    if (v->name.size > 0)
        memcpy(path, v->name.data, v->name.size);
    if (is_path(v->name) && cfxi_capture_trace_adopt(at, path, v->known, kind))
        return;
    if (cfx_scope_ok(at.scope) && cfxi_capture_trace_adopt(at, flat, v->known, kind))
        return;
    while (cfx_scope_ok(at.scope)) {
        char numbered[600];
        snprintf(numbered, sizeof numbered, "%.550s_%zu", flat, ++m->num_weights);
        if (cfxi_capture_trace_adopt(at, numbered, v->known, kind))
            return;
    }
}

cfx_var cfxi_import_weight(cfxi_import *m, cfxi_imported *v)
{
    const cfx_at at = {.scope = m->trace};
    cfx_error err = {0};
    if (!cfx_scope_ok(m->trace))
        return cfx_var_empty();
    if (!cfxi_import_elements(m, v, &err)) {
        cfxi_capture_scope_take(at, &err);
        return cfx_var_empty();
    }
    if (!cfxi_capture_places_find(&m->trace->trace->places, v->known))
        adopt(m, at, v);
    const cfxi_path *p = cfx_scope_ok(m->trace)
                             ? cfxi_capture_places_find(&m->trace->trace->places, v->known) : NULL;
    return p ? cfx_module_param_at(at, m->root, p->path) : cfx_var_empty();
}
