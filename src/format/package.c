/* package.c - reading .cfx files: a zip archive of texts and weights behind a manifest, and files
 * beside it (docs/format.md). */
#include "package_impl.h"

#define MANIFEST CFXI_PACKAGE_MANIFEST
#define WEIGHTS CFXI_PACKAGE_WEIGHTS

enum { MANIFEST_MOST = 64 << 20 };

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
    cfxi_vec files;    /* cfxi_weights_file */
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
        if (!cfxi_format_package_is_name(all[i].name, all[i].name_size))
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

static cfx_status read_hash(reading *r, char sha256[65])
{
    CFX_TRY(cfxi_format_json_string(&r->json, &r->text));
    if (r->text.size != 64)
        return cfxi_format_json_complain(&r->json, CFX_E_VALUE, "a hash has 64 digits");
    memcpy(sha256, r->text.data, 65);
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
            CFX_TRY(read_hash(r, one.sha256));
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

/* {"file": ..., "size": ..., "sha256": ...} */
static cfx_status read_file(reading *r)
{
    cfxi_weights_file one = {.size = 0};
    int64_t size = -1;
    for (bool first = cfxi_format_json_open(&r->json, '{');
         cfxi_format_json_more(&r->json, '}', &first);) {
        CFX_TRY(cfxi_format_json_key(&r->json, &r->key));
        const bool named = strcmp(r->key.data, "file") == 0;
        if (strcmp(r->key.data, "size") == 0)
            CFX_TRY(cfxi_format_json_size(&r->json, &size));
        else if (strcmp(r->key.data, "sha256") == 0)
            CFX_TRY(read_hash(r, one.sha256));
        else
            CFX_TRY(named ? cfxi_format_json_string(&r->json, &r->text)
                          : cfxi_format_json_skip(&r->json, &r->text));
        if (named && !cfxi_format_package_is_file(r->text.data, r->text.size))
            return cfxi_format_json_complain(&r->json, CFX_E_VALUE,
                                             "a file of weights has a name that is not allowed");
        if (named)
            memcpy(one.name, r->text.data, r->text.size + 1);
    }
    CFX_TRY(r->json.status);
    if (size < 0 || !one.name[0] || !one.sha256[0])
        return cfxi_format_json_complain(&r->json, CFX_E_VALUE, "a file of weights lacks one of "
                                         "file, size and sha256");
    one.size = (uint64_t)size;
    if (!cfxi_base_vec_reserve(&r->p->files, 1, sizeof one, r->p->allocator))
        return r->json.status = cfxi_base_nomem(r->json.err);
    ((cfxi_weights_file *)r->p->files.data)[r->p->files.size++] = one;
    return CFX_OK;
}

static cfx_status read_files(reading *r)
{
    for (bool first = cfxi_format_json_open(&r->json, '[');
         cfxi_format_json_more(&r->json, ']', &first);)
        CFX_TRY(read_file(r));
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
    if (strcmp(key, "files") == 0)
        return read_files(r);
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

/* ---- reading: weights in other files ------------------------------------------------------- */

const cfxi_weights_file *cfxi_format_package_files(const cfx_package *p, size_t *n)
{
    *n = p->files.size;
    return p->files.data;
}

bool cfxi_format_package_inside(const cfx_package *p, cfxi_weights_file *file)
{
    const listed *all = p->listed.data;
    const cfxi_entry *e = cfxi_format_archive_find(&p->archive, WEIGHTS);
    for (size_t i = 0; e && p->files.size == 0 && i < p->listed.size; i++)
        if (all[i].entry == e) {
            file->size = e->size;
            memcpy(file->sha256, all[i].sha256, sizeof file->sha256);
            return true;
        }
    return false;
}

static cfx_package *package_of(cfxi_bytes *bytes, const cfx_package_options *options,
                               cfx_error *err);

/* The weights of another .cfx file; it keeps them. */
static cfx_status read_other(cfxi_bytes *b, const cfx_package_options *options,
                             cfxi_weights_file *file, cfx_state **found, cfx_error *err)
{
    cfxi_weights_file there = {.size = 0};
    cfx_package_options plain = {.allocator = options->allocator, .skip_files = true};
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    cfx_package *p = package_of(b, &plain, err);
    if (!p)
        return err->status;
    cfx_status status = CFX_OK;
    const cfxi_entry *e = cfxi_format_archive_find(&p->archive, WEIGHTS);
    if (!cfxi_format_package_inside(p, &there) || there.size != file->size ||
        strcmp(there.sha256, file->sha256) != 0)
        status = cfx_error_set(err, CFX_E_VALUE, "its weights are not those that this model was "
                               "saved with");
    else if (!(file->bytes = cfxi_format_bytes_part(b, e->at, e->size, err)))
        status = CFX_E_NOMEM;
    else {
        *found = p->weights;
        p->weights = NULL;
    }
    cfx_package_free(p);
    return status;
}

static cfx_status read_weights_file(cfxi_bytes *b, const cfx_package_options *options,
                                    cfxi_weights_file *file, cfx_state **found, cfx_error *err)
{
    if (cfxi_format_cfx_is(b->data, b->size))
        return read_other(b, options, file, found, err);
    if (b->size != file->size)
        return cfx_error_set(err, CFX_E_VALUE, "it has %zu bytes, and had %llu when this model was "
                             "saved", b->size, (unsigned long long)file->size);
    *found = cfx_state_new(b->allocator, err);
    CFX_TRY(*found ? cfxi_format_safetensors_read(b, *found, err) : CFX_E_NOMEM);
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    file->bytes = b;
    return CFX_OK;
}

/* Adds what the package does not have inside; what two files have is an error. */
static cfx_status merge(const cfx_package *p, cfx_state *all, const cfx_state *found,
                        cfx_error *err)
{
    for (size_t i = 0; i < cfx_state_size(found); i++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(found, i, &t);
        if (p->weights && cfx_state_get(p->weights, name))
            continue;
        if (cfx_state_get(all, name))
            return cfx_error_set(err, CFX_E_VALUE, "another file has '%.100s', too", name);
        CFX_TRY(cfx_state_set(all, name, t, err));
    }
    return CFX_OK;
}

static cfxi_bytes *open_file(const char *path, const cfx_package_options *options, cfx_error *err)
{
    cfxi_bytes *b = options->copy ? cfxi_format_bytes_load(path, options->allocator, err)
                                  : cfxi_format_bytes_map(path, options->allocator, err);
    return options->read_only ? cfxi_format_bytes_protect(b) : b;
}

static cfx_status add_file(cfx_package *p, const char *path, const cfx_package_options *options,
                           cfxi_weights_file *file, cfx_state *all, cfx_error *err)
{
    cfx_state *found = NULL;
    cfxi_bytes *b = open_file(path, options, err);
    if (!b)
        return err->status;
    cfx_status status = read_weights_file(b, options, file, &found, err);
    if (status == CFX_OK)
        status = merge(p, all, found, err);
    if (status != CFX_OK)
        cfxi_format_name_file(err, path);
    cfx_state_free(found);
    cfxi_format_bytes_release(b);
    return status;
}

static cfx_status add_files(cfx_package *p, const char *beside, const cfx_package_options *options,
                            cfx_error *err)
{
    cfxi_weights_file *files = p->files.data;
    cfx_buffer path;
    if (p->files.size == 0 || options->skip_files)
        return CFX_OK;
    if (!beside)
        return cfx_error_set(err, CFX_E_VALUE, "cfx file: its weights are in '%.100s' beside it; "
                             "load it from its path", files[0].name);
    cfx_state *all = cfx_state_new(p->allocator, err);
    cfx_status status = all ? CFX_OK : CFX_E_NOMEM;
    cfx_buffer_init(&path, p->allocator);
    for (size_t i = 0; i < p->files.size && status == CFX_OK; i++) {
        status = cfxi_format_package_beside(beside, files[i].name, &path, err);
        if (status == CFX_OK)
            status = add_file(p, path.data, options, &files[i], all, err);
    }
    for (size_t i = 0; p->weights && status == CFX_OK && i < cfx_state_size(p->weights); i++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(p->weights, i, &t);
        status = cfx_state_set(all, name, t, err);
    }
    cfx_buffer_free(&path);
    cfx_state_free(status == CFX_OK ? p->weights : all);
    if (status == CFX_OK)
        p->weights = all;
    return status;
}

/* ---- reading: all -------------------------------------------------------------------------- */

static cfx_status read_package(cfx_package *p, cfx_error *err)
{
    p->opened = true;
    CFX_TRY(cfxi_format_archive_open(&p->archive, p->bytes, "cfx file",
                                     "store it uncompressed (zip -0)", err));
    CFX_TRY(read_names(p, err));
    CFX_TRY(read_manifest(p, err));
    CFX_TRY(check_texts(p, err));
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
    if (read_package(p, &why) == CFX_OK)
        return p;
    if (err)
        *err = why;
    cfx_package_free(p);
    return NULL;
}

/* The rest of reading: files beside, hashes. `path` is NULL for a package that has none. Takes over
 * `bytes`, which may be NULL with *why set, and moves *why to *err. */
static cfx_package *open_all(cfxi_bytes *bytes, const char *path,
                             const cfx_package_options *options, cfx_error *why, cfx_error *err)
{
    const bool opened = bytes != NULL;
    cfx_package *p = package_of(bytes, options, why);
    if (!p && opened && path)
        cfxi_format_name_file(why, path);
    if (p && (add_files(p, path, options, why) != CFX_OK ||
              (options->verify && cfx_package_verify(p, why) != CFX_OK))) {
        cfx_package_free(p);
        p = NULL;
    }
    if (!p && err)
        *err = *why;
    return p;
}

static const cfx_package_options plain_options = {0};

cfx_package *cfx_package_load(const char *path, const cfx_package_options *options, cfx_error *err)
{
    cfx_error why = {0};
    options = options ? options : &plain_options;
    return open_all(open_file(path, options, &why), path, options, &why, err);
}

cfx_package *cfx_package_load_fd(int file, const cfx_package_options *options, cfx_error *err)
{
    cfx_error why = {0};
    options = options ? options : &plain_options;
    cfxi_bytes *b = cfxi_format_bytes_of_fd(file, options->copy, options->allocator, &why);
    return open_all(options->read_only ? cfxi_format_bytes_protect(b) : b, NULL, options, &why,
                    err);
}

cfx_package *cfx_package_read(const void *data, size_t size, const cfx_package_options *options,
                              cfx_error *err)
{
    cfx_error why = {0};
    options = options ? options : &plain_options;
    return open_all(cfxi_format_bytes_borrow(data, size, options->allocator, &why), NULL, options,
                    &why, err);
}

cfx_package *cfx_package_borrow(void *data, size_t size, void (*release)(void *ctx), void *ctx,
                                const cfx_package_options *options, cfx_error *err)
{
    cfx_error why = {0};
    options = options ? options : &plain_options;
    cfxi_bytes *b = cfxi_format_bytes_borrow(data, size, options->allocator, &why);
    if (!b && release)
        release(ctx);
    if (b) {
        b->mapped = true;
        b->foreign = true;
        b->release = release;
        b->release_ctx = ctx;
    }
    return open_all(b, NULL, options, &why, err);
}

/* The same names and tensors, retained. */
static cfx_state *copy_of_state(const cfx_state *from, const cfx_allocator *allocator,
                                cfx_error *err)
{
    cfx_state *made = cfx_state_new(allocator, err);
    for (size_t i = 0; made && i < cfx_state_size(from); i++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(from, i, &t);
        if (cfx_state_set(made, name, t, err) != CFX_OK) {
            cfx_state_free(made);
            return NULL;
        }
    }
    return made;
}

/* A file in memory whose weights are kept elsewhere, and those weights. */
cfx_package *cfx_package_new(const cfx_package_contents *contents,
                             const cfx_package_options *options, cfx_error *err)
{
    cfx_package_contents texts = *contents;
    cfx_buffer file;
    options = options ? options : &plain_options;
    texts.weights = NULL;
    texts.weights_file = NULL;
    texts.shard_size = 0;
    texts.progress = NULL;
    cfx_buffer_init(&file, options->allocator);
    cfx_package *p = NULL;
    if (cfx_package_write(&texts, cfx_buffer_sink(&file), err) == CFX_OK)
        p = package_of(cfxi_format_bytes_copy(cfxi_format_bytes_borrow(file.data, file.size,
                                                                       options->allocator, err),
                                              options->allocator, err), options, err);
    cfx_buffer_free(&file);
    if (p && contents->weights) {
        p->weights = copy_of_state(contents->weights, p->allocator, err);
        p->outside = p->weights == NULL;
        if (!p->weights) {
            cfx_package_free(p);
            p = NULL;
        }
    }
    return p;
}

void cfx_package_free(cfx_package *p)
{
    if (!p)
        return;
    cfx_state_free(p->weights);
    for (size_t i = 0; i < p->files.size; i++)
        cfxi_format_bytes_release(((cfxi_weights_file *)p->files.data)[i].bytes);
    cfxi_base_vec_free(&p->files, sizeof(cfxi_weights_file), p->allocator);
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

const cfx_allocator *cfxi_format_package_allocator(const cfx_package *p) { return p->allocator; }
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

static void hash_of(const char *data, size_t size, char out[65])
{
    cfxi_sha256 h;
    cfxi_format_sha256_begin(&h);
    cfxi_format_sha256_more(&h, data, size);
    cfxi_format_sha256_end(&h, out);
}

cfx_status cfx_package_verify(const cfx_package *p, cfx_error *err)
{
    const listed *all = p->listed.data;
    const cfxi_weights_file *files = p->files.data;
    char found[65];
    for (size_t i = 0; i < p->listed.size; i++) {
        const cfxi_entry *e = all[i].entry;
        CFX_TRY(cfxi_format_archive_check(&p->archive, e, err));
        hash_of(p->bytes->data + e->at, e->size, found);
        if (strcmp(found, all[i].sha256) != 0)
            return cfx_error_set(err, CFX_E_VALUE, "cfx file: '%.*s' has another hash than "
                                 MANIFEST " says", (int)e->name_size, e->name);
    }
    for (size_t i = 0; i < p->files.size; i++) {
        if (!files[i].bytes)
            continue;  /* it was not read */
        hash_of(files[i].bytes->data, files[i].bytes->size, found);
        if (strcmp(found, files[i].sha256) != 0)
            return cfx_error_set(err, CFX_E_VALUE, "cfx file: '%.100s' has another hash than "
                                 MANIFEST " says", files[i].name);
    }
    return CFX_OK;
}
