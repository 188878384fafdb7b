/* c_program.c - runs a generated model: loads weights, reads inputs, writes results; captures it,
 * and writes it again. For tests/python/test_c_code.py.
 *
 *     program run WEIGHTS INPUTS OUT.safetensors   computes; inputs are x0, x1, ... of a file
 *     program code                                 the C source of what is captured
 *     program text                                 the lowered text of what is captured
 */
#include <cfx/cfx.h>
#include <cfx/embed/embed.h>

#include <stdio.h>
#include <string.h>

cfx_module *cfx_model(cfx_scope *s);

static cfx_status write_out(void *ctx, const char *data, size_t size)
{
    return fwrite(data, 1, size, ctx) == size ? CFX_OK : CFX_E_IO;
}

static int failed(const char *message)
{
    fprintf(stderr, "%s\n", message);
    return 1;
}

/* Tensors are y0, y1, ... in the order of the result. */
static void add_results(cfx_scope *s, cfx_state *to, cfx_datum d)
{
    char name[32];
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    cfx_error err = {0};
    for (size_t i = 0; i < n; i++)
        add_results(s, to, items[i]);
    snprintf(name, sizeof name, "y%zu", cfx_state_size(to));
    if (d.kind == CFX_DATUM_TENSOR && cfx_state_set(to, name, d.as.tensor, &err) != CFX_OK)
        cfx_scope_fail(s, err.status, "%s", err.message);
}

static void run(cfx_scope *s, cfx_module *m, char **files)
{
    cfx_error err = {0};
    cfx_var in[32];
    size_t n = 0;
    char name[32];
    cfx_module_load(s, m, files[0]);
    cfx_state *given = cfx_state_load(files[1], NULL, &err);
    cfx_state *results = cfx_state_new(NULL, &err);
    for (cfx_tensor *t; given && n < 32; n++) {
        snprintf(name, sizeof name, "x%zu", n);
        if (!(t = cfx_state_get(given, name)))
            break;
        in[n] = cfx_var_from_tensor(s, t);
    }
    cfx_datum d = cfx_var_datum(s, cfx_call_at(CFX_HERE(s), m, cfx_vars_make(in, n)));
    add_results(s, results, d);
    if (cfx_scope_ok(s) && cfx_state_save_safetensors(results, files[2], &err) != CFX_OK)
        cfx_scope_fail(s, err.status, "%s", err.message);
    cfx_datum_release(d);
    cfx_state_free(given);
    cfx_state_free(results);
}

static void show(cfx_scope *s, cfx_module *m, bool code)
{
    cfx_error err = {0};
    cfx_module *captured = cfx_trace(s, m);
    if (!cfx_scope_ok(s))
        return;
    const cfx_module_tree tree = cfx_module_as_tree(captured);
    const cfx_sink out = {write_out, stdout};
    cfx_graph *g = cfx_module_graph(captured);
    const cfx_status status =
        code                                              ? cfx_codegen_c(g, &tree, NULL, out, &err)
        : cfx_graph_lower(g, NULL, NULL, &err) == CFX_OK ? cfx_graph_text(g, out, &err)
                                                          : err.status;
    if (status != CFX_OK)
        cfx_scope_fail(s, status, "%s", err.message);
}

int main(int argc, char **argv)
{
    cfx_error err = {0};
    cfx_scope *s = cfx_scope_new(NULL, &err);
    if (!s || argc < 2)
        return failed("nothing to do");
    cfx_module *m = cfx_model(s);
    if (strcmp(argv[1], "run") == 0 && argc == 5)
        run(s, m, argv + 2);
    else
        show(s, m, strcmp(argv[1], "code") == 0);
    const int status = cfx_scope_ok(s) ? 0 : failed(cfx_scope_error(s)->message);
    cfx_scope_free(s);
    return status;
}
