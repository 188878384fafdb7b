/* base.h - status codes, errors, allocators and output. Every other header includes this one. */
#ifndef CFX_BASE_H
#define CFX_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFX_VERSION_MAJOR 0
#define CFX_VERSION_MINOR 1
#define CFX_VERSION_PATCH 0

#if defined(__GNUC__)
#define CFX_API __attribute__((visibility("default")))
#define CFX_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CFX_API
#define CFX_PRINTF(text, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status and error ---------------------------------------------------------------------- */

/* The result of a call that can fail. CFX_OK is 0; status.def lists the rest. */
typedef enum cfx_status {
#define CFX_STATUS(id, text, exception) CFX_E_##id,
#include <cfx/status.def>
#undef CFX_STATUS
    CFX_STATUS_COUNT
} cfx_status;
#define CFX_OK CFX_E_OK

/* Why a call failed. The caller owns it, usually on the stack. It holds no heap memory, so
 * reporting an error cannot fail. Every function that takes a `cfx_error *err` accepts NULL, and
 * writes to it only on failure. Initialise it with `cfx_error err = {0};`: a chain of calls that
 * share it then keeps the first error. */
typedef struct cfx_error {
    cfx_status status;
    uint32_t line;      /* line of the text being parsed, from 1; 0 if there is none */
    uint32_t column;    /* column in that line, in bytes, from 1; 0 if there is none */
    char message[500];  /* what, where, what to do; NUL-terminated UTF-8 */
} cfx_error;

/* The constant's name without its prefix ("NOMEM"), and its meaning. Any int is accepted; a number
 * that is not a status gives "unknown status". */
CFX_API const char *cfx_status_name(cfx_status status);
CFX_API const char *cfx_status_text(cfx_status status);

/* Fills *err (if not NULL) with a formatted message, cut to fit at a character boundary, and
 * returns `status`. */
CFX_API cfx_status cfx_error_set(cfx_error *err, cfx_status status, const char *format, ...)
    CFX_PRINTF(3, 4);

/* The version as "MAJOR.MINOR.PATCH". */
CFX_API const char *cfx_version(void);

/* ---- memory -------------------------------------------------------------------------------- */

/* Where memory comes from. `alloc` returns memory aligned to at least 16 bytes, or NULL; `free`
 * receives the size that was requested. An object created with an allocator keeps the pointer, so
 * the allocator must outlive it. NULL means malloc and free. */
typedef struct cfx_allocator {
    void *(*alloc)(void *ctx, size_t size);
    void (*free)(void *ctx, void *ptr, size_t size);
    void *ctx;
} cfx_allocator;

/* ---- output -------------------------------------------------------------------------------- */

/* Where text goes. `write` returns CFX_OK, or a status that stops the writer and is returned to its
 * caller. The core never writes to a file on its own. */
typedef struct cfx_sink {
    cfx_status (*write)(void *ctx, const char *data, size_t size);
    void *ctx;
} cfx_sink;

/* A growing string that can also serve as a sink. `data` is NUL-terminated and owned by the buffer;
 * after init it is "", never NULL. */
typedef struct cfx_buffer {
    char *data;
    size_t size;
    size_t capacity;
    const cfx_allocator *allocator;
} cfx_buffer;

/* The allocator (NULL: malloc) must outlive the buffer. Growing can fail with CFX_E_NOMEM, which
 * leaves the buffer unchanged. */
CFX_API void cfx_buffer_init(cfx_buffer *buffer, const cfx_allocator *allocator);
CFX_API cfx_status cfx_buffer_reserve(cfx_buffer *buffer, size_t more);  /* room for `more` bytes */
CFX_API cfx_status cfx_buffer_append(cfx_buffer *buffer, const char *data, size_t size);
CFX_API void cfx_buffer_free(cfx_buffer *buffer);  /* resets it to its state after init */
CFX_API cfx_sink cfx_buffer_sink(cfx_buffer *buffer);

/* A sink that writes to a stdio stream (a FILE *). The stream stays open and belongs to the caller.
 * Fails with CFX_E_IO if fwrite fails; an error in data that is still buffered shows up later, in
 * fclose. */
CFX_API cfx_sink cfx_file_sink(void *file);

#ifdef __cplusplus
}
#endif
#endif
