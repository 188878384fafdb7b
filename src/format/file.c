/* file.c - files as bytes: mapped for reading, replaced at once when written. */
#include "format_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* "cannot open 'x.npy': No such file or directory" */
static cfx_status io_error(cfx_error *err, const char *doing, const char *path)
{
    char why[100] = "";
    if (strerror_r(errno, why, sizeof why) != 0)
        why[0] = '\0';
    return cfx_error_set(err, CFX_E_IO, "cannot %s '%.200s': %s", doing, path, why);
}

void cfxi_format_name_file(cfx_error *err, const char *path)
{
    const cfx_error why = *err;
    if (why.status != CFX_E_NOMEM)
        cfx_error_set(err, why.status, "%.150s: %.400s", path, why.message);
}

/* ---- reading ------------------------------------------------------------------------------- */

cfxi_bytes *cfxi_format_bytes_borrow(const void *data, size_t size, const cfx_allocator *allocator,
                                     cfx_error *err)
{
    allocator = cfxi_base_allocator(allocator);
    cfxi_bytes *b = cfxi_base_alloc(allocator, sizeof *b);
    if (!b) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *b = (cfxi_bytes){.data = (char *)(uintptr_t)data, .size = size, .allocator = allocator};
    atomic_init(&b->refs, 1);
    return b;
}

void cfxi_format_bytes_release(cfxi_bytes *b)
{
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) > 1)
        return;
    if (b->whole)
        cfxi_format_bytes_release(b->whole);
    else if (b->room)
        cfxi_base_free(b->allocator, b->data - b->shift, b->room);
    else if (b->foreign && b->release)
        b->release(b->release_ctx);
    else if (b->mapped && !b->foreign && b->data)
        munmap(b->data, b->size);
    cfxi_base_free(b->allocator, b, sizeof *b);
}

static void release_bytes(void *ctx) { cfxi_format_bytes_release(ctx); }

/* Pages that are written to become ours alone. */
static cfx_status map(int file, const char *path, cfxi_bytes *b, cfx_error *err)
{
    struct stat st;
    if (fstat(file, &st) != 0)
        return io_error(err, "read", path);
    if (!S_ISREG(st.st_mode))
        return cfx_error_set(err, CFX_E_IO, "cannot read '%.200s': it is not a regular file", path);
    b->size = (size_t)st.st_size;
    if (b->size == 0)
        return CFX_OK;
    b->data = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (b->data == MAP_FAILED)
        return io_error(err, "map", path);
    b->mapped = true;
    return CFX_OK;
}

cfxi_bytes *cfxi_format_bytes_map(const char *path, const cfx_allocator *allocator, cfx_error *err)
{
    if (cfxi_base_expect(path, "path", err) != CFX_OK)
        return NULL;
    cfxi_bytes *b = cfxi_format_bytes_borrow(NULL, 0, allocator, err);
    if (!b)
        return NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    cfx_status status = file < 0 ? io_error(err, "open", path) : map(file, path, b, err);
    if (file >= 0)
        close(file);
    if (status == CFX_OK)
        return b;
    cfxi_format_bytes_release(b);
    return NULL;
}

cfxi_bytes *cfxi_format_bytes_part(cfxi_bytes *b, size_t at, size_t size, cfx_error *err)
{
    cfxi_bytes *part = cfxi_format_bytes_borrow(b->data + at, size, b->allocator, err);
    if (!part)
        return NULL;
    part->mapped = b->mapped;
    part->read_only = b->read_only;
    part->whole = b;
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return part;
}

cfxi_bytes *cfxi_format_bytes_copy(cfxi_bytes *from, const cfx_allocator *allocator,
                                   cfx_error *err)
{
    cfxi_bytes *b = from ? cfxi_format_bytes_borrow(NULL, 0, allocator, err) : NULL;
    const size_t room = from ? from->size + CFXI_ALIGN : 0;
    char *memory = b ? cfxi_base_alloc(b->allocator, room) : NULL;
    if (memory) {
        const size_t shift = (CFXI_ALIGN - (uintptr_t)memory % CFXI_ALIGN) % CFXI_ALIGN;
        if (from->size)
            memcpy(memory + shift, from->data, from->size);
        *b = (cfxi_bytes){.mapped = true, .data = memory + shift, .size = from->size, .room = room,
                          .shift = shift, .allocator = b->allocator};
        atomic_init(&b->refs, 1);
    } else if (b) {
        cfxi_base_nomem(err);
        cfxi_format_bytes_release(b);
        b = NULL;
    }
    cfxi_format_bytes_release(from);
    return b;
}

cfxi_bytes *cfxi_format_bytes_load(const char *path, const cfx_allocator *allocator, cfx_error *err)
{
    return cfxi_format_bytes_copy(cfxi_format_bytes_map(path, allocator, err), allocator, err);
}

