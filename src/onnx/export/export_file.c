/* export_file.c - models on their way into files: in one, or with weights in a file beside it.
 *
 * Protobuf cannot hold more than 2 GB, so weights of larger models go to "model.onnx.data", each at
 * a multiple of 64 bytes. That file is complete before the model, which names it, is replaced.
 */
#include "export_impl.h"
#include "format/package_impl.h"

#include <stdio.h>

static const uint64_t LIMIT = (uint64_t)INT32_MAX;

static uint64_t bytes_of(const cfx_tensor *t)
{
    return (uint64_t)cfx_tensor_numel(t) * cfx_dtype_size(cfx_tensor_dtype(t));
}

/* Small ones stay in the model: shape inference reads some. */
static bool is_moved(const cfxi_onnx_tensor *t)
{
    return t->raw.from && bytes_of(t->raw.from) >= CFXI_ONNX_SMALL;
}

/* ---- weights in a file of their own -------------------------------------------------------- */

static cfxi_text number_text(cfxi_exporter *x, uint64_t n)
{
    const char *text = cfxi_export_text(x, "%llu", (unsigned long long)n);
    return (cfxi_text){text, strlen(text)};
}

typedef struct moved {
    const cfx_tensor *tensor;
    uint64_t at;
} moved;

typedef struct moved_list {
    const moved *items;
    size_t n;
} moved_list;

static cfx_status write_data(const void *ctx, cfx_sink sink, cfx_error *err)
{
    static const char zeros[CFXI_ONNX_ALIGNMENT];
    const moved_list *list = ctx;
    uint64_t at = 0;
    cfxi_out out;
    cfxi_base_out_begin(&out, sink);
    for (size_t i = 0; i < list->n; i++) {
        cfxi_base_out_write(&out, zeros, (size_t)(list->items[i].at - at));
        cfxi_format_out_elements(&out, list->items[i].tensor);
        at = list->items[i].at + bytes_of(list->items[i].tensor);
    }
    return cfxi_base_out_end(&out, err);
}

/* The tensor says where its elements are, instead of having them. */
static bool refer(cfxi_exporter *x, cfxi_onnx_tensor *t, const char *file, uint64_t at)
{
    cfxi_onnx_entry *e = cfxi_export_room(x, 3, sizeof *e);
    if (!e)
        return false;
    e[0] = (cfxi_onnx_entry){.key = CFXI_TEXT("location"), .value = {file, strlen(file)}};
    e[1] = (cfxi_onnx_entry){.key = CFXI_TEXT("offset"), .value = number_text(x, at)};
    e[2] = (cfxi_onnx_entry){.key = CFXI_TEXT("length"),
                             .value = number_text(x, bytes_of(t->raw.from))};
    t->external.items = e;
    t->external.n = 3;
    CFXI_ONNX_SET(t, tensor, location, 1);
    t->doc = (cfxi_text){NULL, 0};  /* what aligned the elements */
    t->raw = (cfxi_onnx_elements){NULL, 0, NULL};
    t->has &= ~(1u << CFXI_ONNX_ROW_tensor_raw);
    return !x->failed;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static cfx_status move_weights(cfxi_exporter *x, cfxi_onnx_model *m, const char *path,
                               cfx_error *err)
{
    const char *file = cfxi_export_text(x, "%s.data", file_name(path));
    const char *whole = cfxi_export_text(x, "%s.data", path);
    moved *items = cfxi_export_room(x, m->graph->initializers.n, sizeof *items);
    moved_list list = {items, 0};
    uint64_t at = 0;
    for (size_t i = 0; items && i < m->graph->initializers.n; i++) {
        cfxi_onnx_tensor *t = &m->graph->initializers.items[i];
        if (!is_moved(t))
            continue;
        at = (at + CFXI_ONNX_ALIGNMENT - 1) / CFXI_ONNX_ALIGNMENT * CFXI_ONNX_ALIGNMENT;
        items[list.n++] = (moved){t->raw.from, at};
        at += bytes_of(t->raw.from);
        if (!refer(x, t, file, items[list.n - 1].at))
            break;
    }
    if (x->failed)
        return cfxi_base_nomem(err);
    return list.n ? cfxi_format_file_replace(whole, at, write_data, &list, err) : CFX_OK;
}

/* ---- the model ----------------------------------------------------------------------------- */

static cfx_status write_model(const void *ctx, cfx_sink sink, cfx_error *err)
{
    return cfxi_onnx_write_model(ctx, sink, err);
}

cfx_status cfxi_export_save(cfxi_exporter *x, cfxi_onnx_model *m, const char *path,
                            const cfx_sink *sink, cfx_error *err)
{
    uint64_t size = cfxi_onnx_align(m);
    const bool large = size > LIMIT;
    if (sink && large)
        return cfx_error_set(err, CFX_E_VALUE, "the model has 2 GB or more, which one ONNX file "
                             "cannot hold; save it to a path, with its weights beside it");
    if (sink)
        return cfxi_onnx_write_model(m, *sink, err);
    if (large || x->options->external) {
        CFX_TRY(move_weights(x, m, path, err));
        size = cfxi_onnx_measure(m);
    }
    if (size > LIMIT)
        return cfx_error_set(err, CFX_E_VALUE, "the graph alone has 2 GB or more, which an ONNX "
                             "file cannot hold");
    return cfxi_format_file_replace(path, size, write_model, m, err);
}
