/* fuzz_manifest.c - any texts as the entries of a .cfx file: no crash, no endless work; the module,
 * the signature and the executable of what is read are made, or refused with a message.
 *
 * An input is a list of entries, each behind a line "=== NAME". The archive around them is made
 * here, with right sizes and offsets, so that what is tried are the readers of cfx.json, module.ir,
 * signature.ir and graph.ir; fuzz_package and fuzz_archive try the archive. Without "=== cfx.json"
 * a right one is written. The weights are always the same. */
#include "format/package_impl.h"

#include <cfx/cfx.h>

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_ENTRIES = 16 };

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_manifest: %s\n%s\n", what, detail);
    abort();
}

/* ---- the entries of an input --------------------------------------------------------------- */

typedef struct texts {
    cfx_package_part parts[MOST_ENTRIES];
    char names[MOST_ENTRIES][300];
    size_t count;
} texts;

static const char *find_line(const char *at, const char *end)
{
    for (; end - at >= 4; at++) {
        if (memcmp(at, "=== ", 4) == 0)
            return at;
        at = memchr(at, '\n', (size_t)(end - at));
        if (!at)
            return end;
    }
    return end;
}

static void split(const char *data, size_t size, texts *t)
{
    const char *end = data + size;
    for (const char *at = find_line(data, end); at < end && t->count < MOST_ENTRIES;) {
        const char *name = at + 4;
        const char *line = memchr(name, '\n', (size_t)(end - name));
        const char *text = line ? line + 1 : end;
        const char *next = find_line(text, end);
        const size_t length = (size_t)((line ? line : end) - name);
        if (length > 0 && length < sizeof *t->names && !memchr(name, 0, length)) {
            memcpy(t->names[t->count], name, length);
            t->parts[t->count] = (cfx_package_part){t->names[t->count], text,
                                                    (size_t)(next - text)};
            t->count++;
        }
        at = next;
    }
}

/* ---- the archive --------------------------------------------------------------------------- */

static cfx_state *some_weights(void)
{
    static const char *const names[] = {"fc.weight", "fc.bias", "w", "n", "kept"};
    static const cfx_dtype dtypes[] = {CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT32,
                                       CFX_DTYPE_INT64, CFX_DTYPE_FLOAT32};
    static const int64_t sizes[][2] = {{4, 4}, {4, 1}, {2, 3}, {1, 1}, {4, 1}};
    static const size_t ranks[] = {2, 1, 2, 0, 1};
    cfx_state *s = cfx_state_new(NULL, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cfx_tensor *t = cfx_tensor_new(dtypes[i], sizes[i], ranks[i], NULL, NULL);
        memset(cfx_tensor_data(t), 0, (size_t)cfx_tensor_numel(t) * (i == 3 ? 8 : 4));
        cfx_state_set(s, names[i], t, NULL);
        cfx_tensor_release(t);
    }
    return s;
}

static cfx_status write_text(const void *ctx, cfx_sink out, cfx_error *err)
{
    const cfx_package_part *p = ctx;
    (void)err;
    return out.write(out.ctx, p->data, p->size);
}

static cfx_status write_weights(const void *ctx, cfx_sink out, cfx_error *err)
{
    return cfxi_format_safetensors_write(ctx, out, err);
}

/* The entries as they are, with a manifest of the input's. */
static cfx_status write_raw(const texts *t, const cfx_state *weights, cfx_sink out)
{
    cfxi_part parts[MOST_ENTRIES + 1] = {{.name = NULL}};
    size_t n = 0;
    for (int first = 1; first >= 0; first--)
        for (size_t i = 0; i < t->count; i++)
            if ((strcmp(t->parts[i].name, CFXI_PACKAGE_MANIFEST) == 0) == first)
                parts[n++] = (cfxi_part){.name = t->parts[i].name, .write = write_text,
                                         .ctx = &t->parts[i]};
    parts[n++] = (cfxi_part){.name = CFXI_PACKAGE_WEIGHTS, .write = write_weights, .ctx = weights};
    CFX_TRY(cfxi_format_archive_plan(parts, n, NULL));
    return cfxi_format_archive_write(parts, n, out, NULL);
}

static cfx_status write_file(const texts *t, const cfx_state *weights, cfx_sink out)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->parts[i].name, CFXI_PACKAGE_MANIFEST) == 0)
            return write_raw(t, weights, out);
    return cfx_package_write(&(cfx_package_contents){.model = "Net", .parts = t->parts,
                                                     .num_parts = t->count, .weights = weights},
                             out, NULL);
}

/* ---- what is made of it -------------------------------------------------------------------- */

static void make_module(const cfx_package *p)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_module_from_package(s, p);
    if (!m && (cfx_scope_ok(s) || !cfx_scope_error(s)->message[0]))
        fail("a module is missing without a message", "");
    cfx_scope_free(s);
}

static void make_executable(const cfx_package *p)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer text;
    cfx_executable *e = cfx_executable_new(p, NULL, &err);
    if (!e && (err.status == CFX_OK || err.message[0] == '\0'))
        fail("an executable is missing without a message", "");
    cfx_buffer_init(&text, NULL);
    for (size_t i = 0; e && i < cfx_executable_num_graphs(e); i++)
        cfx_signature_print(cfx_executable_signature(e, i), cfx_buffer_sink(&text), NULL);
    cfx_session *kept = e ? cfx_executable_session(e, &err) : NULL;
    cfx_session_free(kept);
    cfx_buffer_free(&text);
    cfx_executable_free(e);
}

static void read_back(const cfx_buffer *file)
{
    cfx_error err = {.status = CFX_OK};
    cfx_package *p = cfx_package_read(file->data, file->size, NULL, &err);
    if (!p && (err.status == CFX_OK || err.message[0] == '\0'))
        fail("an error without a message", "");
    if (!p)
        return;
    cfx_package_verify(p, &err);
    make_module(p);
    make_executable(p);
    cfx_package_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    texts *t = calloc(1, sizeof *t);
    cfx_state *weights = some_weights();
    cfx_buffer file;
    cfx_buffer_init(&file, NULL);
    split((const char *)data, size, t);
    if (write_file(t, weights, cfx_buffer_sink(&file)) == CFX_OK)
        read_back(&file);
    cfx_buffer_free(&file);
    cfx_state_free(weights);
    free(t);
    return 0;
}