/* A pipe: all that comes out of it. */
static cfx_status read_pipe(int file, cfx_buffer *text, cfx_error *err)
{
    char piece[1 << 14];
    for (;;) {
        const ssize_t n = read(file, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return io_error(err, "read", "a descriptor");
        if (n == 0)
            return CFX_OK;
        if (cfx_buffer_append(text, piece, (size_t)n) != CFX_OK)
            return cfxi_base_nomem(err);
    }
}

static cfxi_bytes *bytes_of_pipe(int file, const cfx_allocator *allocator, cfx_error *err)
{
    cfx_buffer text;
    cfxi_bytes *b = NULL;
    cfx_buffer_init(&text, allocator);
    if (read_pipe(file, &text, err) == CFX_OK)
        b = cfxi_format_bytes_copy(cfxi_format_bytes_borrow(text.data, text.size, allocator, err),
                                   allocator, err);
    cfx_buffer_free(&text);
    return b;
}

cfxi_bytes *cfxi_format_bytes_of_fd(int file, bool copy, const cfx_allocator *allocator,
                                    cfx_error *err)
{
    struct stat st;
    if (fstat(file, &st) == 0 && !S_ISREG(st.st_mode))
        return bytes_of_pipe(file, allocator, err);
    cfxi_bytes *b = cfxi_format_bytes_borrow(NULL, 0, allocator, err);
    if (b && map(file, "a descriptor", b, err) != CFX_OK) {
        cfxi_format_bytes_release(b);
        return NULL;
    }
    return copy ? cfxi_format_bytes_copy(b, allocator, err) : b;
}

cfxi_bytes *cfxi_format_bytes_protect(cfxi_bytes *b)
{
    const bool is_file = b && b->mapped && b->data && !b->whole && !b->room && !b->foreign;
    if (is_file && mprotect(b->data, b->size, PROT_READ) == 0)
        b->read_only = true;
    return b;
}

/* ---- tensors ------------------------------------------------------------------------------- */

bool cfxi_format_layout_bytes(const cfxi_layout *l, size_t *bytes)
{
    *bytes = cfx_dtype_size(l->dtype);
    size_t full = *bytes;  /* as if no size were 0: nothing may overflow on the way */
    for (size_t i = 0; i < l->ndim; i++) {
        if (l->sizes[i] && __builtin_mul_overflow(full, (size_t)l->sizes[i], &full))
            return false;
        *bytes *= (size_t)l->sizes[i];
    }
    return full <= INT64_MAX;
}

static void turn(char *data, size_t size, size_t unit)
{
    for (; size >= unit; data += unit, size -= unit)
        for (size_t i = 0; i < unit / 2; i++) {
            char c = data[i];
            data[i] = data[unit - 1 - i];
            data[unit - 1 - i] = c;
        }
}

static cfx_tensor *copy_of(const char *from, const cfxi_layout *l, const int64_t *strides,
                           const cfx_allocator *allocator, cfx_error *err)
{
    size_t bytes;
    cfx_tensor *t = cfx_tensor_new_strided(l->dtype, l->sizes, strides, l->ndim, allocator, err);
    if (!t || !cfxi_format_layout_bytes(l, &bytes) || bytes == 0)
        return t;
    memcpy(t->data, from, bytes);
    if (l->swap > 1)
        turn(t->data, bytes, l->swap);
    return t;
}

/* NumPy and PyTorch read any byte that is not 0 as true; here only 1 is. */
static void clean_bools(cfx_tensor *t)
{
    for (int64_t i = 0, n = cfxi_tensor_numel(t); i < n; i++)
        t->data[i] = t->data[i] != 0;
}

static bool has_odd_bools(const char *data, const cfxi_layout *l)
{
    size_t bytes;
    if (l->dtype != CFX_DTYPE_BOOL || !cfxi_format_layout_bytes(l, &bytes))
        return false;
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)data[i] > 1)
            return true;
    return false;
}

cfx_tensor *cfxi_format_bytes_tensor(cfxi_bytes *b, size_t at, const cfxi_layout *l, cfx_error *err)
{
    int64_t strides[CFX_MAX_DIMS];
    uint8_t order[CFX_MAX_DIMS];
    size_t item = cfx_dtype_size(l->dtype);
    size_t align = cfx_dtype_is_complex(l->dtype) ? item / 2 : item;
    const char *data = b->data ? b->data + at : NULL;
    for (size_t i = 0; i < l->ndim; i++)
        order[i] = (uint8_t)(l->fortran ? l->ndim - 1 - i : i);
    cfxi_tensor_ordered_strides(l->sizes, l->ndim, item, order, strides);
    const bool odd = has_odd_bools(data, l);
    const bool askew = (uintptr_t)data % align != 0;
    size_t bytes = 0;
    cfxi_format_layout_bytes(l, &bytes);
    if (!b->mapped || l->swap > 1 || (askew && bytes < CFXI_FETCH_LARGE) || odd) {
        cfx_tensor *t = copy_of(data, l, strides, b->allocator, err);
        if (t && odd)
            clean_bools(t);
        return t;
    }
    cfx_tensor *t = askew ? cfxi_tensor_later(l->dtype, l->sizes, strides, l->ndim, b->data + at,
                                              cfxi_format_fetch, release_bytes, b, b->allocator,
                                              err)
                          : cfx_tensor_from_memory(l->dtype, l->sizes, strides, l->ndim,
                                                   b->data + at, b->read_only, release_bytes, b,
                                                   b->allocator, err);
    if (t && b->read_only && !askew)
        t->storage->give_back = cfxi_format_give_back;
    if (t)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return t;
}

