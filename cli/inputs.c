/* inputs.c - what cfx run is given: numbers, files of tensors, raw bytes, random numbers. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

/* ---- names --------------------------------------------------------------------------------- */

/* Where the name before '=' ends; 0 if there is none: x.npy, dir=1/x.npy. */
static size_t name_of(const cli_program *p, const char *text)
{
    const size_t size = strcspn(text, "=");
    if (!text[size])
        return 0;
    for (size_t i = 0; i < p->num_inputs; i++) {
        const char *one = cli_program_input(p, i);
        if (strlen(one) == size && memcmp(one, text, size) == 0)
            return size;
    }
    return memchr(text, '/', size) || memchr(text, '.', size) ? 0 : size;
}

/* ---- one value ----------------------------------------------------------------------------- */

/* "FILE:NAME" and "FILE:uint8[2, 3]": where FILE ends; 0 if it is a file alone. */
static size_t file_of(const char *text, char path[PATH_ROOM])
{
    const char *colon = strrchr(text, ':');
    const size_t size = colon ? (size_t)(colon - text) : 0;
    if (!size || size >= PATH_ROOM || access(text, F_OK) == 0)
        return 0;
    memcpy(path, text, size);
    path[size] = '\0';
    return size;
}

static cfx_datum fail(cfx_error *err, const char *path, const char *what)
{
    cfx_error_set(err, CFX_E_VALUE, "'%.200s': %s", path, what);
    return cfx_datum_invalid();
}

/* The bytes of a file as a tensor that `like` describes. */
static cfx_datum read_raw(const char *path, const cfx_tensor *like, cfx_error *err)
{
    struct stat what;
    cfx_tensor *t = cfx_tensor_new(cfx_tensor_dtype(like), cfx_tensor_sizes(like),
                                   cfx_tensor_ndim(like), NULL, err);
    if (!t)
        return cfx_datum_invalid();
    const size_t size = (size_t)cfx_tensor_numel(t) * cfx_dtype_size(cfx_tensor_dtype(t));
    FILE *file = fopen(path, "rb");
    bool good = file && fstat(fileno(file), &what) == 0;
    if (!good)
        cfx_error_set(err, CFX_E_IO, "cannot open '%.200s': %s", path, strerror(errno));
    else if ((uint64_t)what.st_size != size)
        good = cfx_error_set(err, CFX_E_VALUE, "'%.200s' has %lld bytes, but this type and these "
                             "sizes need %zu", path, (long long)what.st_size, size) == CFX_OK;
    else if (!(good = fread(cfx_tensor_data(t), 1, size, file) == size))
        cfx_error_set(err, CFX_E_IO, "cannot read '%.200s'", path);
    if (file)
        fclose(file);
    if (good)
        return cfx_datum_tensor(t);
    cfx_tensor_release(t);
    return cfx_datum_invalid();
}

/* A tensor of a file of several: of that name, or the only one. */
static cfx_datum read_named(const char *path, const char *name, cfx_error *err)
{
    cfx_state *all = cfx_state_load(path, NULL, err);
    cfx_tensor *t = NULL;
    cfx_datum d = cfx_datum_invalid();
    if (!all)
        return d;
    if (cfx_state_size(all) == 1)
        cfx_state_entry(all, 0, &t);
    if (name && cfx_state_get(all, name))
        t = cfx_state_get(all, name);
    if (t) {
        d = cfx_datum_retain(cfx_datum_tensor(t));
    } else {
        cfx_error_set(err, CFX_E_KEY, "'%.200s' has %zu tensors, none of them called '%.80s'; name "
                      "one: FILE:NAME", path, cfx_state_size(all), name ? name : "");
    }
    cfx_state_free(all);
    return d;
}

static bool holds_tensors(const char *path)
{
    const cfx_file_format *format = cfx_file_format_of_path(path);
    return format && format->content == CFX_CONTENT_TENSORS;
}

/* A number, True, False or None as such; anything else names a file. `name`: the input's; or NULL
 */
static cfx_datum read_value(cfx_dims *dims, const char *text, const char *name, cfx_error *err)
{
    cfx_error none = {0};
    char path[PATH_ROOM];
    cfx_datum d = cfx_datum_parse(dims, text, strlen(text), NULL, &none);
    if (d.kind != CFX_DATUM_INVALID && d.kind != CFX_DATUM_TENSOR && !d.symbolic)
        return d;
    cfx_datum_release(d);
    const size_t size = file_of(text, path);
    if (size && holds_tensors(path)) {
        snprintf(path + size + 1, PATH_ROOM - size - 1, "%s", text + size + 1);
        return read_named(path, path + size + 1, err);
    }
    if (size && strchr(text + size, '[')) {
        d = cfx_datum_parse(dims, text + size + 1, strlen(text + size + 1), NULL, err);
        if (d.kind == CFX_DATUM_INVALID)
            return d;
        bool sized = d.kind == CFX_DATUM_TENSOR;
        for (size_t i = 0; sized && i < cfx_tensor_ndim(d.as.tensor); i++)
            sized = !cfx_dim_is_symbol(cfx_tensor_sizes(d.as.tensor)[i]);
        const cfx_datum raw = sized ? read_raw(path, d.as.tensor, err)
                                    : fail(err, path, "its sizes must be numbers");
        cfx_datum_release(d);
        return raw;
    }
    if (holds_tensors(text))
        return read_named(text, name, err);
    return cfx_datum_tensor(cfx_tensor_load(text, NULL, err));
}

