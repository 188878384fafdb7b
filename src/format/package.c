/* package.c - .cfx files: a zip archive of texts and weights behind a manifest (docs/format.md). */
#include "format_impl.h"

#include <cfx/embed/base.h>
#include <cfx/package.h>
#include <stdio.h>

#define MANIFEST "cfx.json"
#define WEIGHTS "weights.safetensors"

enum {
    NAME_MOST = 255,
    MANIFEST_MOST = 64 << 20,
    READS = 1,          /* the oldest version whose readers understand what is written */
    PIECE = 8 << 20     /* bytes between two reports of progress */
};

/* ---- names --------------------------------------------------------------------------------- */

/* A part of a path: not empty, not "." or "..". */
static bool is_step(const char *name, size_t size)
{
    return size > 0 && !(size == 1 && name[0] == '.') &&
           !(size == 2 && name[0] == '.' && name[1] == '.');
}

/* A relative path that cannot lead out of a folder, on any system. */
static bool is_name(const char *name, size_t size)
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

/* ---- writing: weights, with progress ------------------------------------------------------- */

/* The weights on their way through a sink. */
typedef struct stream {
    const cfx_package_contents *contents;
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
        cfxi_format_safetensors_write(s->contents->weights, (cfx_sink){pass_on, s}, err);
    if (status == CFX_E_INTERRUPTED)
        return cfx_error_set(err, status, "saving was stopped");
    return status;
}

