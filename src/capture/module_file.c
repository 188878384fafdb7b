/* module_file.c - captured modules in files: a lowered graph as IR text, its weights beside it. */
#include "capture_impl.h"
#include "format/format_impl.h"

#include <cfx/embed/weights.h>
#include <cfx/lower.h>

/* "dir/model.ir" -> "dir/model.safetensors"; false if memory is out. */
static bool weights_path(cfx_buffer *out, const char *path)
{
    static const char extension[] = ".safetensors";
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    const size_t stem = dot && dot > name ? (size_t)(dot - path) : strlen(path);
    return cfx_buffer_append(out, path, stem) == CFX_OK &&
           cfx_buffer_append(out, extension, sizeof extension - 1) == CFX_OK;
}

/* ---- writing ------------------------------------------------------------------------------- */

static cfx_status write_text(const void *ctx, cfx_sink out, cfx_error *err)
{
    return cfx_graph_text((cfx_graph *)ctx, out, err);
}

/* A lowered copy: the module's own graph keeps its calls of modules. */
static cfx_graph *lowered_copy(const cfx_scope *s, cfx_module *m, cfx_error *err)
{
    const cfx_module_tree tree = cfxi_capture_scope_tree(s, m);
    cfx_graph *g = cfx_graph_clone(m->graph, NULL, err);
    const cfx_lower_options options = {.join_tied = true};
    if (g && cfx_graph_lower(g, &tree, &options, err) == CFX_OK)
        return g;
    cfx_graph_release(g);
    return NULL;
}

static cfx_status write_both(cfx_at at, cfx_module *m, const char *path, const char *weights,
                             cfx_error *err)
{
    cfx_graph *g = lowered_copy(at.scope, m, err);
    cfx_state *state = g ? cfx_module_state_at(at, m) : NULL;
    cfx_status status = state ? cfx_state_save_safetensors(state, weights, err) : CFX_E_VALUE;
    if (status == CFX_OK)
        status = cfxi_format_file_replace(path, 0, write_text, g, err);
    cfx_state_free(state);
    cfx_graph_release(g);
    return status;
}

void cfx_module_write_at(cfx_at at, cfx_module *m, const char *path)
{
    cfx_error err = {0};
    cfx_buffer weights;
    if (!cfx_scope_ok(at.scope))
        return;
    if (!m || !path) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "cfx_module_write got NULL for the %s",
                          m ? "path" : "module");
        return;
    }
    const cfx_file_format *format = cfx_file_format_of_path(path);
    const bool whole = format && format->content == CFX_CONTENT_MODEL;
    if (!path[0] || (format && format->content != CFX_CONTENT_GRAPH && !whole)) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "'%.200s' is not a name for a model; use one such as "
                          "model.cfx, or model.ir, whose weights go to model.safetensors", path);
        return;
    }
    const size_t mark = at.scope->modules.size;
    cfx_module *captured = m->graph ? m : cfx_trace_at(at, m, (cfx_trace_options){0});
    if (!captured)
        return;
    cfx_buffer_init(&weights, at.scope->allocator);
    if (whole)
        cfxi_capture_package_save(captured, path, &err);
    else if (!weights_path(&weights, path))
        cfxi_base_nomem(&err);
    else
        write_both(at, captured, path, weights.data, &err);
    cfx_buffer_free(&weights);
    if (err.status != CFX_OK)
        cfxi_capture_scope_take(at, &err);
    cfxi_capture_scope_keep(at, mark, NULL);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Puts a tensor at a dotted path below `root`, with modules that only hold others on the way. */
static void put_tensor(cfx_at at, cfx_module *root, const char *name, cfx_tensor *t)
{
    char part[256];
    cfx_module *owner = root;
    for (const char *dot; (dot = strchr(name, '.')) != NULL && owner; name = dot + 1) {
        const size_t size = (size_t)(dot - name);
        if (size >= sizeof part) {
            cfx_scope_fail_at(at, CFX_E_LIMIT, "a module's name has at most %zu characters",
                              sizeof part - 1);
            return;
        }
        memcpy(part, name, size);
        part[size] = '\0';
        cfx_module *child = cfx_module_child(owner, part);
        owner = child ? child : cfx_module_add_at(at, owner, part, cfx_module_new_at(at, NULL));
    }
    cfx_module_add_parameter_at(at, owner, name, t);
}

cfx_module *cfx_module_from_weights_at(cfx_at at, cfx_graph *g, const char *class_name,
                                       const cfx_state *weights)
{
    const size_t mark = at.scope->modules.size;
    cfx_module *root = cfx_module_new_at(at, NULL);
    for (size_t i = 0; i < cfx_state_size(weights) && cfx_scope_ok(at.scope); i++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(weights, i, &t);
        put_tensor(at, root, name, t);
    }
    cfx_module *m = cfx_module_from_graph_at(at, g, class_name, root);
    cfxi_capture_scope_keep(at, mark, m);
    return m;
}

static cfx_graph *read_graph(cfx_at at, const char *path)
{
    cfx_error err = {0};
    cfxi_bytes *bytes = cfxi_format_bytes_map(path, at.scope->allocator, &err);
    cfx_graph *g = bytes ? cfx_graph_parse(bytes->data, bytes->size, at.scope->allocator,
                                           &cfxi_capture_object_host, &err) : NULL;
    cfxi_format_bytes_release(bytes);
    if (!g && err.line)  /* in its text; otherwise the message names the file */
        cfx_scope_fail_at(at, err.status, "%.200s:%u:%u: %s", path, err.line, err.column,
                          err.message);
    else if (!g)
        cfxi_capture_scope_take(at, &err);
    return g;
}

static cfx_module *read_package(cfx_at at, const char *path)
{
    cfx_error err = {0};
    const cfx_package_options options = {.allocator = at.scope->allocator};
    cfx_package *p = cfx_package_load(path, &options, &err);
    cfx_module *m = p ? cfx_module_from_package_at(at, p) : NULL;
    if (!p)
        cfxi_capture_scope_take(at, &err);
    cfx_package_free(p);
    return m;
}

cfx_module *cfx_module_read_at(cfx_at at, const char *path)
{
    cfx_buffer weights;
    cfx_module *m = NULL;
    if (!cfx_scope_ok(at.scope))
        return NULL;
    if (!path) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "cfx_module_read got NULL for the path");
        return NULL;
    }
    const cfx_file_format *format = cfx_file_format_of_path(path);
    if (format && format->content == CFX_CONTENT_MODEL)
        return read_package(at, path);
    cfx_error err = {0};
    cfx_graph *g = read_graph(at, path);
    cfx_state *state = NULL;
    cfx_buffer_init(&weights, at.scope->allocator);
    if (g && !weights_path(&weights, path))
        cfxi_base_nomem(&err);
    else if (g)
        state = cfx_state_load(weights.data, at.scope->allocator, &err);
    if (state)
        m = cfx_module_from_weights_at(at, g, NULL, state);
    else if (g)
        cfxi_capture_scope_take(at, &err);
    cfx_state_free(state);
    cfx_buffer_free(&weights);
    cfx_graph_release(g);
    return m;
}
