/* package_write.c - writing .cfx files: a zip archive of texts and weights behind a manifest, and
 * files beside it if the weights are to be in shards (docs/format.md). */
#include "package_impl.h"

#include <cfx/embed/base.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAME_MOST = 255,
    HASH_DIGITS = 16,   /* of a shard's hash in its name */
    PIECE = 8 << 20     /* bytes between two reports of progress */
};

/* ---- names --------------------------------------------------------------------------------- */

/* A part of a path: not empty, not "." or "..". */
static bool is_step(const char *name, size_t size)
{
    return size > 0 && !(size == 1 && name[0] == '.') &&
           !(size == 2 && name[0] == '.' && name[1] == '.');
}

bool cfxi_format_package_is_name(const char *name, size_t size)
{
    size_t from = 0;
    if (size > NAME_MOST || !cfxi_base_utf8_valid(name, size))
        return false;
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)name[i];
        if (c < 0x20 || c == 0x7f || c == '\\' || c == ':')
            return false;
        if (c == '/' && !is_step(name + from, i - from))
            return false;
        from = c == '/' ? i + 1 : from;
    }
    return is_step(name + from, size - from);
}

bool cfxi_format_package_is_file(const char *name, size_t size)
{
    return cfxi_format_package_is_name(name, size) && !memchr(name, '/', size);
}

cfx_status cfxi_format_package_beside(const char *path, const char *name, cfx_buffer *out,
                                      cfx_error *err)
{
    const char *slash = strrchr(path, '/');
    out->size = 0;
    if (cfx_buffer_append(out, path, slash ? (size_t)(slash - path) + 1 : 0) != CFX_OK ||
        cfx_buffer_append(out, name, strlen(name)) != CFX_OK)
        return cfxi_base_nomem(err);
    return CFX_OK;
}

/* ---- writing: weights, with progress ------------------------------------------------------- */

/* The weights on their way through a sink. */
typedef struct stream {
    const cfx_package_contents *contents;
    const cfx_state *weights;  /* those that are written now */
    uint64_t done;
    uint64_t all;
    cfx_sink out;  /* while they are written */
} stream;

static cfx_status pass_on(void *ctx, const char *data, size_t size)
{
    stream *s = ctx;
    const cfx_package_contents *c = s->contents;
    while (size > 0) {
        const size_t piece = size < PIECE ? size : PIECE;
        CFX_TRY(s->out.write(s->out.ctx, data, piece));
        data += piece;
        size -= piece;
        s->done += piece;
        if (c->progress && !c->progress(c->progress_ctx, s->done, s->all))
            return CFX_E_INTERRUPTED;
    }
    return CFX_OK;
}

static cfx_status write_weights(const void *ctx, cfx_sink out, cfx_error *err)
{
    stream *s = (stream *)(uintptr_t)ctx;
    s->out = out;
    const cfx_status status =
        cfxi_format_safetensors_write(s->weights, (cfx_sink){pass_on, s}, err);
    if (status == CFX_E_INTERRUPTED)
        return cfx_error_set(err, status, "saving was stopped");
    return status;
}

static uint64_t bytes_of(const cfx_tensor *t)
{
    return (uint64_t)cfxi_tensor_numel(t) * cfxi_tensor_itemsize(t);
}

/* All bytes that will pass: once to be hashed, once to be written. */
static uint64_t bytes_to_pass(const cfx_state *weights)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < cfx_state_size(weights); i++) {
        cfx_tensor *t;
        cfx_state_entry(weights, i, &t);
        bytes += bytes_of(t);
    }
    return 2 * bytes;
}

/* ---- writing: the manifest ----------------------------------------------------------------- */

static cfx_status write_part(const void *ctx, cfx_sink out, cfx_error *err)
{
    const cfx_package_part *part = ctx;
    (void)err;
    return part->size ? out.write(out.ctx, part->data, part->size) : CFX_OK;
}

static void write_producer(cfx_json *j)
{
    char text[60];
    snprintf(text, sizeof text, "cfx %d.%d.%d", CFX_VERSION_MAJOR, CFX_VERSION_MINOR,
             CFX_VERSION_PATCH);
    cfx_json_field(j, "producer");
    cfx_json_text(j, text);
}

