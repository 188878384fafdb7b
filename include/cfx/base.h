/* base.h - status, error, allocator, output: what every other header leans on. */
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

/* What a call that can fail returns. CFX_OK is 0; the rows are in status.def. */
typedef enum cfx_status {
#define CFX_STATUS(id, text, exception) CFX_E_##id,
#include <cfx/status.def>
#undef CFX_STATUS
    CFX_STATUS_COUNT
} cfx_status;
#define CFX_OK CFX_E_OK

/* Why a call failed. The caller owns it, usually on its stack; it holds no heap memory, so that
 * reporting an error cannot fail. A function that takes a `cfx_error *err` accepts NULL, and
 * writes to it only when it fails. Start it as `cfx_error err = {0};`: a chain of calls that share
 * it then keeps the first reason. */
typedef struct cfx_error {
    cfx_status status;
    uint32_t line;      /* line of the text being parsed, from 1; 0 where there is none */
    uint32_t column;    /* column in that line, in bytes, from 1; 0 where there is none */
    char message[500];  /* what, where, what to do; terminated UTF-8 */
} cfx_error;

/* The constant's name without its prefix ("NOMEM"), and its meaning. Any int is accepted: an
 * unknown one reads as "unknown status". */
CFX_API const char *cfx_status_name(cfx_status status);
CFX_API const char *cfx_status_text(cfx_status status);

/* Fills *err (if not NULL) with a formatted message, cut to fit at a character boundary, and
 * returns `status`. */
CFX_API cfx_status cfx_error_set(cfx_error *err, cfx_status status, const char *format, ...)
    CFX_PRINTF(3, 4);

/* The version as "MAJOR.MINOR.PATCH". */
CFX_API const char *cfx_version(void);

/* ---- memory -------------------------------------------------------------------------------- */

/* Where memory comes from. `alloc` returns at least 16-byte aligned memory or NULL; `free` is
 * given the size that was asked for. An object made with an allocator keeps the pointer: the
 * allocator must outlive it. NULL means malloc and free. */
typedef struct cfx_allocator {
    void *(*alloc)(void *ctx, size_t size);
    void (*free)(void *ctx, void *ptr, size_t size);
    void *ctx;
} cfx_allocator;

/* ---- output -------------------------------------------------------------------------------- */

/* Where text goes. `write` returns CFX_OK, or a status that stops the writer and is handed on.
 * The core never prints to a file of its own accord. */
typedef struct cfx_sink {
    cfx_status (*write)(void *ctx, const char *data, size_t size);
    void *ctx;
} cfx_sink;

/* A growing string, and a sink that appends to it. `data` is terminated and owned by the buffer;
 * it is "" (not NULL) after init. */
typedef struct cfx_buffer {
    char *data;
    size_t size;
    size_t capacity;
    const cfx_allocator *allocator;
} cfx_buffer;

/* The allocator (NULL: malloc) must outlive it. What grows fails with CFX_E_NOMEM, and the buffer
 * is as it was. */
CFX_API void cfx_buffer_init(cfx_buffer *buffer, const cfx_allocator *allocator);
CFX_API cfx_status cfx_buffer_reserve(cfx_buffer *buffer, size_t more);  /* room for more bytes */
CFX_API cfx_status cfx_buffer_append(cfx_buffer *buffer, const char *data, size_t size);
CFX_API void cfx_buffer_free(cfx_buffer *buffer);  /* leaves it as after init */
CFX_API cfx_sink cfx_buffer_sink(cfx_buffer *buffer);

/* A sink that writes to a stdio stream, a FILE *, which stays open and is the caller's. It fails
 * with CFX_E_IO where fwrite does; what the stream still buffers can fail later, in fclose. */
CFX_API cfx_sink cfx_file_sink(void *file);

#ifdef __cplusplus
}
#endif
#endif