/* ---- all ----------------------------------------------------------------------------------- */

/* Every tensor of a file, each for the input of its name. */
static cfx_status give_file(cli_program *p, const char *path, cfx_error *err)
{
    cfx_state *all = cfx_state_load(path, NULL, err);
    cfx_status status = all ? CFX_OK : err->status;
    for (size_t i = 0; status == CFX_OK && i < cfx_state_size(all); i++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(all, i, &t);
        status = cli_program_set(p, name, strlen(name), cfx_datum_tensor(t), err);
    }
    cfx_state_free(all);
    return status;
}

static cfx_status give(cli_program *p, const char *text, size_t *next, cfx_error *err)
{
    char path[PATH_ROOM];
    const size_t size = name_of(p, text);
    if (!size && !file_of(text, path) && holds_tensors(text))
        return give_file(p, text, err);
    const char *name = size ? text : cli_program_input(p, (*next)++);
    if (!name)
        return cfx_error_set(err, CFX_E_TYPE, "too many inputs: expected at most %zu, got %zu",
                             p->num_inputs, *next);
    const size_t length = size ? size : strlen(name);
    snprintf(path, sizeof path, "%.*s", (int)length, name);
    cfx_datum d = read_value(p->dims, size ? text + size + 1 : text, path, err);
    if (d.kind == CFX_DATUM_INVALID)
        return err->status;
    cfx_status status = cli_program_set(p, name, length, d, err);
    cfx_datum_release(d);
    return status;
}

cfx_status cli_give_inputs(cli_program *p, const char *const *texts, size_t n, cfx_error *err)
{
    size_t next = 0;
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < n; i++)
        status = give(p, texts[i], &next, err);
    return status;
}

/* ---- random inputs -------------------------------------------------------------------------- */

/* What is missing, as far as a message goes. */
typedef struct missing {
    char text[300];
    size_t used;
} missing;

static void miss(missing *m, const char *what)
{
    if (strstr(m->text, what) || m->used + strlen(what) + 3 > sizeof m->text)
        return;
    m->used += (size_t)snprintf(m->text + m->used, sizeof m->text - m->used, "%s%s",
                                m->used ? ", " : "", what);
}

/* The value of NAME=VALUE in a list; its size. NULL if it is not there. */
static const char *setting(const char *list, const char *name, size_t *size)
{
    const size_t length = strlen(name);
    for (const char *at = list; *at;) {
        at += strspn(at, " ,;");
        const size_t end = cli_end_of_value(at);
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            *size = end - length - 1;
            return at + length + 1;
        }
        at += end;
    }
    return NULL;
}

/* "2x3x224x224". */
static bool read_sizes(const char *text, size_t size, int64_t *sizes, size_t *n)
{
    const char *end = text + size;
    for (*n = 0; text < end && *n < CFX_MAX_DIMS; text++) {
        char *after;
        if (*text < '0' || *text > '9')
            return false;
        sizes[(*n)++] = strtoll(text, &after, 10);
        text = after;
        if (text < end && *text != 'x')
            return false;
    }
    return text >= end && *n > 0;
}

/* Normal numbers; small integers; bools. */
static cfx_datum random_tensor(const cli_program *p, cfx_dtype dtype, const int64_t *sizes,
                               size_t n, cfx_error *err)
{
    cfx_datum items[CFX_MAX_DIMS];
    const bool real = cfx_dtype_is_float(dtype) || cfx_dtype_is_complex(dtype);
    for (size_t i = 0; i < n; i++)
        items[i] = cfx_datum_int(sizes[i]);
    cfx_datum size = cfx_datum_seq(CFX_DATUM_TUPLE, items, n, NULL, err);
    if (size.kind == CFX_DATUM_INVALID)
        return size;
    const cfx_datum most = cfx_datum_int(dtype == CFX_DTYPE_BOOL ? 2 : 10);
    const cfx_datum normal[] = {size, cfx_datum_dtype(dtype)};
    const cfx_datum small[] = {cfx_datum_int(0), most, size, cfx_datum_dtype(dtype)};
    const cfx_datum d = real ? cfx_operator_run(p->rt, CFX_OPID_randn, normal, 2, err)
                             : cfx_operator_run(p->rt, CFX_OPID_randint, small, 4, err);
    cfx_datum_release(size);
    return d;
}

