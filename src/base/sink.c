/* sink.c - text output: a growing string, and buffered writing to any sink. */
#include "base_impl.h"

#include <stdio.h>

/* ---- cfx_buffer ---------------------------------------------------------------------------- */

/* Stands for "nothing allocated yet": never written to, never freed. */
static char empty[1];

void cfx_buffer_init(cfx_buffer *buffer, const cfx_allocator *allocator)
{
    buffer->data = empty;
    buffer->size = 0;
    buffer->capacity = 0;
    buffer->allocator = cfxi_base_allocator(allocator);
}

void cfx_buffer_free(cfx_buffer *buffer)
{
    if (buffer->capacity)
        cfxi_base_free(buffer->allocator, buffer->data, buffer->capacity);
    cfx_buffer_init(buffer, buffer->allocator);
}

/* Doubles, so that appending is O(1) amortised; `need` includes the terminator. */
static cfx_status buffer_grow(cfx_buffer *buffer, size_t need)
{
    size_t capacity = buffer->capacity ? buffer->capacity : 64;
    while (capacity < need) {
        if (!cfxi_base_mul_size(capacity, 2, 0, &capacity))
            return CFX_E_NOMEM;
    }
    char *data = cfxi_base_alloc(buffer->allocator, capacity);
    if (!data)
        return CFX_E_NOMEM;
    memcpy(data, buffer->data, buffer->size + 1);  /* terminated before it is full, too */
    if (buffer->capacity)
        cfxi_base_free(buffer->allocator, buffer->data, buffer->capacity);
    buffer->data = data;
    buffer->capacity = capacity;
    return CFX_OK;
}

cfx_status cfx_buffer_reserve(cfx_buffer *buffer, size_t more)
{
    size_t need;
    if (!cfxi_base_mul_size(buffer->size, 1, more, &need) || !cfxi_base_mul_size(need, 1, 1, &need))
        return CFX_E_NOMEM;
    return need > buffer->capacity ? buffer_grow(buffer, need) : CFX_OK;
}

cfx_status cfx_buffer_append(cfx_buffer *buffer, const char *data, size_t size)
{
    if (size == 0)
        return CFX_OK;
    CFX_TRY(cfx_buffer_reserve(buffer, size));
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
    return CFX_OK;
}

static cfx_status buffer_write(void *ctx, const char *data, size_t size)
{
    return cfx_buffer_append(ctx, data, size);
}

cfx_sink cfx_buffer_sink(cfx_buffer *buffer)
{
    const cfx_sink sink = {buffer_write, buffer};
    return sink;
}

static cfx_status file_write(void *ctx, const char *data, size_t size)
{
    return ctx && fwrite(data, 1, size, ctx) == size ? CFX_OK : CFX_E_IO;
}

cfx_sink cfx_file_sink(void *file)
{
    const cfx_sink sink = {file_write, file};
    return sink;
}

/* ---- cfxi_out ------------------------------------------------------------------------------ */

static cfx_status no_write(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return CFX_E_VALUE;
}

cfx_status cfxi_base_sink_write(cfx_sink sink, const char *data, size_t size)
{
    return sink.write ? sink.write(sink.ctx, data, size) : CFX_E_VALUE;
}

void cfxi_base_out_begin(cfxi_out *out, cfx_sink sink)
{
    out->sink = sink;
    if (!sink.write)
        out->sink.write = no_write;
    out->status = CFX_OK;
    out->used = 0;
}

static void out_flush(cfxi_out *out)
{
    if (out->status == CFX_OK && out->used)
        out->status = out->sink.write(out->sink.ctx, out->buffer, out->used);
    out->used = 0;
}

void cfxi_base_out_write_long(cfxi_out *out, const char *data, size_t size)
{
    out_flush(out);
    if (out->status != CFX_OK)
        return;
    if (size >= sizeof out->buffer) {
        out->status = out->sink.write(out->sink.ctx, data, size);
        return;
    }
    memcpy(out->buffer + out->used, data, size);
    out->used += size;
}

/* For short pieces: what is longer than 256 bytes is cut. */
void cfxi_base_out_printf(cfxi_out *out, const char *format, ...)
{
    char piece[256];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (n > 0)
        cfxi_base_out_write(out, piece, (size_t)n < sizeof piece ? (size_t)n : sizeof piece - 1);
}

void cfxi_base_out_spaces(cfxi_out *out, size_t n)
{
    static const char spaces[] = "                                                                ";
    for (; n >= sizeof spaces; n -= sizeof spaces - 1)
        cfxi_base_out_write(out, spaces, sizeof spaces - 1);
    cfxi_base_out_write(out, spaces, n);
}

cfx_status cfxi_base_out_end(cfxi_out *out, cfx_error *err)
{
    out_flush(out);
    if (out->status == CFX_E_NOMEM)
        return cfxi_base_nomem(err);
    if (out->sink.write == no_write)
        return cfx_error_set(err, CFX_E_VALUE, "the sink has no write function; cfx_buffer_sink "
                             "and cfx_file_sink make complete ones");
    if (out->status != CFX_OK)
        cfx_error_set(err, out->status, "writing the text failed: %s",
                      cfx_status_text(out->status));
    return out->status;
}

static cfx_status out_sink_write(void *ctx, const char *data, size_t size)
{
    cfxi_out *out = ctx;
    cfxi_base_out_write(out, data, size);
    return out->status;
}

cfx_sink cfxi_base_out_sink(cfxi_out *out)
{
    const cfx_sink sink = {out_sink_write, out};
    return sink;
}
