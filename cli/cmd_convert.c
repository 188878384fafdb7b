/* cmd_convert.c - cfx convert: tensors from one file format to another, models to and from ONNX. */
#include "cli.h"

#include <cfx/onnx.h>

#include <string.h>

/* The weights of a .cfx file; NULL with *err set. */
static cfx_state *load_package(const char *path, cfx_error *err)
{
    cfx_package *p = cfx_package_load(path, NULL, err);
    const cfx_state *weights = p ? cfx_package_weights(p) : NULL;
    cfx_state *s = weights ? cfx_state_new(NULL, err) : NULL;
    if (p && !weights)
        cfx_error_set(err, CFX_E_VALUE, "%.150s: its weights are kept elsewhere", path);
    for (size_t i = 0; s && i < cfx_state_size(weights); i++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(weights, i, &t);
        if (cfx_state_set(s, name, t, err) != CFX_OK) {
            cfx_state_free(s);
            s = NULL;
        }
    }
    cfx_package_free(p);
    return s;
}

/* Loads a file of one tensor or of several; NULL with *err set. */
static cfx_state *load(const char *path, const cfx_file_format *from, cfx_error *err)
{
    char name[256];
    if (from && from->content == CFX_CONTENT_MODEL)
        return load_package(path, err);
    if (!from || from->content != CFX_CONTENT_TENSOR)
        return cfx_state_load(path, NULL, err);
    cfx_tensor *t = cfx_tensor_load(path, NULL, err);
    cfx_state *s = t ? cfx_state_new(NULL, err) : NULL;
    cli_stem(path, name, sizeof name);  /* a tensor that has no name gets that of its file */
    if (s && cfx_state_set(s, name, t, err) != CFX_OK) {
        cfx_state_free(s);
        s = NULL;
    }
    cfx_tensor_release(t);
    return s;
}

static cfx_status save(const cfx_state *s, const char *path, const cfx_file_format *to,
                       cfx_error *err)
{
    cfx_tensor *t;
    if (to->content == CFX_CONTENT_TENSORS)
        return cfx_state_save(s, path, err);
    if (cfx_state_size(s) != 1)
        return cfx_error_set(err, CFX_E_VALUE, "a %s file holds one tensor, and there are %zu",
                             to->extension, cfx_state_size(s));
    cfx_state_entry(s, 0, &t);
    return cfx_tensor_save(t, path, err);
}

/* ---- models -------------------------------------------------------------------------------- */

static void print_finding(void *ctx, const cfx_onnx_finding *f)
{
    (void)ctx;
    fprintf(stderr, "%s%s%%%s (%s): %s\n", f->where, *f->where ? ": " : "", f->node, f->op, f->why);
}

static cfx_status to_onnx(const cfx_package *p, const char *path, cfx_error *err)
{
    const cfx_onnx_write_options options = {.each = print_finding};
    return cfx_onnx_save(p, path, &options, err);
}

/* The texts and weights of a package, written again. */
static cfx_status to_package(const cfx_package *p, const char *path, cfx_error *err)
{
    cli_parts parts = {0};
    const char *name;
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && (name = cfx_package_entry(p, i, NULL)); i++) {
        size_t size;
        const char *text = strcmp(name, "cfx.json") != 0 ? cfx_package_text(p, name, &size) : NULL;
        cfx_buffer *part = text ? cli_parts_add(&parts, name, err) : NULL;
        if (text)
            status = part ? cfx_buffer_append(part, text, size) : err->status;
    }
    if (status == CFX_OK)
        status = cli_parts_save(&parts, path, cfx_package_model(p), cfx_package_weights(p), err);
    cli_parts_free(&parts);
    return status;
}

static int convert_model(const cli_args *args)
{
    cfx_error err = {.status = CFX_OK};
    cli_input in;
    const bool onnx = cli_names_onnx(args->other);
    if (!cli_open_package(&in, args->file))
        return CLI_UNREADABLE;
    const cfx_status status = onnx ? to_onnx(in.package, args->other, &err)
                                   : to_package(in.package, args->other, &err);
    cli_close(&in);
    if (status != CFX_OK) {
        fprintf(stderr, "cfx convert: %s\n", err.message);
        return CLI_BAD_INPUT;
    }
    if (onnx)
        printf("%s: ONNX, opset %d\n", args->other, CFX_ONNX_OPSET);
    else
        printf("%s: a model\n", args->other);
    return CLI_OK;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int cmd_convert(const cli_args *args)
{
    char one[CFX_FILE_FORMAT_LIST_SIZE];
    char named[CFX_FILE_FORMAT_LIST_SIZE];
    cfx_error err = {.status = CFX_OK};
    const cfx_file_format *to = cfx_file_format_of_path(args->other);
    const cfx_file_format *from = cfx_file_format_of_path(args->file);
    const bool is_model =
        cli_names_onnx(args->file) || (from && from->content == CFX_CONTENT_MODEL);
    const bool wants_model = to && to->content == CFX_CONTENT_MODEL;
    if (cli_names_onnx(args->other) || (wants_model && is_model))
        return convert_model(args);
    if (wants_model)
        return cli_usage_error(args->verb, "'%s' needs a graph besides tensors: cfx pack --weights "
                               "%s -o %s GRAPH.ir", args->other, args->file, args->other);
    if (!to || to->content == CFX_CONTENT_GRAPH)
        return cli_usage_error(args->verb, "'%s' needs another extension: %s for one tensor, "
                               "%s for named tensors", args->other,
                               cfx_file_format_list(CFX_CONTENT_TENSOR, one),
                               cfx_file_format_list(CFX_CONTENT_TENSORS, named));
    cfx_state *s = load(args->file, from, &err);
    const size_t n = s ? cfx_state_size(s) : 0;
    cfx_status status = s ? save(s, args->other, to, &err) : err.status;
    cfx_state_free(s);
    if (status != CFX_OK) {
        fprintf(stderr, "cfx convert: %s\n", err.message);
        return s ? CLI_BAD_INPUT : CLI_UNREADABLE;
    }
    printf("%s: %zu tensor%s\n", args->other, n, n == 1 ? "" : "s");
    return CLI_OK;
}

const cli_verb verb_convert = {
    .name = "convert",
    .summary = "convert tensors to another format, or a model to or from ONNX",
    .operands = CLI_TWO_FILES,
    .examples =
        "  cfx convert model.npz model.safetensors\n"
        "  cfx convert x.npy inputs.npz      its name there is x\n"
        "  cfx convert model.cfx model.npz   the weights of a model\n"
        "  cfx convert model.cfx model.onnx  the model, for other engines\n"
        "  cfx convert model.onnx model.cfx\n",
    .run = cmd_convert,
};
