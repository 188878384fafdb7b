/* weights.c - named tensors of any file, and how they get to the names that need them. */
#include "format_impl.h"

#include <stdio.h>

/* ---- files --------------------------------------------------------------------------------- */

static cfx_state *parse(cfxi_bytes *b, const char *path, cfx_error *err)
{
    cfx_state *s = b ? cfx_state_new(b->allocator, err) : NULL;
    if (!s || cfxi_format_read_tensors(b, path, s, err) == CFX_OK)
        return s;
    cfx_state_free(s);
    return NULL;
}

cfx_state *cfx_state_load(const char *path, const cfx_allocator *allocator, cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    cfxi_bytes *b = cfxi_format_bytes_map(path, allocator, err);
    if (!b)
        return NULL;
    cfx_state *s = parse(b, path, err);
    if (!s)
        cfxi_format_name_file(err, path);
    cfxi_format_bytes_release(b);
    return s;
}

cfx_state *cfx_state_read(const void *data, size_t size, const cfx_allocator *allocator,
                          cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    cfxi_bytes *b = cfxi_format_bytes_borrow(data, size, allocator, err);
    cfx_state *s = parse(b, NULL, err);
    cfxi_format_bytes_release(b);
    return s;
}

/* One tensor: by the table, or by a format's reader. */
static cfx_tensor *load_tensor(const char *path, const cfx_allocator *allocator,
                               cfxi_read_tensor_fn *read, cfx_error *err)
{
    cfx_error own;
    char name[300];
    err = cfxi_base_error_or(err, &own);
    cfxi_bytes *b = cfxi_format_bytes_map(path, allocator, err);
    if (!b)
        return NULL;
    snprintf(name, sizeof name, "'%.250s'", path);
    cfx_tensor *t = read ? read(b, name, err) : cfxi_format_read_tensor(b, path, err);
    if (!t && !read && strncmp(err->message, name, strlen(name)) != 0)
        cfxi_format_name_file(err, path);
    cfxi_format_bytes_release(b);
    return t;
}

cfx_tensor *cfx_tensor_load(const char *path, const cfx_allocator *allocator, cfx_error *err)
{
    return load_tensor(path, allocator, NULL, err);
}

cfx_tensor *cfx_tensor_load_npy(const char *path, const cfx_allocator *allocator, cfx_error *err)
{
    return load_tensor(path, allocator, cfxi_format_npy_read, err);
}

cfx_tensor *cfx_tensor_read_npy(const void *data, size_t size, const cfx_allocator *allocator,
                                cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    cfxi_bytes *b = cfxi_format_bytes_borrow(data, size, allocator, err);
    cfx_tensor *t = b ? cfxi_format_npy_read(b, "npy", err) : NULL;
    cfxi_format_bytes_release(b);
    return t;
}

/* ---- by name ------------------------------------------------------------------------------- */

/* What does not fit, as far as a message goes. */
typedef struct misfits {
    char text[sizeof((cfx_error *)0)->message];
    size_t used;
    size_t n;
    size_t shown;
} misfits;

static cfx_status note(void *ctx, const char *data, size_t size)
{
    misfits *m = ctx;
    if (size > sizeof m->text - 1 - m->used)
        return CFX_E_LIMIT;
    memcpy(m->text + m->used, data, size);
    m->used += size;
    m->text[m->used] = '\0';
    return CFX_OK;
}

static void add_misfit(misfits *m, const char *name, const cfx_tensor *has, const cfx_tensor *gets)
{
    cfxi_out out;
    size_t before = m->used;
    bool full = m->n++ != m->shown;
    if (full)
        return;
    cfxi_base_out_begin(&out, (cfx_sink){note, m});
    cfxi_base_out_printf(&out, "%s'%.100s' ", before ? "; " : "", name);
    if (!gets) {
        cfxi_base_out_str(&out, "is missing");
    } else if (!has) {
        cfxi_base_out_str(&out, "is unexpected");
    } else {
        cfx_datum was = cfx_datum_tensor((cfx_tensor *)has);
        cfx_datum is = cfx_datum_tensor((cfx_tensor *)gets);
        cfxi_base_out_str(&out, "must be ");
        cfx_datum_print(was, NULL, cfxi_base_out_sink(&out), NULL);
        cfxi_base_out_str(&out, ", not ");
        cfx_datum_print(is, NULL, cfxi_base_out_sink(&out), NULL);
    }
    if (cfxi_base_out_end(&out, NULL) == CFX_OK && m->used < sizeof m->text - 40) {
        m->shown++;
    } else {
        m->used = before;
        m->text[before] = '\0';
    }
}

static bool fits(const cfx_tensor *a, const cfx_tensor *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->size, b->size, a->ndim * sizeof *a->size) == 0;
}

static void compare(const cfx_state *s, const cfx_state *from, unsigned flags, misfits *m)
{
    for (size_t i = 0; i < cfx_state_size(s); i++) {
        cfx_tensor *has;
        const char *name = cfx_state_entry(s, i, &has);
        const cfx_tensor *gets = cfx_state_get(from, name);
        if (gets ? !fits(has, gets) : !(flags & CFX_LOAD_MISSING))
            add_misfit(m, name, has, gets);
    }
    for (size_t i = 0; !(flags & CFX_LOAD_UNEXPECTED) && i < cfx_state_size(from); i++) {
        cfx_tensor *gets;
        const char *name = cfx_state_entry(from, i, &gets);
        if (!cfx_state_get(s, name))
            add_misfit(m, name, NULL, gets);
    }
}

cfx_status cfx_state_assign(cfx_state *s, const cfx_state *from, unsigned flags, cfx_error *err)
{
    misfits m = {.n = 0};
    CFX_TRY(cfxi_base_expect(s, "state", err));
    CFX_TRY(cfxi_base_expect(from, "state", err));
    compare(s, from, flags, &m);
    if (m.n > m.shown)
        return cfx_error_set(err, CFX_E_KEY, "%s; and %zu more", m.text, m.n - m.shown);
    if (m.n)
        return cfx_error_set(err, CFX_E_KEY, "%s", m.text);
    for (size_t i = 0; i < cfx_state_size(s); i++) {
        const char *name = cfx_state_entry(s, i, NULL);
        cfx_tensor *t = cfx_state_get(from, name);
        if (t)  /* replacing one needs no memory */
            CFX_TRY(cfx_state_set(s, name, t, err));
    }
    return CFX_OK;
}