/* All bytes that will pass: once to be hashed, once to be written. */
static uint64_t bytes_to_pass(const cfx_state *weights)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < cfx_state_size(weights); i++) {
        cfx_tensor *t;
        cfx_state_entry(weights, i, &t);
        bytes += (uint64_t)cfxi_tensor_numel(t) * cfxi_tensor_itemsize(t);
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

static cfx_status write_manifest(const cfx_package_contents *c, const cfxi_part *parts, size_t n,
                                 cfx_buffer *out, cfx_error *err)
{
    cfx_json j;
    cfx_json_begin(&j, cfx_buffer_sink(out), false);
    cfx_json_open(&j, '{');
    cfx_json_field(&j, "format");
    cfx_json_int(&j, CFX_PACKAGE_FORMAT);
    cfx_json_field(&j, "reads");
    cfx_json_int(&j, READS);
    write_producer(&j);
    cfx_json_field(&j, "model");
    cfx_json_text(&j, c->model ? c->model : "");
    cfx_json_field(&j, "weights");
    cfx_json_text(&j, c->weights ? "inside" : "outside");
    cfx_json_field(&j, "entries");
    cfx_json_open(&j, '{');
    for (size_t i = 0; i < n; i++) {
        cfx_json_line(&j);
        cfx_json_field(&j, parts[i].name);
        cfx_json_open(&j, '{');
        cfx_json_field(&j, "size");
        cfx_json_uint(&j, parts[i].size);
        cfx_json_field(&j, "sha256");
        cfx_json_text(&j, parts[i].sha256);
        cfx_json_close(&j, '}');
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
        if (!is_name(name, strlen(name)) || strcmp(name, MANIFEST) == 0 ||
            strcmp(name, WEIGHTS) == 0)
            return cfx_error_set(err, CFX_E_VALUE, "'%.100s' is not a valid name for a part of a "
                                 "package", name);
        for (size_t k = 0; k < i; k++)  /* they are few */
            if (strcmp(c->parts[k].name, name) == 0)
                return cfx_error_set(err, CFX_E_VALUE, "a package has two parts called '%.100s'",
                                     name);
    }
    return CFX_OK;
}

/* The parts of the archive: the manifest comes first, but is made last. */
static cfx_status plan(const cfx_package_contents *c, stream *weights, cfxi_part *parts,
                       cfx_package_part *manifest, cfx_buffer *text, cfx_error *err)
{
    size_t n = 1;
    for (size_t i = 0; i < c->num_parts; i++)
        parts[n++] = (cfxi_part){.name = c->parts[i].name, .write = write_part,
                                 .ctx = &c->parts[i], .hashed = true};
    if (c->weights)
        parts[n++] = (cfxi_part){.name = WEIGHTS, .write = write_weights, .ctx = weights,
                                 .hashed = true};
    CFX_TRY(cfxi_format_archive_plan(parts + 1, n - 1, err));
    CFX_TRY(write_manifest(c, parts + 1, n - 1, text, err));
    *manifest = (cfx_package_part){MANIFEST, text->data, text->size};
    parts[0] = (cfxi_part){.name = MANIFEST, .write = write_part, .ctx = manifest};
    return cfxi_format_archive_plan(parts, n, err);
}

cfx_status cfx_package_write(const cfx_package_contents *c, cfx_sink out, cfx_error *err)
{
    const size_t most = c->num_parts + 2;
    const size_t n = most - !c->weights;
    cfxi_vec parts = {0};
    cfx_buffer text;
    cfx_package_part manifest;
    stream weights = {.contents = c, .all = c->weights ? bytes_to_pass(c->weights) : 0};
    CFX_TRY(check_names(c, err));
    if (!cfxi_base_vec_reserve(&parts, most, sizeof(cfxi_part), cfxi_base_allocator(NULL)))
        return cfxi_base_nomem(err);
    cfx_buffer_init(&text, NULL);
    cfx_status status = plan(c, &weights, parts.data, &manifest, &text, err);
    if (status == CFX_OK)
        status = cfxi_format_archive_write(parts.data, n, out, err);
    cfx_buffer_free(&text);
    cfxi_base_vec_free(&parts, sizeof(cfxi_part), cfxi_base_allocator(NULL));
    return status;
}

static cfx_status write_all(const void *ctx, cfx_sink out, cfx_error *err)
{
    return cfx_package_write(ctx, out, err);
}

cfx_status cfx_package_save(const char *path, const cfx_package_contents *c, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(path, "path", err));
    return cfxi_format_file_replace(path, write_all, c, err);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* What the manifest says of an entry. */
typedef struct listed {
    const cfxi_entry *entry;
    char sha256[65];
} listed;

struct cfx_package {
    const cfx_allocator *allocator;
    cfxi_bytes *bytes;
    cfxi_archive archive;
    bool opened;       /* whether `archive` is to be closed */
    cfx_buffer model;
    cfx_buffer producer;
    cfx_buffer names;  /* of entries, each terminated */
    cfxi_vec starts;   /* size_t: where they begin there */
    cfxi_vec listed;
    int64_t format;
    bool outside;      /* weights are kept elsewhere */
    cfx_state *weights;
};

bool cfxi_format_cfx_is(const char *data, size_t size)
{
    static const size_t at = 30;  /* where the name of the first entry is */
    return size >= at + sizeof MANIFEST - 1 && memcmp(data, "PK\x03\x04", 4) == 0 &&
           cfxi_format_little(data + 26, 2) == sizeof MANIFEST - 1 &&
           memcmp(data + at, MANIFEST, sizeof MANIFEST - 1) == 0;
}

static const char *entry_name(const cfx_package *p, size_t i)
{
    return p->names.data + ((const size_t *)p->starts.data)[i];
}

/* Names of entries, terminated; each must be one that cannot lead anywhere. */
static cfx_status read_names(cfx_package *p, cfx_error *err)
{
    const cfxi_entry *all = p->archive.entries.data;
    const size_t n = p->archive.entries.size;
    if (!cfxi_base_vec_reserve(&p->starts, n + 1, sizeof(size_t), p->allocator))
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < n; i++) {
        if (!is_name(all[i].name, all[i].name_size))
            return cfx_error_set(err, CFX_E_VALUE, "cfx file, byte %zu: an entry has a name that "
                                 "is not allowed", all[i].header);
        ((size_t *)p->starts.data)[p->starts.size++] = p->names.size;
        if (cfx_buffer_append(&p->names, all[i].name, all[i].name_size) != CFX_OK ||
            cfx_buffer_append(&p->names, "", 1) != CFX_OK)
            return cfxi_base_nomem(err);
    }
    return CFX_OK;
}

