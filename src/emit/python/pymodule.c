/* pymodule.c - a Python file that is complete without its weights: __init__ makes the modules that
 * the graph calls, and the parameters and buffers that it reads.
 *
 *     class Net(torch.nn.Module):
 *         def __init__(self):
 *             super().__init__()
 *             self.layers = torch.nn.Module()
 *             setattr(self.layers, "0", torch.nn.Linear(784, 512))
 *
 *         def forward(self, x):
 *             ...
 */
#include "ops/ops_impl.h"
#include "emit/named_members.h"
#include "ir/walk_impl.h"
#include "pycode_impl.h"

#include <cfx/nn.h>

#include <stdio.h>

typedef struct py_init {
    cfx_graph *g;
    const cfx_module_tree *modules;
    cfx_buffer text;
    cfxi_parts parts;
    bool nomem;
    size_t refused;  /* what cannot be made */
    cfx_error why;   /* all of it, as far as it fits */
} py_init;

static void put(py_init *p, const char *text, size_t size)
{
    if (!p->nomem && cfx_buffer_append(&p->text, text, size) != CFX_OK)
        p->nomem = true;
}

static void put_str(py_init *p, const char *text) { put(p, text, strlen(text)); }

static void refuse(py_init *p, const char *path, const char *class_name, const char *why)
{
    const size_t used = strlen(p->why.message);
    const bool known = class_name[0] != '\0';
    p->refused++;
    if (snprintf(p->why.message + used, sizeof p->why.message - used, "%s'%.100s' %s%s%s%.150s",
                 used ? "; " : "cannot write the constructor: ", path,
                 known ? "is an instance of " : "is neither a torch.nn module nor a tensor",
                 class_name, why[0] ? ": " : "", why) < 0)
        p->why.message[used] = '\0';
}

/* ---- expressions --------------------------------------------------------------------------- */

static cfx_status put_value(py_init *p, cfx_value v, cfx_error *err);

/* "1, 2", of a tuple of one with a comma behind it. */
static cfx_status put_items(py_init *p, cfx_value v, cfx_error *err)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    for (size_t i = 0; i < n; i++) {
        put_str(p, i ? ", " : "");
        CFX_TRY(put_value(p, items[i], err));
    }
    put_str(p, n == 1 && v.kind == CFX_KIND_TUPLE ? "," : "");
    return CFX_OK;
}

/* As Python's repr, but for what that has no name for: inf, nan, device. */
static cfx_status put_value(py_init *p, cfx_value v, cfx_error *err)
{
    const bool odd = v.kind == CFX_KIND_FLOAT && v.as.f - v.as.f != 0;
    const bool items = v.kind == CFX_KIND_TUPLE || v.kind == CFX_KIND_LIST ||
                       v.kind == CFX_KIND_COMPLEX;
    put_str(p, odd                             ? "float('"
               : v.kind == CFX_KIND_DEVICE     ? "torch."
               : v.kind == CFX_KIND_COMPLEX    ? "complex("
               : v.kind == CFX_KIND_TUPLE      ? "("
               : v.kind == CFX_KIND_LIST       ? "["
                                               : "");
    CFX_TRY(items ? put_items(p, v, err)
                  : cfxi_ir_value_repr(p->g, v, cfx_buffer_sink(&p->text), err));
    put_str(p, odd ? "')" : v.kind == CFX_KIND_LIST ? "]" : items ? ")" : "");
    return CFX_OK;
}

/* Whether it is of the host, or has something in it that is. */
static bool has_host(cfx_value v)
{
    return cfxi_ir_value_has(v, CFXI_KIND_BIT(CFX_KIND_HOST));
}

static void put_quoted(py_init *p, const char *text)
{
    cfxi_out out;
    cfxi_base_out_begin(&out, cfx_buffer_sink(&p->text));
    cfxi_base_out_quoted(&out, text, strlen(text), '"');
    if (cfxi_base_out_end(&out, NULL) != CFX_OK)
        p->nomem = true;
}

static void put_part(py_init *p, const cfxi_part *part);

/* Whether getattr must find it: "0" of a Sequential. */
static bool is_by_name(const cfxi_part *part)
{
    return !part->store && !cfxi_emit_py_is_plain(part->name, strlen(part->name));
}

