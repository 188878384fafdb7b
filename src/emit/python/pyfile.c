/* pyfile.c - a complete Python file: imports, names for the functions it calls, the graph.
 *
 * A function is found by its qualified name: all before its last part is the module, less the
 * classes, which by custom start with a capital (`collections.OrderedDict.fromkeys` needs
 * `import collections`).
 */
#include "pycode_impl.h"

static bool uses_module(const cfx_graph *g);

static bool regions_use_module(const cfx_seq *args)
{
    for (uint32_t i = 0; args && i < args->size; i++) {
        const cfx_graph *region = cfx_value_graph(args->items[i]);
        if (region && uses_module(region))
            return true;
    }
    return false;
}

static bool uses_module(const cfx_graph *g)
{
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next)
        if (n->op == CFX_OP_GET_ATTR || n->op == CFX_OP_CALL_MODULE ||
            regions_use_module(n->args) || regions_use_module(n->kwargs))
            return true;
    return false;
}

/* `def forward(x, y):`, without self. */
static cfx_status plain_signature(void *ctx, cfx_pycode *gen, const cfx_pycode_text *params,
                                  size_t n, cfx_pycode_text returns, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    (void)ctx;
    (void)gen;
    cfxi_base_out_begin(&out, sink);
    cfxi_base_out_str(&out, "def forward(");
    for (size_t i = 0; i < n; i++) {
        cfxi_base_out_str(&out, i ? ", " : "");
        cfxi_base_out_write(&out, params[i].data, params[i].size);
    }
    cfxi_base_out_char(&out, ')');
    cfxi_base_out_write(&out, returns.data, returns.size);
    cfxi_base_out_char(&out, ':');
    return cfxi_base_out_end(&out, err);
}

/* ---- imports ------------------------------------------------------------------------------- */

/* The length of the module's name in "pkg.mod.Class.fn"; 0 for a builtin. */
static size_t module_size(const char *qualified)
{
    size_t size = 0;
    for (const char *part = qualified;;) {
        const char *dot = strpbrk(part, ".[,| ");  /* list[torch.Tensor] is not in `list` */
        if (!dot || *dot != '.' || (*part >= 'A' && *part <= 'Z'))
            return size;
        size = (size_t)(dot - qualified);
        part = dot + 1;
    }
}

static bool same_module(const char *a, size_t size, const char *b)
{
    return module_size(b) == size && memcmp(a, b, size) == 0;
}

static bool is_builtin(const char *qualified, size_t module)
{
    return module == 0 || (module == 8 && memcmp(qualified, "builtins", 8) == 0);
}

/* Each module once, in the order of their first use; torch has its line already. */
static void write_imports(cfxi_out *out, const cfx_pycode_result *code, bool torch)
{
    if (torch)
        cfxi_base_out_str(out, "import torch\n");
    for (size_t i = 0; i < code->n_globals; i++) {
        const char *qualified = code->globals[i].qualified;
        size_t module = module_size(qualified);
        bool known = is_builtin(qualified, module) || (torch && same_module("torch", 5, qualified));
        for (size_t j = 0; j < i && !known; j++)
            known = same_module(qualified, module, code->globals[j].qualified);
        if (known)
            continue;
        cfxi_base_out_str(out, "import ");
        cfxi_base_out_write(out, qualified, module);
        cfxi_base_out_char(out, '\n');
    }
    if (code->builtins & CFX_PYCODE_INF)
        cfxi_base_out_str(out, "from math import inf\n");
    if (code->builtins & CFX_PYCODE_NAN)
        cfxi_base_out_str(out, "from math import nan\n");
    if (code->builtins & CFX_PYCODE_DEVICE)
        cfxi_base_out_str(out, "from torch import device\n");
}

/* `pkg_mod_fn = pkg.mod.fn`; a builtin that keeps its name needs no line. */
static void write_names(cfxi_out *out, const cfx_pycode_result *code, bool *any)
{
    if (code->builtins & CFX_PYCODE_NONETYPE) {
        cfxi_base_out_str(out, "\nNoneType = type(None)\n");
        *any = true;
    }
    for (size_t i = 0; i < code->n_globals; i++) {
        const cfx_pycode_name *global = &code->globals[i];
        size_t module = module_size(global->qualified);
        bool builtin = is_builtin(global->qualified, module);
        const char *source = global->qualified + (builtin && module ? module + 1 : 0);
        if (builtin && strcmp(source, global->name) == 0)
            continue;
        if (!*any)
            cfxi_base_out_char(out, '\n');
        *any = true;
        cfxi_base_out_str(out, global->name);
        cfxi_base_out_str(out, " = ");
        cfxi_base_out_str(out, source);
        cfxi_base_out_char(out, '\n');
    }
}

/* ---- the function -------------------------------------------------------------------------- */

static void write_function(cfxi_out *out, const cfx_pycode_result *code, size_t indent)
{
    const char *line = code->source.data + 3; /* three newlines go before the head */
    const char *end = code->source.data + code->source.size - 4; /* and four blanks after it */
    while (line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t size = newline ? (size_t)(newline - line) + 1 : (size_t)(end - line);
        cfxi_base_out_spaces(out, indent);
        cfxi_base_out_write(out, line, size);
        line += size;
    }
    if (code->n_lines == 1) { /* parameters and nothing else */
        cfxi_base_out_spaces(out, indent + 4);
        cfxi_base_out_str(out, "pass\n");
    }
}

/* A name that Python takes for a class and that hides nothing the code may need. */
static cfx_status check_class(const char *name, cfx_error *err)
{
    const size_t size = strlen(name);
    if (cfxi_base_is_python_identifier(name, size) && !cfx_name_is_reserved(name, size))
        return CFX_OK;
    return cfx_error_set(err, CFX_E_VALUE, "'%.100s' is not a valid Python class name; use a name "
                         "such as Model", name);
}

cfx_status cfxi_emit_py_file(cfx_graph *g, const char *class_name, const cfxi_py_init *init,
                             cfx_sink sink, cfx_error *err)
{
    cfx_pycode_options options = {0};
    cfx_pycode_result code;
    cfxi_out out;
    if (class_name)
        CFX_TRY(check_class(class_name, err));
    if (!class_name && !uses_module(g))
        options.signature = plain_signature;
    CFX_TRY(cfxi_emit_py_generate(g, &options, true, init, &code, err));
    bool torch = class_name || (code.builtins & CFX_PYCODE_TORCH);
    bool any = false;
    cfxi_base_out_begin(&out, sink);
    write_imports(&out, &code, torch);
    bool imports = out.used > 0;
    write_names(&out, &code, &any);
    if (imports || any)
        cfxi_base_out_str(&out, "\n\n");
    if (class_name) {
        cfxi_base_out_str(&out, "class ");
        cfxi_base_out_str(&out, class_name);
        cfxi_base_out_str(&out, "(torch.nn.Module):\n");
    }
    if (init)
        cfxi_base_out_write(&out, init->text->data, init->text->size);
    write_function(&out, &code, class_name ? 4 : 0);
    cfx_pycode_free(&code);
    return cfxi_base_out_end(&out, err);
}

cfx_status cfx_codegen_python_file(cfx_graph *g, const char *class_name, cfx_sink sink,
                                   cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    return cfxi_emit_py_file(g, class_name, NULL, sink, err);
}
