/* run_graph.c - runs a model in C: a graph as text, its weights, an input; no Python anywhere.
 *
 *     run_graph model.ir model.safetensors x.npy
 *
 * prints what the model gives. Without arguments it writes a small model of its own first, and runs
 * that. With cfx installed:
 *
 *     cc run_graph.c $(pkg-config --cflags --libs cfx) -o run_graph
 *
 * From text to numbers it is five steps: parse, lower, load the weights, make a program, run it.
 * What is made is given back, in any order; NULL may be, too. A call that is given what a failed
 * one returned fails with the first reason, so one look at the last result is enough.
 */
#include <cfx/cfx.h>

#include <stdio.h>

static cfx_status write_stdout(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    return fwrite(data, 1, size, stdout) == size ? CFX_OK : CFX_E_IO;
}

static const cfx_sink out = {write_stdout, NULL};

static cfx_graph *read_graph(const char *path, cfx_error *err)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(text, 1, sizeof text, file) : 0;
    if (!file || size == sizeof text)
        cfx_error_set(err, CFX_E_IO, "cannot read '%s', or it is too long", path);
    if (file)
        fclose(file);
    return err->status ? NULL : cfx_graph_parse(text, size, NULL, NULL, err);
}

/* ---- running ------------------------------------------------------------------------------- */

static cfx_status print(cfx_datum d, cfx_error *err)
{
    cfx_status status = d.kind == CFX_DATUM_TENSOR ? cfx_tensor_print(d.as.tensor, out, err)
                                                   : cfx_datum_print(d, NULL, out, err);
    putchar('\n');
    return status;
}

static cfx_status run(const char *model, const char *weights_file, const char *input,
                      cfx_error *err)
{
    cfx_graph *graph = read_graph(model, err);
    cfx_state *weights = graph ? cfx_state_load(weights_file, NULL, err) : NULL; /* mapped */
    cfx_program *program = NULL;
    if (weights && cfx_graph_lower(graph, NULL, NULL, err) == CFX_OK)
        program = cfx_program_new(graph, weights, NULL, err);
    cfx_graph_release(graph); /* the program keeps what it needs */
    cfx_state_free(weights);

    cfx_tensor *given = program ? cfx_tensor_load(input, NULL, err) : NULL;
    cfx_datum x = cfx_datum_tensor(given); /* x owns it now */
    cfx_runtime *rt = given ? cfx_runtime_new(NULL, err) : NULL; /* all threads, seed 0 */
    cfx_datum y = cfx_program_run(program, rt, &x, 1, err); /* as often as one likes */
    if (y.kind != CFX_DATUM_INVALID)
        print(y, err);
    cfx_datum_release(y);
    cfx_datum_release(x);
    cfx_program_free(program);
    cfx_runtime_free(rt);
    return err->status;
}

/* ---- a model to run ------------------------------------------------------------------------ */

static const char small[] = "graph():\n"
                            "  %x = placeholder[target=x]()\n"
                            "  %weight = get_attr[target=fc.weight]()\n"
                            "  %bias = get_attr[target=fc.bias]()\n"
                            "  %fc = call_function[target=torch.nn.functional.linear]"
                            "(%x, %weight, %bias)  @ model.py:7\n"
                            "  %probabilities = call_function[target=torch.softmax](%fc, -1)\n"
                            "  output(%probabilities)\n";

/* A tensor over memory of ours: it is not copied. */
static cfx_tensor *over(float *data, int64_t rows, int64_t columns, cfx_error *err)
{
    int64_t sizes[] = {rows, columns};
    return cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, rows ? sizes : sizes + 1, NULL, rows ? 2 : 1,
                                  data, false, NULL, NULL, NULL, err);
}

static cfx_status write_small(cfx_error *err)
{
    float weight_data[] = {1, 0, -1, 0.5f, 0.5f, 0};
    float bias_data[] = {0, 0.25f};
    float x_data[] = {1, 2, 3, 3, 2, 1};
    cfx_tensor *weight = over(weight_data, 2, 3, err);
    cfx_tensor *bias = over(bias_data, 0, 2, err);
    cfx_tensor *x = over(x_data, 2, 3, err);
    cfx_state *state = cfx_state_new(NULL, err);
    FILE *file = fopen("run_graph.ir", "wb");
    if (!file || fputs(small, file) < 0)
        cfx_error_set(err, CFX_E_IO, "cannot write run_graph.ir");
    if (file)
        fclose(file);
    if (cfx_state_set(state, "fc.weight", weight, err) == CFX_OK && /* it takes its own count */
        cfx_state_set(state, "fc.bias", bias, err) == CFX_OK &&
        cfx_state_save(state, "run_graph.safetensors", err) == CFX_OK)
        cfx_tensor_save(x, "run_graph.npy", err);
    cfx_state_free(state);
    cfx_tensor_release(x);
    cfx_tensor_release(bias);
    cfx_tensor_release(weight);
    return err->status;
}

int main(int argc, char **argv)
{
    cfx_error err = {.status = CFX_OK};
    if (argc == 4)
        run(argv[1], argv[2], argv[3], &err);
    else if (write_small(&err) == CFX_OK)
        run("run_graph.ir", "run_graph.safetensors", "run_graph.npy", &err);
    if (err.status != CFX_OK)
        fprintf(stderr, "run_graph: %s\n", err.message);
    return err.status != CFX_OK;
}