/* ---- reading: the manifest ----------------------------------------------------------------- */

typedef struct reading {
    cfx_package *p;
    cfxi_json json;
    cfx_buffer key;
    cfx_buffer text;
    int64_t reads;
    bool has_entries;
} reading;

static cfx_status read_hash(reading *r, listed *one)
{
    CFX_TRY(cfxi_format_json_string(&r->json, &r->text));
    if (r->text.size != 64)
        return cfxi_format_json_complain(&r->json, CFX_E_VALUE, "a hash has 64 digits");
    memcpy(one->sha256, r->text.data, 65);
    return CFX_OK;
}

/* {"size": ..., "sha256": ...} of the entry whose name is r->key. */
static cfx_status read_listed(reading *r)
{
    listed one = {.entry = cfxi_format_archive_find(&r->p->archive, r->key.data)};
    int64_t size = -1;
    if (!one.entry)
        return cfxi_format_json_complain(&r->json, CFX_E_VALUE, "an entry is missing");
    for (bool first = cfxi_format_json_open(&r->json, '{');
         cfxi_format_json_more(&r->json, '}', &first);) {
        CFX_TRY(cfxi_format_json_key(&r->json, &r->text));
        if (strcmp(r->text.data, "size") == 0)
            CFX_TRY(cfxi_format_json_size(&r->json, &size));
        else if (strcmp(r->text.data, "sha256") == 0)
            CFX_TRY(read_hash(r, &one));
        else
            CFX_TRY(cfxi_format_json_skip(&r->json, &r->text));
    }
    CFX_TRY(r->json.status);
    if (size < 0 || (uint64_t)size != one.entry->size)
        return cfxi_format_json_complain(&r->json, CFX_E_VALUE, "an entry has another size");
    if (!cfxi_base_vec_reserve(&r->p->listed, 1, sizeof one, r->p->allocator))
        return r->json.status = cfxi_base_nomem(r->json.err);
    ((listed *)r->p->listed.data)[r->p->listed.size++] = one;
    return CFX_OK;
}

static cfx_status read_list(reading *r)
{
    r->has_entries = true;
    for (bool first = cfxi_format_json_open(&r->json, '{');
         cfxi_format_json_more(&r->json, '}', &first);) {
        CFX_TRY(cfxi_format_json_key(&r->json, &r->key));
        CFX_TRY(read_listed(r));
    }
    return r->json.status;
}

static cfx_status read_field(reading *r)
{
    cfx_package *p = r->p;
    const char *key = r->key.data;
    if (strcmp(key, "format") == 0)
        return cfxi_format_json_size(&r->json, &p->format);
    if (strcmp(key, "reads") == 0)
        return cfxi_format_json_size(&r->json, &r->reads);
    if (strcmp(key, "model") == 0)
        return cfxi_format_json_string(&r->json, &p->model);
    if (strcmp(key, "producer") == 0)
        return cfxi_format_json_string(&r->json, &p->producer);
    if (strcmp(key, "entries") == 0)
        return read_list(r);
    if (strcmp(key, "weights") != 0)
        return cfxi_format_json_skip(&r->json, &r->text);
    CFX_TRY(cfxi_format_json_string(&r->json, &r->text));
    p->outside = strcmp(r->text.data, "outside") == 0;
    return CFX_OK;
}

static cfx_status read_fields(reading *r)
{
    for (bool first = cfxi_format_json_open(&r->json, '{');
         cfxi_format_json_more(&r->json, '}', &first);) {
        CFX_TRY(cfxi_format_json_key(&r->json, &r->key));
        CFX_TRY(read_field(r));
    }
    CFX_TRY(cfxi_format_json_end(&r->json));
    if (r->p->format < 1 || r->reads < 1 || !r->has_entries)
        return cfxi_format_json_complain(&r->json, CFX_E_VALUE,
                                         "it lacks one of format, reads and entries");
    if (r->reads > CFX_PACKAGE_FORMAT)
        return cfx_error_set(r->json.err, CFX_E_UNSUPPORTED, "this file has format %lld, written "
                             "by %.60s; this version of cfx reads formats up to %d: update cfx",
                             (long long)r->p->format, r->p->producer.data, CFX_PACKAGE_FORMAT);
    return CFX_OK;
}