/* {"size": ..., "sha256": ...} */
static void write_sums(cfx_json *j, uint64_t size, const char *sha256)
{
    cfx_json_field(j, "size");
    cfx_json_uint(j, size);
    cfx_json_field(j, "sha256");
    cfx_json_text(j, sha256);
    cfx_json_close(j, '}');
}

static void write_files(cfx_json *j, const cfxi_vec *files)
{
    const cfxi_weights_file *all = files->data;
    if (files->size == 0)
        return;
    cfx_json_field(j, "files");
    cfx_json_open(j, '[');
    for (size_t i = 0; i < files->size; i++) {
        cfx_json_line(j);
        cfx_json_open(j, '{');
        cfx_json_field(j, "file");
        cfx_json_text(j, all[i].name);
        write_sums(j, all[i].size, all[i].sha256);
    }
    cfx_json_close(j, ']');
}

static bool has_complex128(const cfx_state *weights)
{
    for (size_t i = 0; weights && i < cfx_state_size(weights); i++) {
        cfx_tensor *t;
        cfx_state_entry(weights, i, &t);
        if (cfx_tensor_dtype(t) == CFX_DTYPE_COMPLEX128)
            return true;
    }
    return false;
}

/* A file says 1 unless it has what version 2 brought, and its readers need version 2 only if they
 * would take it for something else. */
static void write_versions(cfx_json *j, const cfx_package_contents *c, bool files)
{
    const bool wide = has_complex128(c->weights);
    cfx_json_field(j, "format");
    cfx_json_int(j, files || wide ? CFX_PACKAGE_FORMAT : 1);
    cfx_json_field(j, "reads");
    cfx_json_int(j, wide || (files && c->weights) ? 2 : 1);
}

static cfx_status write_manifest(const cfx_package_contents *c, const cfxi_vec *files,
                                 const cfxi_part *parts, size_t n, cfx_buffer *out, cfx_error *err)
{
    cfx_json j;
    cfx_json_begin(&j, cfx_buffer_sink(out), false);
    cfx_json_open(&j, '{');
    write_versions(&j, c, files->size > 0);
    write_producer(&j);
    cfx_json_field(&j, "model");
    cfx_json_text(&j, c->model ? c->model : "");
    cfx_json_field(&j, "weights");
    cfx_json_text(&j, c->weights ? "inside" : "outside");
    write_files(&j, files);
    cfx_json_field(&j, "entries");
    cfx_json_open(&j, '{');
    for (size_t i = 0; i < n; i++) {
        cfx_json_line(&j);
        cfx_json_field(&j, parts[i].name);
        cfx_json_open(&j, '{');
        write_sums(&j, parts[i].size, parts[i].sha256);
    }
    cfx_json_close(&j, '}');
    cfx_json_close(&j, '}');
    if (j.status == CFX_OK && cfx_buffer_append(out, "\n", 1) == CFX_OK)
        return CFX_OK;
    return cfxi_base_nomem(err);
}

/* ---- writing: all -------------------------------------------------------------------------- */

static cfx_status check_names(const cfx_package_contents *c, cfx_error *err)
{
    for (size_t i = 0; i < c->num_parts; i++) {
        const char *name = c->parts[i].name;
        if (!cfxi_format_package_is_name(name, strlen(name)) ||
            strcmp(name, CFXI_PACKAGE_MANIFEST) == 0 ||
            strcmp(name, CFXI_PACKAGE_WEIGHTS) == 0)
            return cfx_error_set(err, CFX_E_VALUE, "'%.100s' is not a valid name for a part of a "
                                 "package", name);
        for (size_t k = 0; k < i; k++)  /* they are few */
            if (strcmp(c->parts[k].name, name) == 0)
                return cfx_error_set(err, CFX_E_VALUE, "a package has two parts called '%.100s'",
                                     name);
    }
    return CFX_OK;
}

/* A package on its way into a file. */
typedef struct saving {
    const cfx_package_contents *contents;
    const char *path;
    cfxi_vec files;    /* of cfxi_weights_file */
    stream weights;
} saving;

