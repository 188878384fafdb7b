/* calls.c - data that a model is called with again and again: a folder with a file for each call,
 * or a file whose tensors are divided along their first dimension. */
#include "cli.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_ROOM = 4096 };

/* ---- files --------------------------------------------------------------------------------- */

static bool holds_data(const char *name)
{
    const cfx_file_format *format = cfx_file_format_of_path(name);
    return name[0] != '.' && format &&
           (format->content == CFX_CONTENT_TENSOR || format->content == CFX_CONTENT_TENSORS);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static cfx_status add_file(cli_calls *c, const char *folder, const char *name, cfx_error *err)
{
    char path[PATH_ROOM];
    char **files = realloc(c->files, (c->n + 1) * sizeof *files);
    if (!files)
        return cfx_error_set(err, CFX_E_NOMEM, "out of memory");
    c->files = files;
    if (snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", name) >= PATH_ROOM)
        return cfx_error_set(err, CFX_E_VALUE, "the path of '%.80s' is too long", name);
    c->files[c->n] = strdup(path);
    return c->files[c->n++] ? CFX_OK : cfx_error_set(err, CFX_E_NOMEM, "out of memory");
}

static cfx_status add_folder(cli_calls *c, const char *path, cfx_error *err)
{
    DIR *folder = opendir(path);
    cfx_status status = CFX_OK;
    if (!folder)
        return cfx_error_set(err, CFX_E_IO, "cannot read the folder '%.200s'", path);
    for (const struct dirent *e; status == CFX_OK && (e = readdir(folder)) != NULL;)
        if (holds_data(e->d_name))
            status = add_file(c, path, e->d_name, err);
    closedir(folder);
    if (status == CFX_OK && c->n == 0)
        return cfx_error_set(err, CFX_E_VALUE, "the folder '%.200s' has no files of tensors (cfx "
                             "formats lists them)", path);
    if (c->n > 0)
        qsort(c->files, c->n, sizeof *c->files, by_name);
    return status;
}

cfx_status cli_calls_open(cli_calls *c, const char *path, int64_t batch, cfx_error *err)
{
    struct stat what;
    *c = (cli_calls){.batch = batch};
    if (stat(path, &what) != 0)
        return cfx_error_set(err, CFX_E_IO, "there is no file or folder '%.200s'", path);
    c->is_folder = S_ISDIR(what.st_mode);
    return c->is_folder ? add_folder(c, path, err) : add_file(c, "", path, err);
}

void cli_calls_close(cli_calls *c)
{
    while (c->n > 0)
        free(c->files[--c->n]);
    free(c->files);
}

/* ---- the inputs of a call ------------------------------------------------------------------ */

/* The tensors of a file, by input; all NULL: it is not given. */
typedef struct inputs {
    cfx_tensor *tensors[CLI_MAX_INPUTS];  /* owned */
    size_t n;
} inputs;

static void release(inputs *in)
{
    for (size_t i = 0; i < in->n; i++)
        cfx_tensor_release(in->tensors[i]);
}

/* The place of an input by its name; -1 if there is none. */
static int place_of(const cfx_graph *g, const char *name)
{
    int i = 0;
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        if (cfx_node_op(n) != CFX_OP_PLACEHOLDER)
            continue;
        if (strcmp(cfx_node_name(n, NULL), name) == 0 ||
            strcmp(cfx_node_target(n, NULL, NULL), name) == 0)
            return i;
        i++;
    }
    return -1;
}

static cfx_status set_input(inputs *in, int i, cfx_tensor *t, cfx_error *err)
{
    if (i >= CLI_MAX_INPUTS)
        return cfx_error_set(err, CFX_E_LIMIT, "at most %d inputs are supported", CLI_MAX_INPUTS);
    in->tensors[i] = cfx_tensor_retain(t);
    in->n = (size_t)i >= in->n ? (size_t)i + 1 : in->n;
    return CFX_OK;
}

static cfx_status take_named(inputs *in, const cfx_graph *g, const cfx_state *all,
                             const char *path, cfx_error *err)
{
    const char *name;
    cfx_tensor *t;
    const size_t n = cfx_state_size(all);
    for (size_t i = 0; (name = cfx_state_entry(all, i, &t)) != NULL; i++) {
        const int place = place_of(g, name);
        if (place < 0 && n > 1)
            return cfx_error_set(err, CFX_E_KEY, "'%.200s': the model has no input '%.80s'; the "
                                 "names of the tensors must be those of its inputs", path, name);
        const cfx_status status = set_input(in, place < 0 ? 0 : place, t, err);
        if (status != CFX_OK)
            return status;
    }
    return n > 0 ? CFX_OK : cfx_error_set(err, CFX_E_VALUE, "'%.200s' is empty", path);
}

static cfx_status load(inputs *in, const cfx_graph *g, const char *path, cfx_error *err)
{
    const cfx_file_format *format = cfx_file_format_of_path(path);
    *in = (inputs){.n = 0};
    if (format && format->content == CFX_CONTENT_TENSORS) {
        cfx_state *all = cfx_state_load(path, NULL, err);
        const cfx_status status = all ? take_named(in, g, all, path, err) : err->status;
        cfx_state_free(all);
        return status;
    }
    cfx_tensor *t = cfx_tensor_load(path, NULL, err);
    const cfx_status status = t ? set_input(in, 0, t, err) : err->status;
    cfx_tensor_release(t);
    return status;
}

/* ---- parts of a file ----------------------------------------------------------------------- */

static int64_t rows_of(const cfx_tensor *t)
{
    return cfx_tensor_ndim(t) > 0 ? cfx_tensor_sizes(t)[0] : -1;
}

/* The rows that all inputs have; -1 if one has none, or others. */
static int64_t common_rows(const inputs *in)
{
    int64_t rows = -1;
    for (size_t i = 0; i < in->n; i++) {
        const int64_t own = in->tensors[i] ? rows_of(in->tensors[i]) : rows;
        if (own < 0 || (rows >= 0 && own != rows))
            return -1;
        rows = own;
    }
    return rows;
}

/* Rows `from` to `from + n` of a tensor: a view. */
static cfx_tensor *rows(cfx_tensor *t, int64_t from, int64_t n, cfx_error *err)
{
    int64_t sizes[CFX_MAX_DIMS];
    memcpy(sizes, cfx_tensor_sizes(t), cfx_tensor_ndim(t) * sizeof *sizes);
    sizes[0] = n;
    return cfx_tensor_view(t, cfx_tensor_dtype(t), sizes, cfx_tensor_strides(t),
                           cfx_tensor_ndim(t), from * cfx_tensor_strides(t)[0], err);
}

static cfx_status call(const inputs *in, cli_call_fn *fn, void *ctx, cfx_error *err)
{
    cfx_datum data[CLI_MAX_INPUTS];
    for (size_t i = 0; i < in->n; i++)
        data[i] = in->tensors[i] ? cfx_datum_tensor(in->tensors[i]) : cfx_datum_invalid();
    if (cli_interrupted(NULL))
        return cfx_error_set(err, CFX_E_INTERRUPTED, "interrupted");
    return fn(ctx, data, in->n, err);
}

static cfx_status call_part(const inputs *in, int64_t from, int64_t n, cli_call_fn *fn, void *ctx,
                            cfx_error *err)
{
    inputs part = {.n = in->n};
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < in->n; i++) {
        part.tensors[i] = in->tensors[i] ? rows(in->tensors[i], from, n, err) : NULL;
        status = in->tensors[i] && !part.tensors[i] ? err->status : CFX_OK;
    }
    if (status == CFX_OK)
        status = call(&part, fn, ctx, err);
    release(&part);
    return status;
}

