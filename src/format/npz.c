/* npz.c - named tensors in a .npz file: a zip archive of .npy files. */
#include "format_impl.h"

#include <stdio.h>

enum { NAME_MOST = 1000 };

bool cfxi_format_npz_is(const char *data, size_t size)
{
    return size >= 4 && (memcmp(data, "PK\x03\x04", 4) == 0 || memcmp(data, "PK\x05\x06", 4) == 0);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* "fc.weight" of "fc.weight.npy". */
static cfx_status name_of(const cfxi_entry *e, char out[NAME_MOST], cfx_error *err)
{
    size_t size = e->name_size;
    if (size >= 4 && memcmp(e->name + size - 4, ".npy", 4) == 0)
        size -= 4;
    if (size == 0 || size >= NAME_MOST)
        return cfx_error_set(err, CFX_E_VALUE, "npz archive, byte %zu: a file has no valid name",
                             e->header);
    memcpy(out, e->name, size);
    out[size] = '\0';
    return CFX_OK;
}

static cfx_status read_member(const cfxi_archive *a, const cfxi_entry *e, cfx_state *s,
                              cfx_error *err)
{
    char name[NAME_MOST];
    char where[120];
    CFX_TRY(name_of(e, name, err));
    if (cfx_state_get(s, name))
        return cfx_error_set(err, CFX_E_VALUE, "npz archive, byte %zu: two files have the same "
                             "name", e->header);
    CFX_TRY(cfxi_format_archive_check(a, e, err));
    snprintf(where, sizeof where, "npz archive, '%.80s'", name);
    cfxi_base_utf8_clean(where);
    cfx_tensor *t = cfxi_format_npy_parse(a->bytes, e->at, e->size, where, err);
    if (!t)
        return err->status;
    cfx_status status = cfx_state_set(s, name, t, err);
    cfx_tensor_release(t);
    return status;
}

cfx_status cfxi_format_npz_read(cfxi_bytes *b, cfx_state *s, cfx_error *err)
{
    cfxi_archive a;
    cfx_status status = cfxi_format_archive_open(
        &a, b, "npz archive", "write it with numpy.savez instead of savez_compressed", err);
    const cfxi_entry *all = a.entries.data;
    for (size_t i = 0; status == CFX_OK && i < a.entries.size; i++)
        status = read_member(&a, &all[i], s, err);
    cfxi_format_archive_close(&a);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------- */

static cfx_status write_npy(const void *ctx, cfx_sink sink, cfx_error *err)
{
    return cfxi_format_npy_write(ctx, sink, err);
}

/* "fc.weight.npy", one after the other in *names: each begins where the one before it ends. */
static cfx_status collect_names(const cfx_state *s, cfx_buffer *names, cfx_error *err)
{
    for (size_t i = 0; i < cfx_state_size(s); i++) {
        const char *name = cfx_state_entry(s, i, NULL);
        if (cfx_buffer_append(names, name, strlen(name)) != CFX_OK ||
            cfx_buffer_append(names, ".npy", 5) != CFX_OK)  /* and its NUL */
            return cfxi_base_nomem(err);
    }
    return CFX_OK;
}

static cfx_status plan_members(const cfx_state *s, const char *name, cfxi_part *parts,
                               cfx_error *err)
{
    for (size_t i = 0; i < cfx_state_size(s); i++) {
        cfx_tensor *t;
        cfx_error why = {0};
        const char *plain = cfx_state_entry(s, i, &t);
        const size_t size = strlen(plain);
        if (size == 0 || size >= NAME_MOST || !cfxi_base_utf8_valid(plain, size))
            return cfx_error_set(err, CFX_E_VALUE, "'%.100s' is not a valid tensor name for a file",
                                 plain);
        parts[i] = (cfxi_part){.name = name, .write = write_npy, .ctx = t};
        name += strlen(name) + 1;
        if (cfxi_format_archive_plan(&parts[i], 1, &why) != CFX_OK)
            return cfx_error_set(err, why.status, "'%.100s': %.300s", plain, why.message);
    }
    return cfxi_format_archive_plan(parts, cfx_state_size(s), err);
}

cfx_status cfxi_format_npz_write(const cfx_state *s, cfx_sink sink, cfx_error *err)
{
    cfxi_vec parts = {0};
    cfx_buffer names;
    const size_t n = cfx_state_size(s);
    cfx_buffer_init(&names, NULL);
    cfx_status status = collect_names(s, &names, err);
    if (status == CFX_OK &&
        !cfxi_base_vec_reserve(&parts, n + 1, sizeof(cfxi_part), cfxi_base_allocator(NULL)))
        status = cfxi_base_nomem(err);
    if (status == CFX_OK)
        status = plan_members(s, names.data, parts.data, err);
    if (status == CFX_OK)
        status = cfxi_format_archive_write(parts.data, n, sink, err);
    cfxi_base_vec_free(&parts, sizeof(cfxi_part), cfxi_base_allocator(NULL));
    cfx_buffer_free(&names);
    return status;
}