/* The parts of the archive: the manifest comes first, but is made last. */
static cfx_status plan(saving *s, cfxi_part *parts, cfx_package_part *manifest, cfx_buffer *text,
                       cfx_error *err)
{
    const cfx_package_contents *c = s->contents;
    size_t n = 1;
    for (size_t i = 0; i < c->num_parts; i++)
        parts[n++] = (cfxi_part){.name = c->parts[i].name, .write = write_part,
                                 .ctx = &c->parts[i], .hashed = true};
    if (c->weights)
        parts[n++] = (cfxi_part){.name = CFXI_PACKAGE_WEIGHTS, .write = write_weights,
                                 .ctx = &s->weights, .hashed = true};
    CFX_TRY(cfxi_format_archive_plan(parts + 1, n - 1, err));
    CFX_TRY(write_manifest(c, &s->files, parts + 1, n - 1, text, err));
    *manifest = (cfx_package_part){CFXI_PACKAGE_MANIFEST, text->data, text->size};
    parts[0] = (cfxi_part){.name = CFXI_PACKAGE_MANIFEST, .write = write_part, .ctx = manifest};
    return cfxi_format_archive_plan(parts, n, err);
}

static cfx_status write_archive(const void *ctx, cfx_sink out, cfx_error *err)
{
    saving *s = (saving *)(uintptr_t)ctx;
    const size_t most = s->contents->num_parts + 2;
    const size_t n = most - !s->contents->weights;
    cfxi_vec parts = {0};
    cfx_buffer text;
    cfx_package_part manifest;
    s->weights.weights = s->contents->weights;
    if (!cfxi_base_vec_reserve(&parts, most, sizeof(cfxi_part), cfxi_base_allocator(NULL)))
        return cfxi_base_nomem(err);
    cfx_buffer_init(&text, NULL);
    cfx_status status = plan(s, parts.data, &manifest, &text, err);
    if (status == CFX_OK)
        status = cfxi_format_archive_write(parts.data, n, out, err);
    cfx_buffer_free(&text);
    cfxi_base_vec_free(&parts, sizeof(cfxi_part), cfxi_base_allocator(NULL));
    return status;
}

static saving begin(const cfx_package_contents *c, const char *path)
{
    return (saving){.contents = c, .path = path, .weights = {
        .contents = c, .all = c->weights ? bytes_to_pass(c->weights) : 0}};
}

cfx_status cfx_package_write(const cfx_package_contents *c, cfx_sink out, cfx_error *err)
{
    saving s = begin(c, NULL);
    CFX_TRY(check_names(c, err));
    if (c->weights_file || c->shard_size)
        return cfx_error_set(err, CFX_E_VALUE, "weights in other files need a folder to be in: "
                             "save the package to a path");
    return write_archive(&s, out, err);
}

/* ---- weights in other files ---------------------------------------------------------------- */

static cfx_status add_file(saving *s, const cfxi_weights_file *file, cfx_error *err)
{
    if (!cfxi_base_vec_reserve(&s->files, 1, sizeof *file, cfxi_base_allocator(NULL)))
        return cfxi_base_nomem(err);
    ((cfxi_weights_file *)s->files.data)[s->files.size++] = *file;
    return CFX_OK;
}

static cfx_status describe_package(const char *path, cfxi_weights_file *file, cfx_error *err)
{
    cfx_package *p =
        cfx_package_load(path, &(cfx_package_options){.skip_files = true}, err);
    const bool inside = p && cfxi_format_package_inside(p, file);
    cfx_package_free(p);
    if (p && !inside)
        return cfx_error_set(err, CFX_E_VALUE, "'%.200s' has not all of its weights inside", path);
    return p ? CFX_OK : CFX_E_VALUE;
}

static void hash_bytes(const cfxi_bytes *b, cfxi_weights_file *file)
{
    cfxi_sha256 h;
    cfxi_format_sha256_begin(&h);
    cfxi_format_sha256_more(&h, b->data, b->size);
    cfxi_format_sha256_end(&h, file->sha256);
    file->size = b->size;
}

