/* captured.c - what trace and script write of a captured model: its graph, and its weights. */
#include "cli.h"

#include <string.h>
#include <unistd.h>

static cfx_status tell(void *ctx, const cfx_node *n, const char *why)
{
    (void)n;
    *(bool *)ctx = true;
    fprintf(stderr, "%s\n", why);
    return CFX_OK;
}

static int lower(const cli_model *m, cfx_module *captured)
{
    const cfx_module_tree tree = cfx_module_as_tree(captured);
    cfx_error err = {.status = CFX_OK};
    bool told = false;
    const cfx_lower_options options = {.each = tell, .ctx = &told, .join_tied = true};
    if (cfx_graph_lower(cfx_module_graph(captured), &tree, &options, &err) == CFX_OK)
        return CLI_OK;
    if (!told)
        fprintf(stderr, "%s: %s\n", m->name, err.message);
    return CLI_BAD_INPUT;
}

/* What a generator makes of the modules needs the calls as they were written. */
static bool is_lowered(const cli_written *what)
{
    if (what->output && cli_is_package(what->output))
        return what->lower;
    return !what->keep_modules && !(what->generator->flags & CFX_GENERATOR_MODULES);
}

static cfx_status make_text(cfx_module *captured, const cli_written *what, cfx_sink out,
                            cfx_error *err)
{
    const cfx_module_tree tree = cfx_module_as_tree(captured);
    const cfx_generate_options options = {.modules = &tree,
                                          .class_name = cfx_module_class_name(captured)};
    return cfx_generate(what->generator, cfx_module_graph(captured), &options, out, err);
}

/* All of the text is there before a file is touched. */
static int write_text(const cli_model *m, cfx_module *captured, const cli_written *what)
{
    cfx_buffer text;
    cfx_error err = {.status = CFX_OK};
    int code = CLI_OK;
    cfx_buffer_init(&text, NULL);
    if (make_text(captured, what, cfx_buffer_sink(&text), &err) != CFX_OK) {
        fprintf(stderr, "%s: %s\n", m->name, err.message);
        code = CLI_BAD_INPUT;
    } else if (what->output) {
        code = cli_write_file(what->output, &text);
    } else if (cli_has_colour(stdout) && what->generator->flags & CFX_GENERATOR_COLOURED) {
        cli_colour colour;
        cfx_sink out = cli_colour_sink(&colour, cli_stdout());
        out.write(out.ctx, text.data, text.size);
        cli_colour_free(&colour);
    } else {
        fwrite(text.data, 1, text.size, stdout);
    }
    cfx_buffer_free(&text);
    return code;
}

static int write_weights(const cli_model *m, cfx_module *captured, const char *path,
                         size_t *tensors)
{
    cfx_state *state = cfx_module_state(m->scope, captured);
    cfx_error err = {.status = CFX_OK};
    int code = CLI_OK;
    if (!state)
        return cli_model_failed(m);
    *tensors = cfx_state_size(state);
    if (cfx_state_save(state, path, &err) != CFX_OK) {
        fprintf(stderr, "%s: %s\n", path, err.message);
        code = CLI_BAD_INPUT;
    }
    cfx_state_free(state);
    return code;
}

/* ---- weights that nobody asked for ----------------------------------------------------------- */

bool cli_beside(const char *output, char *out, size_t room)
{
    const char *slash = strrchr(output, '/');
    const char *name = slash ? slash + 1 : output;
    const char *dot = strrchr(name, '.');
    const size_t size = dot && dot != name ? (size_t)(dot - output) : strlen(output);
    const int n = snprintf(out, room, "%.*s.safetensors", (int)size, output);
    return n > 0 && (size_t)n < room;
}

/* A graph without its weights does not run, so they lie beside it. They are initial ones: a file
 * that is there may hold trained ones, and stays. */