static cfx_status call_parts(const inputs *in, int64_t batch, const char *path, cli_call_fn *fn,
                             void *ctx, cfx_error *err)
{
    const int64_t all = common_rows(in);
    cfx_status status = CFX_OK;
    if (all < 1)
        return cfx_error_set(err, CFX_E_SHAPE, "'%.200s' cannot be divided into calls: its tensors "
                             "must have the same first dimension, of at least 1", path);
    for (int64_t from = 0; status == CFX_OK && from < all; from += batch)
        status = call_part(in, from, all - from < batch ? all - from : batch, fn, ctx, err);
    return status;
}

cfx_status cli_calls_each(const cli_calls *c, const cfx_graph *g, cli_call_fn *fn, void *ctx,
                          cfx_error *err)
{
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < c->n; i++) {
        inputs in;
        status = load(&in, g, c->files[i], err);
        if (status == CFX_OK)
            status = c->is_folder ? call(&in, fn, ctx, err)
                                  : call_parts(&in, c->batch, c->files[i], fn, ctx, err);
        release(&in);
        if (status != CFX_OK && status != CFX_E_INTERRUPTED && c->is_folder) {
            const cfx_error why = *err;
            cfx_error_set(err, why.status, "%.100s: %.400s", c->files[i], why.message);
        }
    }
    return status;
}