/* What the manifest is to say of a file that is there. */
static cfx_status name_weights(saving *s, cfx_error *err)
{
    const char *name = s->contents->weights_file;
    cfxi_weights_file file = {.size = 0};
    cfx_buffer path;
    if (!cfxi_format_package_is_file(name, strlen(name)))
        return cfx_error_set(err, CFX_E_VALUE, "'%.100s' is not the name of a file in the same "
                             "folder", name);
    memcpy(file.name, name, strlen(name) + 1);
    cfx_buffer_init(&path, NULL);
    cfx_status status = cfxi_format_package_beside(s->path, name, &path, err);
    cfxi_bytes *b = status == CFX_OK ? cfxi_format_bytes_map(path.data, NULL, err) : NULL;
    if (status == CFX_OK && !b)
        status = CFX_E_IO;
    if (b && cfxi_format_cfx_is(b->data, b->size))
        status = describe_package(path.data, &file, err);
    else if (b)
        hash_bytes(b, &file);
    cfxi_format_bytes_release(b);
    cfx_buffer_free(&path);
    return status == CFX_OK ? add_file(s, &file, err) : status;
}

static cfx_status hash_pass(void *ctx, const char *data, size_t size)
{
    cfxi_format_sha256_more(ctx, data, size);
    return CFX_OK;
}

/* "model-00001-of-00003-0123456789abcdef.safetensors": other contents have another name, so that
 * the files of the old package stay as they are until the new one is complete. */
static cfx_status name_shard(const saving *s, size_t i, size_t n, cfxi_weights_file *file,
                             cfx_error *err)
{
    const char *slash = strrchr(s->path, '/');
    const char *base = slash ? slash + 1 : s->path;
    size_t size = strlen(base);
    if (size > 4 && strcmp(base + size - 4, ".cfx") == 0)
        size -= 4;
    const int length = size > 180 ? -1 : snprintf(
        file->name, sizeof file->name, "%.*s-%05zu-of-%05zu-%.*s.safetensors", (int)size, base,
        i + 1, n, HASH_DIGITS, file->sha256);
    if (length < 0 || !cfxi_format_package_is_file(file->name, (size_t)length))
        return cfx_error_set(err, CFX_E_VALUE, "the name of '%.200s' is not one that files beside "
                             "it can begin with", s->path);
    return CFX_OK;
}

static cfx_status write_shard(saving *s, const cfx_state *shard, size_t i, size_t n, cfx_error *err)
{
    cfxi_weights_file file = {.size = 0};
    cfxi_sha256 h;
    cfx_buffer path;
    struct stat old;
    const uint64_t before = s->weights.done;
    s->weights.weights = shard;
    cfxi_format_sha256_begin(&h);
    CFX_TRY(write_weights(&s->weights, (cfx_sink){hash_pass, &h}, err));
    cfxi_format_sha256_end(&h, file.sha256);
    file.size = s->weights.done - before;
    CFX_TRY(name_shard(s, i, n, &file, err));
    cfx_buffer_init(&path, NULL);
    cfx_status status = cfxi_format_package_beside(s->path, file.name, &path, err);
    const bool there = status == CFX_OK && stat(path.data, &old) == 0;
    file.made = !there;
    if (status == CFX_OK)
        status = add_file(s, &file, err);
    if (status == CFX_OK)
        status = cfxi_format_file_replace(path.data, file.size, write_weights, &s->weights,
                                          err);
    cfx_buffer_free(&path);
    return status;
}

/* The first tensor that does not go into the shard that begins with `from`. */
static size_t shard_end(const cfx_package_contents *c, size_t from)
{
    uint64_t bytes = 0;
    size_t i = from;
    for (; i < cfx_state_size(c->weights); i++) {
        cfx_tensor *t;
        cfx_state_entry(c->weights, i, &t);
        if (i > from && bytes_of(t) > c->shard_size - (bytes < c->shard_size ? bytes
                                                                             : c->shard_size))
            break;
        bytes += bytes_of(t);
    }
    return i;
}

