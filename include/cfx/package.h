/* package.h - .cfx files: a model in one file (docs/format.md).
 *
 *     cfx_package *p = cfx_package_load("model.cfx", NULL, &err);
 *     const char *ir = cfx_package_text(p, "graph.ir", &size);
 *     const cfx_state *weights = cfx_package_weights(p);
 *     cfx_package_free(p);
 *
 * A package has texts (the graph, the tree of modules, the structure of arguments and results) and
 * weights. Loading maps the file: weights are read when they are used, and shared by processes that
 * load the same file. Nothing in a file is trusted, and nothing in it is executed.
 */
#ifndef CFX_PACKAGE_H
#define CFX_PACKAGE_H

#include <cfx/state.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The newest version of the format: this library reads it and all before it, and writes the oldest
 * that can hold the contents. */
enum { CFX_PACKAGE_FORMAT = 2 };

/* ---- writing ------------------------------------------------------------------------------- */

/* A text of a package: "graph.ir", "graphs/1/graph.ir". Borrowed. */
typedef struct cfx_package_part {
    const char *name;
    const char *data;
    size_t size;
} cfx_package_part;

/* What a package is made of. All of it is borrowed. */
typedef struct cfx_package_contents {
    const char *model;              /* the name of the model's class */
    const cfx_package_part *parts;  /* texts, in the order in which they are written */
    size_t num_parts;
    const cfx_state *weights;       /* NULL: they are kept elsewhere */
    /* The name of a .safetensors or .cfx file in the same folder that has weights, too; or NULL.
     * What `weights` has goes before what it has. It must not change any more. */
    const char *weights_file;
    /* Above 0: weights go to files beside `path`, each of at most so many bytes of elements unless
     * one tensor has more, and are not in the package itself. */
    uint64_t shard_size;
    /* Called now and then while weights are hashed and written, with the bytes that are done and
     * all there are; false stops with CFX_E_INTERRUPTED. May be NULL. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t all);
    void *progress_ctx;
} cfx_package_contents;

/* Writes a package. The same contents give the same bytes. The file is written under another name
 * beside `path` and then renamed: whatever happens, there is the old file or the new one. Weights
 * are not copied in memory; changing them meanwhile fails with CFX_E_VALUE. Names of parts are
 * relative paths ('/', no "..", at most 255 bytes of UTF-8): CFX_E_VALUE for others, or for two
 * that are the same. CFX_E_IO with the reason if the file cannot be written.
 *
 * Shards have a part of their hash in their names, and the package is renamed last: the old files
 * stay until the new ones are complete, and are removed then. */
CFX_API cfx_status cfx_package_save(const char *path, const cfx_package_contents *contents,
                                    cfx_error *err);
/* The same to a sink; CFX_E_VALUE if weights are to be in other files. */
CFX_API cfx_status cfx_package_write(const cfx_package_contents *contents, cfx_sink out,
                                     cfx_error *err);

/* ---- reading ------------------------------------------------------------------------------- */

typedef struct cfx_package cfx_package;

/* All zero: map the file, check its structure alone. */
typedef struct cfx_package_options {
    const cfx_allocator *allocator;  /* must outlive the package and its tensors */
    bool copy;    /* read the file into memory instead of mapping it: it may be truncated then */
    bool verify;  /* compare hashes, which reads the whole file */
    bool skip_files;  /* do not open the files beside it: weights are what is inside, or NULL */
    bool read_only;   /* of a mapped file: nobody may write to weights, so that those which a plan
                         has packed leave memory again. Executables load their files like that */
} cfx_package_options;

/* Loads a package from a path. NULL with *err set: CFX_E_IO if it cannot be read, CFX_E_VALUE with
 * the byte if it is damaged or is no package, CFX_E_UNSUPPORTED if a newer version of cfx is
 * needed. `options` may be NULL. */
CFX_API cfx_package *cfx_package_load(const char *path, const cfx_package_options *options,
                                      cfx_error *err);
/* The same from an open file, which stays open, and from its beginning. What cannot be mapped, such
 * as a pipe, is read. Files beside it cannot be found: CFX_E_VALUE if it needs some. */
CFX_API cfx_package *cfx_package_load_fd(int file, const cfx_package_options *options,
                                         cfx_error *err);
/* The same from memory that tensors point into where their alignment allows it, and may be written
 * to through them. `release` (may be NULL) is called with `ctx` once, when the package and all
 * tensors are gone, or at once if this fails. */
CFX_API cfx_package *cfx_package_borrow(void *data, size_t size, void (*release)(void *ctx),
                                        void *ctx, const cfx_package_options *options,
                                        cfx_error *err);
/* The same from bytes, which must outlive the package; tensors are copies of them. */
CFX_API cfx_package *cfx_package_read(const void *data, size_t size,
                                      const cfx_package_options *options, cfx_error *err);
/* The same from contents that are in memory, without writing weights: texts are copied, tensors
 * retained. Fails as cfx_package_write does. `progress` and files of weights are not looked at. */
CFX_API cfx_package *cfx_package_new(const cfx_package_contents *contents,
                                     const cfx_package_options *options, cfx_error *err);
/* Tensors that were retained stay valid, and keep the file mapped. NULL is allowed. */
CFX_API void cfx_package_free(cfx_package *p);

/* The name of the model's class, and who wrote the file ("cfx 0.1.0"): borrowed. */
CFX_API const char *cfx_package_model(const cfx_package *p);
CFX_API const char *cfx_package_producer(const cfx_package *p);
CFX_API int cfx_package_format(const cfx_package *p);

/* The i-th entry of the file, as the archive has them: its name, borrowed, and its size (may be
 * NULL). NULL past the last. */
CFX_API const char *cfx_package_entry(const cfx_package *p, size_t i, uint64_t *size);
/* A text by its name: borrowed, not terminated, valid UTF-8. NULL if there is none. */
CFX_API const char *cfx_package_text(const cfx_package *p, const char *name, size_t *size);
/* The weights by name: borrowed. NULL if they are kept elsewhere. */
CFX_API const cfx_state *cfx_package_weights(const cfx_package *p);

/* Compares sizes, checksums and hashes of all entries: CFX_E_VALUE with the first that differs. */
CFX_API cfx_status cfx_package_verify(const cfx_package *p, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