/* `self.fc`; `self.layers, "0"` for getattr; `self._modules["half"]` if every module has that name.
 */
static void put_access(py_init *p, const cfxi_part *part)
{
    const bool plain = !part->store && !is_by_name(part);
    put_part(p, part->parent);
    put_str(p, is_by_name(part) ? ", " : ".");
    if (part->store) {
        put_str(p, part->store);
        put_str(p, "[");
    }
    if (plain)
        put_str(p, part->name);
    else
        put_quoted(p, part->name);
    put_str(p, part->store ? "]" : "");
}

/* `self.layers`, `getattr(self.layers, "0")` */
static void put_part(py_init *p, const cfxi_part *part)
{
    if (!part) {
        put_str(p, "self");
        return;
    }
    put_str(p, is_by_name(part) ? "getattr(" : "");
    put_access(p, part);
    put_str(p, is_by_name(part) ? ")" : "");
}

/* `self.fc = `, `setattr(self.layers, "0", `; true if a parenthesis is to be closed. */
static bool begin_assignment(py_init *p, const cfxi_part *part)
{
    put_str(p, is_by_name(part) ? "        setattr(" : "        ");
    put_access(p, part);
    put_str(p, is_by_name(part) ? ", " : " = ");
    return is_by_name(part);
}

/* What else a part is, or is part of: `self.embed.weight`. */
static void put_twin(py_init *p, const cfxi_part *twin, const char *inside)
{
    put_part(p, twin);
    put_str(p, inside[0] ? "." : "");
    put_str(p, inside);
}

/* ---- modules ------------------------------------------------------------------------------- */

/* `torch.zeros(2, 3, dtype=torch.int64)` */
static cfx_status put_zeros(py_init *p, cfx_value dtype, cfx_value shape, cfx_error *err)
{
    size_t n;
    const cfx_value *sizes = cfx_value_items(shape, &n);
    put_str(p, n ? "torch.zeros(" : "torch.zeros(()");
    for (size_t i = 0; i < n; i++) {
        put_str(p, i ? ", " : "");
        CFX_TRY(put_value(p, sizes[i], err));
    }
    if (dtype.as.i != CFX_DTYPE_FLOAT32) {
        put_str(p, ", dtype=");
        CFX_TRY(put_value(p, dtype, err));
    }
    put_str(p, ")");
    return CFX_OK;
}

typedef struct py_call {
    py_init *init;
    const char *path;  /* of the module */
    bool any;
} py_call;

/* A tensor that the constructor was given, such as the weights of a loss's classes: its elements
 * come with the other weights. */
static cfx_status put_tensor_argument(const py_call *call, const cfx_schema_param *param,
                                      cfx_error *err)
{
    py_init *p = call->init;
    char path[512];
    cfx_value dtype;
    cfx_value shape;
    if (snprintf(path, sizeof path, "%s.%.*s", call->path, (int)param->name.size,
                 param->name.text) >= (int)sizeof path)
        return CFX_E_TYPE;
    CFX_TRY(cfxi_ops_module_attr(p->modules, p->g, path, "dtype", &dtype, err));
    CFX_TRY(cfxi_ops_module_attr(p->modules, p->g, path, "shape", &shape, err));
    const cfx_status status = dtype.kind == CFX_KIND_DTYPE ? put_zeros(p, dtype, shape, err)
                                                           : CFX_E_TYPE;
    cfx_value_discard(p->g, shape);
    return status;
}

static cfx_status put_constructor(py_init *p, const char *path, cfx_error *err);

/* A module that the constructor was given, `name` below that. It makes copies of one that is the
 * first of a list: they must be alike still. */