static cfx_status write_range(saving *s, size_t from, size_t to, size_t i, size_t n, cfx_error *err)
{
    cfx_state *shard = cfx_state_new(NULL, err);
    cfx_status status = shard ? CFX_OK : CFX_E_NOMEM;
    for (size_t k = from; k < to && status == CFX_OK; k++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(s->contents->weights, k, &t);
        status = cfx_state_set(shard, name, t, err);
    }
    if (status == CFX_OK)
        status = write_shard(s, shard, i, n, err);
    cfx_state_free(shard);
    return status;
}

static cfx_status write_shards(saving *s, cfx_error *err)
{
    const size_t all = cfx_state_size(s->contents->weights);
    size_t n = 0;
    for (size_t from = 0; from < all; from = shard_end(s->contents, from))
        n++;
    for (size_t from = 0, i = 0; from < all; i++) {
        const size_t to = shard_end(s->contents, from);
        CFX_TRY(write_range(s, from, to, i, n, err));
        from = to;
    }
    return CFX_OK;
}

/* ---- what an old package leaves behind ----------------------------------------------------- */

static void remove_beside(const char *path, const char *name)
{
    cfx_buffer full;
    cfx_buffer_init(&full, NULL);
    if (cfxi_format_package_beside(path, name, &full, NULL) == CFX_OK)
        unlink(full.data);
    cfx_buffer_free(&full);
}

static bool is_listed(const saving *s, const char *name)
{
    const cfxi_weights_file *all = s->files.data;
    for (size_t i = 0; i < s->files.size; i++)
        if (strcmp(all[i].name, name) == 0)
            return true;
    return false;
}

/* Whether a file has the name that name_shard would give to a shard of the package at `path`. */
static bool is_shard_of(const saving *s, const cfxi_weights_file *file)
{
    cfxi_weights_file same = *file;
    size_t i;
    size_t n;
    const char *numbers = strlen(file->name) > 12 ? strstr(file->name, "-of-") : NULL;
    for (const char *next = numbers; next; next = strstr(next + 1, "-of-"))
        numbers = next;
    return numbers && numbers - file->name >= 6 && sscanf(numbers - 5, "%5zu-of-%5zu", &i, &n) == 2
           && i > 0 && name_shard(s, i - 1, n, &same, NULL) == CFX_OK &&
           strcmp(same.name, file->name) == 0;
}

/* The shards of the package that was there, unless the new one has them, too. */
static void remove_stale(const saving *s, const cfx_package *old)
{
    size_t n = 0;
    const cfxi_weights_file *files = old ? cfxi_format_package_files(old, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        if (!is_listed(s, files[i].name) && is_shard_of(s, &files[i]))
            remove_beside(s->path, files[i].name);
}

static void remove_made(const saving *s)
{
    const cfxi_weights_file *all = s->files.data;
    for (size_t i = 0; i < s->files.size; i++)
        if (all[i].made)
            remove_beside(s->path, all[i].name);
}

static cfx_status save_all(saving *s, cfx_error *err)
{
    cfx_package_contents rest = *s->contents;
    struct stat there;
    if (rest.weights_file)
        CFX_TRY(name_weights(s, err));
    if (rest.weights && rest.shard_size) {
        CFX_TRY(write_shards(s, err));
        rest.weights = NULL;
        s->contents = &rest;
    }
    const bool regular = stat(s->path, &there) == 0 && S_ISREG(there.st_mode);
    cfx_package *old = regular ? cfx_package_load(s->path, &(cfx_package_options){
        .skip_files = true}, NULL) : NULL;
    const cfx_status status = cfxi_format_file_replace(s->path, 0, write_archive, s, err);
    if (status == CFX_OK)
        remove_stale(s, old);
    cfx_package_free(old);
    return status;
}

cfx_status cfx_package_save(const char *path, const cfx_package_contents *c, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(path, "path", err));
    CFX_TRY(check_names(c, err));
    saving s = begin(c, path);
    const cfx_status status = save_all(&s, err);
    if (status != CFX_OK)
        remove_made(&s);
    cfxi_base_vec_free(&s.files, sizeof(cfxi_weights_file), cfxi_base_allocator(NULL));
    return status;
}