/* The sizes that the signature and the list know; false if some are missing. */
static bool find_sizes(const cfx_signature_input *in, const char *list, int64_t *sizes, missing *m)
{
    bool all = true;
    for (int i = 0; i < in->rank; i++) {
        size_t size;
        char *end;
        char what[120];
        const char *text = in->sizes[i] < 0 && in->dims[i] ? setting(list, in->dims[i], &size)
                                                           : NULL;
        sizes[i] = text ? strtoll(text, &end, 10) : in->sizes[i];
        if (sizes[i] >= 0)
            continue;
        snprintf(what, sizeof what, in->dims[i] ? "%s=N" : "%s=AxBx...",
                 in->dims[i] ? in->dims[i] : in->name);
        miss(m, what);
        all = false;
    }
    return all;
}

static cfx_datum random_number(const cli_program *p, cfx_datum_kind kind)
{
    const cfx_draws draws = cfx_runtime_draw(p->rt, 1);
    const uint64_t bits = cfx_draws_bits(draws, 0);
    if (kind == CFX_DATUM_FLOAT)
        return cfx_datum_float(cfx_draws_normal(draws, 0));
    return kind == CFX_DATUM_BOOL ? cfx_datum_bool(bits & 1) : cfx_datum_int((int64_t)(bits % 10));
}

/* One input: as the list says, or as the signature says. INVALID without an error if something is
 * missing. */
static cfx_datum random_input(const cli_program *p, const cfx_signature_input *in,
                              const char *list, missing *m, cfx_error *err)
{
    int64_t sizes[CFX_MAX_DIMS];
    size_t size;
    size_t n = in->rank > 0 ? (size_t)in->rank : 0;
    const char *text = setting(list, in->name, &size);
    cfx_dtype dtype = in->kind == CFX_DATUM_TENSOR && in->dtype < CFX_DTYPE_COUNT
                          ? in->dtype : CFX_DTYPE_FLOAT32;
    const bool number = in->kind == CFX_DATUM_INT || in->kind == CFX_DATUM_FLOAT ||
                        in->kind == CFX_DATUM_BOOL;
    if (number && !text)
        return random_number(p, in->kind);
    if (text && (number || !read_sizes(text, size, sizes, &n))) {
        cfx_datum like = cfx_datum_parse(p->dims, text, size, NULL, err);
        if (like.kind != CFX_DATUM_TENSOR)
            return like;
        dtype = cfx_tensor_dtype(like.as.tensor);
        n = cfx_tensor_ndim(like.as.tensor);
        memcpy(sizes, cfx_tensor_sizes(like.as.tensor), n * sizeof *sizes);
        cfx_datum_release(like);
    } else if (!text && (in->kind != CFX_DATUM_TENSOR || in->rank < 0)) {
        char what[120];
        snprintf(what, sizeof what, "%.100s=AxBx...", in->name);
        miss(m, what);
        return cfx_datum_invalid();
    } else if (!text && !find_sizes(in, list, sizes, m)) {
        return cfx_datum_invalid();
    }
    return random_tensor(p, dtype, sizes, n, err);
}

/* Whether the i-th placeholder may be left out. */
static bool has_default(const cfx_graph *g, size_t i)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        size_t args = 0;
        if (cfx_node_op(n) == CFX_OP_PLACEHOLDER && i-- == 0) {
            cfx_value_items(cfx_node_args(n), &args);
            return args > 0;
        }
    }
    return false;
}

/* Names that mean nothing are most likely misspelled. */
static cfx_status check_list(const cli_program *p, const char *list, cfx_error *err)
{
    for (const char *at = list + strspn(list, " ,;"); *at; at += strspn(at, " ,;")) {
        const size_t end = cli_end_of_value(at);
        const size_t name = strcspn(at, "=");
        bool known = false;
        cfx_signature_input in;
        for (size_t i = 0; name < end && i < p->num_inputs; i++) {
            cfx_signature_input_at(p->signature, i, &in);
            known |= strlen(in.name) == name && memcmp(in.name, at, name) == 0;
            for (int k = 0; k < in.rank; k++)
                known |= in.dims[k] && strlen(in.dims[k]) == name &&
                         memcmp(in.dims[k], at, name) == 0;
        }
        if (!known)
            return cfx_error_set(err, CFX_E_KEY, "--random: '%.*s' names neither an input nor a "
                                 "size; write NAME=VALUE", end > 80 ? 80 : (int)end, at);
        at += end;
    }
    return CFX_OK;
}

cfx_status cli_random_inputs(cli_program *p, const cfx_graph *g, const char *list, cfx_error *err)
{
    missing m = {.used = 0};
    cfx_status status = check_list(p, list, err);
    for (size_t i = 0; status == CFX_OK && i < p->num_inputs; i++) {
        cfx_signature_input in;
        size_t size;
        if (p->inputs[i].kind != CFX_DATUM_INVALID || !cfx_signature_input_at(p->signature, i, &in))
            continue;
        if (has_default(g, i) && !setting(list, in.name, &size))
            continue;
        p->inputs[i] = random_input(p, &in, list, &m, err);
        status = p->inputs[i].kind == CFX_DATUM_INVALID ? err->status : CFX_OK;
    }
    if (status == CFX_OK && m.used)
        return cfx_error_set(err, CFX_E_VALUE, "--random needs sizes that the file does not say: "
                             "--random=%s", m.text);
    return status;
}