static int write_beside(const cli_model *m, cfx_module *captured, const char *output)
{
    char path[4096];
    size_t tensors = 0;
    cfx_state *state = cfx_module_state(m->scope, captured);
    if (!state)
        return cli_model_failed(m);
    tensors = cfx_state_size(state);
    cfx_state_free(state);
    if (tensors == 0 || !cli_beside(output, path, sizeof path))
        return CLI_OK;
    if (access(path, F_OK) == 0) {
        printf("%s: left as it is; --weights %s replaces it with initial weights\n", path, path);
        return CLI_OK;
    }
    const int code = write_weights(m, captured, path, &tensors);
    if (code == CLI_OK)
        printf("%s: %zu tensor%s\n", path, tensors, tensors == 1 ? "" : "s");
    return code;
}

/* Standard output is free to say what was done if the graph went elsewhere. */
static void print_summary(const cli_written *what, cfx_graph *g, size_t tensors)
{
    if (!what->output)
        return;
    if (strcmp(what->generator->name, "text") != 0)
        printf("%s: %zu nodes, as %s\n", what->output, cfx_graph_size(g), what->generator->name);
    else
        printf("%s: %zu nodes, %s\n", what->output, cfx_graph_size(g),
               what->keep_modules ? "with calls of modules (for cfx show, cfx code)"
                                  : "with operator calls only (for cfx run)");
    if (what->weights)
        printf("%s: %zu tensor%s\n", what->weights, tensors, tensors == 1 ? "" : "s");
}

/* ---- one file ------------------------------------------------------------------------------- */

/* It has graph, layers and weights, so nothing is left for other files. */
static int write_package(const cli_model *m, cfx_module *captured, const cli_written *what)
{
    cli_parts parts = {0};
    cli_described d = {.weights = NULL};
    cfx_error err = {.status = CFX_OK};
    cfx_status status = cli_describe(&d, captured, &err);
    const char *const names[] = {"graph.ir", "module.ir"};
    const cfx_buffer *const texts[] = {&d.graph, &d.modules};
    for (size_t i = 0; status == CFX_OK && i < 2; i++) {
        cfx_buffer *out = cli_parts_add(&parts, names[i], &err);
        status = out ? cfx_buffer_append(out, texts[i]->data, texts[i]->size) : err.status;
    }
    if (status == CFX_OK)
        status = cli_parts_save(&parts, what->output, cfx_module_class_name(captured),
                                what->no_weights ? NULL : d.weights, &err);
    const size_t tensors = what->no_weights || !d.weights ? 0 : cfx_state_size(d.weights);
    if (status == CFX_OK)
        printf("%s: %zu nodes, %zu tensor%s\n", what->output,
               cfx_graph_size(cfx_module_graph(captured)), tensors, tensors == 1 ? "" : "s");
    else
        fprintf(stderr, "%s: %s\n", m->name, err.message);
    cli_described_free(&d);
    cli_parts_free(&parts);
    return status == CFX_OK ? CLI_OK : CLI_BAD_INPUT;
}

int cli_check_written(const cli_args *args, const cli_written *what)
{
    if (what->weights && what->no_weights)
        return cli_usage_error(args->verb, "give either --weights or --no-weights, not both");
    if (!what->output || !cli_is_package(what->output))
        return CLI_OK;
    if (what->weights)
        return cli_usage_error(args->verb, "'%s' holds the weights, too; leave out --weights",
                               what->output);
    if (strcmp(what->generator->name, "text") != 0)
        return cli_usage_error(args->verb, "'%s' holds IR text; leave out --%s, or choose another "
                               "file", what->output, what->generator->name);
    return CLI_OK;
}

int cli_write_captured(const cli_model *m, cfx_module *captured, const cli_written *what)
{
    size_t tensors = 0;
    int code = is_lowered(what) ? lower(m, captured) : CLI_OK;
    cli_progress_end();
    if (code == CLI_OK && what->output && cli_is_package(what->output))
        return write_package(m, captured, what);
    if (code == CLI_OK && what->weights)
        code = write_weights(m, captured, what->weights, &tensors);
    if (code == CLI_OK)
        code = write_text(m, captured, what);
    if (code == CLI_OK)
        print_summary(what, cfx_module_graph(captured), tensors);
    if (code == CLI_OK && what->output && !what->weights && !what->no_weights &&
        strcmp(what->generator->name, "text") == 0)
        code = write_beside(m, captured, what->output);
    return code;
}