static cfx_status read_manifest(cfx_package *p, cfx_error *err)
{
    const cfxi_entry *first = p->archive.entries.data;
    if (p->archive.entries.size == 0 || strcmp(entry_name(p, 0), MANIFEST) != 0)
        return cfx_error_set(err, CFX_E_VALUE, "not a cfx file: its first entry is not " MANIFEST);
    if (first->size > MANIFEST_MOST)
        return cfx_error_set(err, CFX_E_VALUE, "cfx file: " MANIFEST " has %zu bytes", first->size);
    reading r = {.p = p, .json = {.text = p->bytes->data + first->at, .size = first->size,
                                  .what = MANIFEST, .err = err}};
    cfx_buffer_init(&r.key, p->allocator);
    cfx_buffer_init(&r.text, p->allocator);
    const cfx_status status = read_fields(&r);
    cfx_buffer_free(&r.key);
    cfx_buffer_free(&r.text);
    return status;
}

/* ---- reading: contents --------------------------------------------------------------------- */

static cfx_status check_texts(const cfx_package *p, cfx_error *err)
{
    const cfxi_entry *all = p->archive.entries.data;
    for (size_t i = 0; i < p->archive.entries.size; i++)
        if (strcmp(entry_name(p, i), WEIGHTS) != 0 &&
            !cfxi_base_utf8_valid(p->bytes->data + all[i].at, all[i].size))
            return cfx_error_set(err, CFX_E_VALUE, "cfx file: '%.100s' is not UTF-8",
                                 entry_name(p, i));
    return CFX_OK;
}

static cfx_status read_weights(cfx_package *p, cfx_error *err)
{
    const cfxi_entry *e = cfxi_format_archive_find(&p->archive, WEIGHTS);
    if (!e && p->outside)
        return CFX_OK;
    if (!e)
        return cfx_error_set(err, CFX_E_VALUE, "cfx file: it has no entry " WEIGHTS);
    cfxi_bytes *part = cfxi_format_bytes_part(p->bytes, e->at, e->size, err);
    p->weights = part ? cfx_state_new(p->allocator, err) : NULL;
    cfx_error why = {0};
    cfx_status status = p->weights ? cfxi_format_safetensors_read(part, p->weights, &why)
                                   : CFX_E_NOMEM;
    if (p->weights && status != CFX_OK)
        cfx_error_set(err, status, WEIGHTS ": %.400s", why.message);
    cfxi_format_bytes_release(part);
    return status;
}

static cfx_status read_package(cfx_package *p, const cfx_package_options *options, cfx_error *err)
{
    p->opened = true;
    CFX_TRY(cfxi_format_archive_open(&p->archive, p->bytes, "cfx file",
                                     "store it uncompressed (zip -0)", err));
    CFX_TRY(read_names(p, err));
    CFX_TRY(read_manifest(p, err));
    CFX_TRY(check_texts(p, err));
    if (options->verify)
        CFX_TRY(cfx_package_verify(p, err));
    return read_weights(p, err);
}

/* Takes over `bytes`, which may be NULL. */
static cfx_package *package_of(cfxi_bytes *bytes, const cfx_package_options *options,
                               cfx_error *err)
{
    cfx_error why = {0};
    const cfx_allocator *allocator = cfxi_base_allocator(options->allocator);
    cfx_package *p = bytes ? cfxi_base_alloc(allocator, sizeof *p) : NULL;
    if (!p) {
        if (bytes)
            cfxi_base_nomem(err);
        cfxi_format_bytes_release(bytes);
        return NULL;
    }
    memset(p, 0, sizeof *p);
    p->allocator = allocator;
    p->bytes = bytes;
    cfx_buffer_init(&p->model, allocator);
    cfx_buffer_init(&p->producer, allocator);
    cfx_buffer_init(&p->names, allocator);
    if (read_package(p, options, &why) == CFX_OK)
        return p;
    if (err)
        *err = why;
    cfx_package_free(p);
    return NULL;
}