/* ---- writing ------------------------------------------------------------------------------- */

void cfxi_format_out_elements(cfxi_out *out, const cfx_tensor *t)
{
    int64_t at[CFX_MAX_DIMS] = {0};
    size_t item = cfxi_tensor_itemsize(t);
    const char *from = cfxi_tensor_bytes(t);
    int64_t n = cfxi_tensor_numel(t);
    if (n > 0 && cfx_tensor_is_contiguous(t)) {
        cfxi_base_out_write(out, from, (size_t)n * item);
        return;
    }
    for (; n > 0; n--) {
        cfxi_base_out_write(out, from, item);
        for (size_t d = t->ndim; d-- > 0;) {
            from += t->stride[d];
            if (++at[d] < t->size[d])
                break;
            from -= t->stride[d] * t->size[d];
            at[d] = 0;
        }
    }
}

typedef struct writer {
    int file;
    const char *path;
    cfx_error why;  /* a write failed: who wrote only says that the sink did */
} writer;

static cfx_status write_file(void *ctx, const char *data, size_t size)
{
    writer *w = ctx;
    while (size > 0) {
        ssize_t n = write(w->file, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return io_error(&w->why, "write", w->path);
        data += n;
        size -= (size_t)n;
    }
    return CFX_OK;
}

static cfx_status write_with(writer *w, cfxi_write_fn *write_all, const void *ctx, cfx_error *err)
{
    const cfx_status status = write_all(ctx, (cfx_sink){write_file, w}, err);
    if (w->why.status != CFX_OK && err)
        *err = w->why;
    return status;
}

/* A file of a new name beside `path`; its name goes to *name. */
static cfx_status create_beside(const char *path, cfx_buffer *name, int *file, cfx_error *err)
{
    char suffix[60];
    for (unsigned i = 0; i < 1000; i++) {
        int size = snprintf(suffix, sizeof suffix, ".%ld-%u.new", (long)getpid(), i);
        name->size = 0;
        if (cfx_buffer_append(name, path, strlen(path)) != CFX_OK ||
            cfx_buffer_append(name, suffix, (size_t)size) != CFX_OK)
            return cfxi_base_nomem(err);
        *file = open(name->data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*file >= 0)
            return CFX_OK;
        if (errno != EEXIST)
            break;
    }
    return io_error(err, "write", path);
}

/* The new name is on disk only when its folder is; some file systems cannot be asked for that. */
static void sync_folder(const char *path, cfx_buffer *name)
{
    const char *slash = strrchr(path, '/');
    size_t size = slash ? (size_t)(slash - path) + 1 : 1;
    name->size = 0;
    if (cfx_buffer_append(name, slash ? path : ".", size) != CFX_OK)
        return;
    int folder = open(name->data, O_RDONLY | O_CLOEXEC);
    if (folder < 0)
        return;
    fsync(folder);
    close(folder);
}

/* Devices and pipes (/dev/stdout) are not to be replaced, but written to as they are. */
static cfx_status write_through(const char *path, cfxi_write_fn *write_all, const void *ctx,
                                cfx_error *err)
{
    writer w = {.file = open(path, O_WRONLY | O_CLOEXEC), .path = path};
    if (w.file < 0)
        return io_error(err, "write", path);
    cfx_status status = write_with(&w, write_all, ctx, err);
    if (close(w.file) != 0 && status == CFX_OK)
        status = io_error(err, "write", path);
    return status;
}

cfx_status cfxi_format_file_replace(const char *path, uint64_t size, cfxi_write_fn *write_all,
                                    const void *ctx, cfx_error *err)
{
    cfx_buffer name;
    struct stat old;
    const bool exists = stat(path, &old) == 0;
    writer w = {.file = -1, .path = path};
    if (exists && !S_ISREG(old.st_mode))
        return write_through(path, write_all, ctx, err);
    cfx_buffer_init(&name, NULL);
    cfx_status status = create_beside(path, &name, &w.file, err);
    if (status == CFX_OK) {
        if (exists && fchmod(w.file, old.st_mode & 07777) != 0)
            status = io_error(err, "write", path);
        if (status == CFX_OK && !cfxi_format_reserve(w.file, size))
            status = io_error(err, "write", path);
        if (status == CFX_OK)
            status = write_with(&w, write_all, ctx, err);
        if (status == CFX_OK && fsync(w.file) != 0)
            status = io_error(err, "write", path);
        if (close(w.file) != 0 && status == CFX_OK)
            status = io_error(err, "write", path);
        if (status == CFX_OK && rename(name.data, path) != 0)
            status = io_error(err, "replace", path);
        if (status != CFX_OK)
            unlink(name.data);
        else
            sync_folder(path, &name);
    }
    cfx_buffer_free(&name);
    return status;
}