static cfx_status put_module_argument(const py_call *call, const char *name, cfx_error *err)
{
    py_init *p = call->init;
    char path[512];
    const size_t start = p->text.size;
    const size_t refused = p->refused;
    if (snprintf(path, sizeof path - 24, "%s.%s", call->path, name) >= (int)sizeof path - 24)
        return CFX_E_TYPE;
    CFX_TRY(put_constructor(p, path, err));
    char *number = strrchr(path, '.') + 1;
    const size_t size = p->text.size - start;
    for (size_t i = 1; number[0] == '0' || i > 1; i++) {
        cfx_buffer class_name;
        cfx_buffer_init(&class_name, p->g->allocator);
        snprintf(number, 24, "%zu", i);
        cfx_status status = cfxi_ops_module_class(p->modules, path, &class_name, err);
        const bool last = status != CFX_OK || class_name.size == 0 || p->refused > refused;
        if (!last)
            status = put_constructor(p, path, err);
        if (!last && status == CFX_OK && !p->nomem &&
            (p->text.size - start != 2 * size ||
             memcmp(p->text.data + start, p->text.data + start + size, size) != 0))
            refuse(p, path, class_name.data, "the constructor copies the first module of the list, "
                   "but this one differs");
        cfx_buffer_free(&class_name);
        if (last || status != CFX_OK || p->nomem)
            return p->nomem ? cfxi_base_nomem(err) : status;
        p->text.size = start + size;
    }
    return CFX_OK;
}

static cfx_status put_argument(void *ctx, const cfx_schema_param *param, bool keyword, cfx_value v,
                               cfx_error *err)
{
    py_call *call = ctx;
    put_str(call->init, call->any ? ", " : "");
    call->any = true;
    if (keyword || param->keyword_only) {
        put(call->init, param->name.text, param->name.size);
        put_str(call->init, "=");
    }
    if (v.kind == CFX_KIND_HOST)
        return put_tensor_argument(call, param, err);
    if (strncmp(param->type, "Module", 6) == 0)
        return put_module_argument(call, cfx_value_text(v, NULL), err);
    return put_value(call->init, v, err);
}

static cfx_status put_constructor(py_init *p, const char *path, cfx_error *err)
{
    py_call call = {.init = p, .path = path};
    cfx_buffer name;
    cfx_error why = {0};
    cfx_buffer_init(&name, p->g->allocator);
    cfx_status status = cfxi_ops_module_class(p->modules, path, &name, err);
    const cfx_nn nn = status == CFX_OK ? cfxi_ops_nn_find(name.data) : CFX_NN_NONE;
    if (nn) {
        put_str(p, "torch.nn.");
        put_str(p, cfxi_ops_nn_name(nn));
        put_str(p, "(");
        status = cfxi_ops_nn_each_arg(p->modules, p->g, path, nn, put_argument, &call, &why);
        put_str(p, ")");
        if (status != CFX_OK && status != CFX_E_TYPE && err)
            *err = why;
    }
    if (status == CFX_E_TYPE || (status == CFX_OK && !nn)) {
        refuse(p, path, name.data, why.message);
        status = CFX_OK;
    }
    cfx_buffer_free(&name);
    return status;
}

/* ---- values -------------------------------------------------------------------------------- */

/* `self.register_buffer("mask", `, `self._buffers["type"] = `; true if a parenthesis is to be
 * closed. */
static bool begin_buffer(py_init *p, cfxi_part *part)
{
    if (cfxi_emit_py_is_member(part->name)) {
        part->store = "_buffers";
        return begin_assignment(p, part);
    }
    put_str(p, "        ");
    put_part(p, part->parent);
    put_str(p, ".register_buffer(");
    put_quoted(p, part->name);
    put_str(p, ", ");
    return true;
}

static bool begin_parameter(py_init *p, cfxi_part *part)
{
    part->store = cfxi_emit_py_is_member(part->name) ? "_parameters" : NULL;
    return begin_assignment(p, part);
}

/* What is learned is a parameter, other tensors are buffers. */
static cfx_status put_tensor(py_init *p, cfxi_part *part, cfx_value dtype, cfx_error *err)
{
    cfx_value shape;
    bool buffer;
    CFX_TRY(cfxi_emit_is_buffer(p->modules, p->g, part->path, &buffer, err));
    CFX_TRY(cfxi_ops_module_attr(p->modules, p->g, part->path, "shape", &shape, err));
    cfx_status status = CFX_OK;
    const bool close = buffer ? begin_buffer(p, part) : begin_parameter(p, part);
    if (part->twin) {
        put_twin(p, part->twin, part->inside);
    } else {
        put_str(p, buffer ? "" : "torch.nn.Parameter(");
        status = put_zeros(p, dtype, shape, err);
        put_str(p, buffer ? "" : ")");
    }
    put_str(p, close ? ")\n" : "\n");
    cfx_value_discard(p->g, shape);
    return status;
}

