/* package_impl.h - what writing and reading .cfx files share. */
#ifndef CFXI_PACKAGE_IMPL_H
#define CFXI_PACKAGE_IMPL_H

#include "format_impl.h"

#include <cfx/package.h>

#define CFXI_PACKAGE_MANIFEST "cfx.json"
#define CFXI_PACKAGE_WEIGHTS "weights.safetensors"

/* A relative path that cannot lead out of a folder, on any system. (package_write.c) */
bool cfxi_format_package_is_name(const char *name, size_t size);
/* The same without folders: the name of a file beside another. */
bool cfxi_format_package_is_file(const char *name, size_t size);
/* The path of a file beside `path`. */
cfx_status cfxi_format_package_beside(const char *path, const char *name, cfx_buffer *out,
                                      cfx_error *err);

/* A file beside a package that has weights of it. Of a .cfx file, the size and the hash are those
 * of its weights. */
typedef struct cfxi_weights_file {
    char name[256];
    uint64_t size;
    char sha256[65];
    bool made;          /* by the save that is going on: it was not there before */
    cfxi_bytes *bytes;  /* of the weights, once they are read: retained; or NULL */
} cfxi_weights_file;

/* The files that a package names; borrowed. (package.c) */
const cfxi_weights_file *cfxi_format_package_files(const cfx_package *p, size_t *n);
/* That its tensors and texts were made with. (package.c) */
const cfx_allocator *cfxi_format_package_allocator(const cfx_package *p);
/* What the manifest of `p` says of its own weights; false if they are not in it, or not all. */
bool cfxi_format_package_inside(const cfx_package *p, cfxi_weights_file *file);

#endif