/* Puts the file's name before a message. */
static void name_file(cfx_error *err, const char *path)
{
    cfx_error why = *err;
    cfx_error_set(err, why.status, "%.150s: %.400s", path, why.message);
}

cfx_package *cfx_package_load(const char *path, const cfx_package_options *options, cfx_error *err)
{
    static const cfx_package_options plain = {0};
    cfx_error why = {0};
    options = options ? options : &plain;
    cfxi_bytes *bytes = options->copy ? cfxi_format_bytes_load(path, options->allocator, &why)
                                      : cfxi_format_bytes_map(path, options->allocator, &why);
    const bool opened = bytes != NULL;
    cfx_package *p = package_of(bytes, options, &why);
    if (!p && opened && why.status != CFX_E_NOMEM)
        name_file(&why, path);
    if (!p && err)
        *err = why;
    return p;
}

cfx_package *cfx_package_read(const void *data, size_t size, const cfx_package_options *options,
                              cfx_error *err)
{
    static const cfx_package_options plain = {0};
    options = options ? options : &plain;
    return package_of(cfxi_format_bytes_borrow(data, size, options->allocator, err), options, err);
}

void cfx_package_free(cfx_package *p)
{
    if (!p)
        return;
    cfx_state_free(p->weights);
    if (p->opened)
        cfxi_format_archive_close(&p->archive);
    cfx_buffer_free(&p->model);
    cfx_buffer_free(&p->producer);
    cfx_buffer_free(&p->names);
    cfxi_base_vec_free(&p->starts, sizeof(size_t), p->allocator);
    cfxi_base_vec_free(&p->listed, sizeof(listed), p->allocator);
    cfxi_format_bytes_release(p->bytes);
    cfxi_base_free(p->allocator, p, sizeof *p);
}

/* ---- asking -------------------------------------------------------------------------------- */

const char *cfx_package_model(const cfx_package *p) { return p->model.data; }
const char *cfx_package_producer(const cfx_package *p) { return p->producer.data; }
int cfx_package_format(const cfx_package *p) { return (int)p->format; }
const cfx_state *cfx_package_weights(const cfx_package *p) { return p->weights; }

const char *cfx_package_entry(const cfx_package *p, size_t i, uint64_t *size)
{
    if (i >= p->archive.entries.size)
        return NULL;
    if (size)
        *size = ((const cfxi_entry *)p->archive.entries.data)[i].size;
    return entry_name(p, i);
}

const char *cfx_package_text(const cfx_package *p, const char *name, size_t *size)
{
    const cfxi_entry *e = cfxi_format_archive_find(&p->archive, name);
    if (!e || strcmp(name, WEIGHTS) == 0)
        return NULL;
    *size = e->size;
    return p->bytes->data + e->at;
}

cfx_status cfx_package_verify(const cfx_package *p, cfx_error *err)
{
    const listed *all = p->listed.data;
    for (size_t i = 0; i < p->listed.size; i++) {
        char found[65];
        cfxi_sha256 h;
        const cfxi_entry *e = all[i].entry;
        CFX_TRY(cfxi_format_archive_check(&p->archive, e, err));
        cfxi_format_sha256_begin(&h);
        cfxi_format_sha256_more(&h, p->bytes->data + e->at, e->size);
        cfxi_format_sha256_end(&h, found);
        if (strcmp(found, all[i].sha256) != 0)
            return cfx_error_set(err, CFX_E_VALUE, "cfx file: '%.*s' has another hash than "
                                 MANIFEST " says", (int)e->name_size, e->name);
    }
    return CFX_OK;
}
