/* custom_operator.c - an operator of your own: computed, captured, checked and run in a graph.
 *
 *     cc custom_operator.c $(pkg-config --cflags --libs cfx) -lm -o custom_operator
 *
 * The operator is swish, x * sigmoid(beta * x). It needs three things: a schema, which says how it
 * is called; a rule, which says what it gives, from types and shapes alone; and a kernel.
 */
#include <cfx/cfx.h>

#include <math.h>
#include <stdio.h>

/* ---- the operator -------------------------------------------------------------------------- */

/* The result is as x is. Sizes may be symbols here: nothing looks at elements. */
static cfx_status swish_infer(cfx_kernel_call *c)
{
    if (cfx_tensor_dtype(cfx_kernel_tensor(c, 0)) != CFX_DTYPE_FLOAT32)
        return cfx_kernel_fail(c, CFX_E_TYPE, "swish is for float32");
    return cfx_kernel_describe_like(c, 0, 0);
}

typedef struct swish_job {
    const float *x;
    float *y;
    float beta;
} swish_job;

/* A part of the elements, in one of the runtime's threads. */
static void swish_part(void *ctx, int64_t begin, int64_t end)
{
    const swish_job *job = ctx;
    for (int64_t i = begin; i < end; i++)
        job->y[i] = job->x[i] / (1 + expf(-job->beta * job->x[i]));
}

static cfx_status swish_kernel(cfx_kernel_call *c)
{
    cfx_tensor *x = cfx_kernel_dense(c, 0, CFX_DTYPE_FLOAT32); /* itself, or a tidy copy */
    cfx_tensor *y = cfx_kernel_result(c, 0);                   /* memory to fill */
    if (x && y) {
        swish_job job = {cfx_tensor_data(x), cfx_tensor_data(y), (float)cfx_kernel_arg(c, 1).as.f};
        cfx_runtime_parallel(cfx_kernel_runtime(c), cfx_tensor_numel(x), 4096, swish_part, &job);
    }
    cfx_tensor_release(x);
    return CFX_OK; /* what failed on the way is known already */
}

static const cfx_custom_operator rows[] = {
    {.name = "mylib.swish",
     .schema = "(Tensor x, float beta=1.0) -> Tensor",
     .infer = swish_infer,
     .kernel = swish_kernel},
};

/* ---- in a program in C --------------------------------------------------------------------- */

static cfx_status write_stdout(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    return fwrite(data, 1, size, stdout) == size ? CFX_OK : CFX_E_IO;
}

static const cfx_sink out = {write_stdout, NULL};

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    return cfx_sum(s, cfx_apply_named(s, "mylib.swish", x, cfx_v(2.0)));
}

static const cfx_class net_class = {.name = "Net", .forward = forward};

static void show(cfx_scope *s, const char *what, cfx_var v)
{
    printf("%s", what);
    cfx_var_print(s, v, out);
    printf("\n");
}

static void in_a_program(cfx_scope *s)
{
    cfx_var x = cfx_arange(s, 4, .dtype = cfx_var_dtype(CFX_DTYPE_FLOAT32));
    show(s, "swish(x)    = ", cfx_apply_named(s, "mylib.swish", x));
    cfx_module *net = cfx_module_new(s, &net_class);
    show(s, "net(x)      = ", cfx_call(s, net, x));
    cfx_module *captured = cfx_trace(s, net); /* a graph, with a call of that name */
    if (captured)
        cfx_graph_text(cfx_module_graph(captured), out, NULL);
    show(s, "captured(x) = ", cfx_call(s, captured, x));
    cfx_apply_named(s, "mylib.swish", cfx_arange(s, 4)); /* integers: the scope has failed now */
}

/* ---- in a graph ---------------------------------------------------------------------------- */

static const char text[] = "graph():\n"
                           "  %x = placeholder[target=x]()\n"
                           "  %y = call_function[target=mylib.swish](beta=2, x=%x)  @ net.py:3\n"
                           "  output(%y)\n";

/* Who knows the library: lowering, which binds the arguments, and the program. */
static void in_a_graph(const cfx_library *lib, cfx_error *err)
{
    const cfx_module_tree known = {.library = lib};
    const cfx_program_options options = {.library = lib};
    cfx_program *program = NULL;
    cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, NULL, NULL, err);
    if (g && cfx_graph_lower(g, &known, NULL, err) == CFX_OK)
        program = cfx_program_new(g, NULL, &options, err);
    cfx_graph_release(g);

    cfx_runtime *rt = cfx_runtime_new(NULL, err);
    cfx_dims *dims = cfx_dims_new(NULL, err);
    cfx_datum x = cfx_datum_parse(dims, "float32[N, 3]", 13, NULL, err);
    cfx_datum y = cfx_program_infer(program, rt, dims, &x, 1, NULL, NULL, err);
    printf("shapes: float32[N, 3] -> ");
    cfx_datum_print(y, dims, out, err);
    printf("\n");
    cfx_datum_release(y);
    cfx_datum_release(x);
    cfx_dims_free(dims);
    cfx_runtime_free(rt);
    cfx_program_free(program);
}

int main(void)
{
    cfx_error err = {.status = CFX_OK};
    cfx_library *lib = cfx_library_new(rows, 1, NULL, NULL, &err);
    const cfx_scope_options options = {.library = lib};
    cfx_scope *s = lib ? cfx_scope_new(&options, &err) : NULL;
    if (s) {
        in_a_program(s);
        printf("error: %s\n", cfx_scope_error(s)->message); /* where, what, why */
        in_a_graph(lib, &err);
    }
    cfx_scope_free(s);
    cfx_library_release(lib);
    if (err.status != CFX_OK)
        fprintf(stderr, "custom_operator: %s\n", err.message);
    return err.status != CFX_OK;
}