static cfx_status put_attribute(py_init *p, cfxi_part *part, cfx_error *err)
{
    cfx_value v;
    cfx_value dtype;
    CFX_TRY(cfxi_ops_module_attr(p->modules, p->g, part->path, "", &v, err));
    if (has_host(v) || v.kind == CFX_KIND_INVALID) {
        cfx_value_discard(p->g, v);
        CFX_TRY(cfxi_ops_module_attr(p->modules, p->g, part->path, "dtype", &dtype, err));
        if (dtype.kind == CFX_KIND_DTYPE)
            return put_tensor(p, part, dtype, err);
        refuse(p, part->path, "", "");
        return CFX_OK;
    }
    const bool close = begin_assignment(p, part);
    const cfx_status status = put_value(p, v, err);
    cfx_value_discard(p->g, v);
    put_str(p, close ? ")\n" : "\n");
    return status;
}

/* ---- the constructor ----------------------------------------------------------------------- */

/* `self.head.weight = self.embed.weight` */
static void put_ties(py_init *p, const cfxi_part *part)
{
    for (const cfxi_tie *tie = part->ties; tie; tie = tie->next) {
        put_str(p, "        ");
        put_twin(p, part, tie->name);
        put_str(p, " = ");
        put_twin(p, tie->twin, tie->inside);
        put_str(p, "\n");
    }
}

static cfx_status put_statement(py_init *p, cfxi_part *part, cfx_error *err)
{
    if (part->kind == CFXI_PART_VALUE)
        return put_attribute(p, part, err);
    part->store = cfxi_emit_py_is_member(part->name) ? "_modules" : NULL;
    const bool close = begin_assignment(p, part);
    if (part->kind == CFXI_PART_HOLDER)
        put_str(p, "torch.nn.Module()");
    else if (part->twin)
        put_part(p, part->twin);
    else
        CFX_TRY(put_constructor(p, part->path, err));
    put_str(p, close ? ")\n" : "\n");
    put_ties(p, part);
    return p->nomem ? cfxi_base_nomem(err) : CFX_OK;
}

static cfx_status put_training(py_init *p, cfx_error *err)
{
    bool all;
    bool one;
    CFX_TRY(cfxi_emit_is_training(p->modules, p->g, "", &all, err));
    put_str(p, all ? "" : "        self.eval()\n");
    for (size_t i = 0; i < p->parts.list.size; i++) {
        const cfxi_part *part = cfxi_emit_part_at(&p->parts, i);
        if (part->kind != CFXI_PART_MODULE)
            continue;
        CFX_TRY(cfxi_emit_is_training(p->modules, p->g, part->path, &one, err));
        if (one == all)
            continue;
        put_str(p, "        ");
        put_part(p, part);
        put_str(p, one ? ".train()\n" : ".eval()\n");
    }
    return CFX_OK;
}

static cfx_status put_init(py_init *p, cfx_error *err)
{
    CFX_TRY(cfxi_emit_parts_collect(&p->parts, p->g, p->modules, err));
    put_str(p, "    def __init__(self):\n        super().__init__()\n");
    for (size_t i = 0; i < p->parts.list.size; i++)
        CFX_TRY(put_statement(p, cfxi_emit_part_at(&p->parts, i), err));
    CFX_TRY(put_training(p, err));
    put_str(p, "\n");
    if (p->nomem)
        return cfxi_base_nomem(err);
    if (p->refused == 0)
        return CFX_OK;
    cfxi_base_utf8_clean(p->why.message);
    return cfx_error_set(err, CFX_E_TYPE, "%.490s", p->why.message);
}

cfx_status cfx_codegen_python_module(cfx_graph *g, const cfx_module_tree *modules,
                                     const char *class_name, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    CFX_TRY(cfxi_base_expect(modules, "module tree", err));
    py_init p = {.g = g, .modules = modules};
    cfx_buffer_init(&p.text, g->allocator);
    const cfxi_py_init init = {&p.text, &p.parts};
    cfx_status status = put_init(&p, err);
    if (status == CFX_OK)
        status = cfxi_emit_py_file(g, class_name ? class_name : "Model", &init, out, err);
    cfx_buffer_free(&p.text);
    cfxi_emit_parts_free(&p.parts);
    return status;
}
