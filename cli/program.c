/* program.c - graphs that can be run: lowered, with their weights and inputs. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cfx_state *weights_of(const cli_input *in, const char *weights, cfx_error *err)
{
    if (weights)
        return cfx_state_load(weights, NULL, err);
    if (!in->module)
        return cfx_state_new(NULL, err);
    cfx_state *state = cfx_module_state(in->scope, in->module);
    if (!state)
        *err = *cfx_scope_error(in->scope);
    return state;
}

cfx_status cli_program_begin(cli_program *p, const cli_input *in, const char *weights,
                             const cfx_runtime_options *options, cfx_error *err)
{
    *p = (cli_program){.dims = cfx_dims_new(NULL, err)};
    if (p->dims)
        p->rt = cfx_runtime_new(options, err);
    if (p->rt)
        p->state = weights_of(in, weights, err);
    return p->state ? CFX_OK : err->status;
}

void cli_program_end(cli_program *p)
{
    for (size_t i = 0; i < p->num_inputs; i++)
        cfx_datum_release(p->inputs[i]);
    free(p->inputs);
    if (!p->executable)
        cfx_signature_free((cfx_signature *)p->signature);
    cfx_session_free(p->session);
    cfx_executable_free(p->executable);
    cfx_program_free(p->program);
    cfx_state_free(p->state);
    cfx_runtime_free(p->rt);
    cfx_dims_free(p->dims);
}

typedef struct telling {
    const cli_input *in;
    bool told;
} telling;

/* "model.ir: model.py:12: ... (node %x)" */
static cfx_status tell(void *ctx, const cfx_node *n, const char *why)
{
    telling *t = ctx;
    (void)n;
    fprintf(stderr, "%s: %s\n", t->in->name, why);
    t->told = true;
    return CFX_OK;
}

/* Says what to do if parameters are missing because none were given. */
static cfx_status without_weights(const cli_program *p, cfx_error *err)
{
    const cfx_error why = *err;
    if (err->status != CFX_E_KEY || cfx_state_size(p->state) > 0)
        return err->status;
    return cfx_error_set(err, CFX_E_KEY, "the graph needs parameters (use --weights FILE): %.400s",
                         why.message);
}

static cfx_status make_inputs(cli_program *p, cfx_error *err)
{
    p->inputs = calloc(p->num_inputs + 1, sizeof *p->inputs);
    if (p->inputs)
        return CFX_OK;
    p->num_inputs = 0;
    return cfx_error_set(err, CFX_E_NOMEM, "out of memory");
}

cfx_status cli_program_make(cli_program *p, const cli_input *in, bool *told, cfx_error *err)
{
    telling t = {in, false};
    const cfx_lower_options options = {.each = tell, .ctx = &t};
    const cfx_module_tree tree = cfx_module_as_tree(in->module);
    cfx_status status = cfx_graph_lower(in->graph, in->module ? &tree : NULL, &options, err);
    *told = t.told;
    if (status != CFX_OK)
        return status;
    p->program = cfx_program_new(in->graph, p->state, NULL, err);
    if (!p->program)
        return without_weights(p, err);
    p->num_inputs = cfx_program_num_inputs(p->program);
    return make_inputs(p, err);
}

cfx_status cli_program_print_plans(const cli_program *p, cfx_sink out, cfx_error *err)
{
    return p->executable ? cfx_executable_print_plans(p->executable, out, err)
                         : cfx_program_print_plans(p->program, out, err);
}

/* Puts a compiled program in the place of the one that was made. */
static cfx_status freeze(cli_program *p, cfx_graph *g, cfx_error *err)
{
    cfx_program *frozen = cfx_program_freeze(g, p->state, NULL, &p->compile, err);
    if (!frozen)
        return err->status;
    cfx_program_free(p->program);
    p->program = frozen;
    return CFX_OK;
}

cfx_status cli_program_load(cli_program *p, const cli_input *in, bool weights, bool *told,
                            cfx_error *err)
{
    if (!in->package) {
        cfx_status status = cli_program_make(p, in, told, err);
        if (status == CFX_OK)
            status = freeze(p, in->graph, err);
        p->signature = status ? NULL : cfx_signature_of_graph(in->graph, NULL, err);
        return status ? status : p->signature ? CFX_OK : err->status;
    }
    if (!weights && !cfx_package_weights(in->package))
        return cfx_error_set(err, CFX_E_VALUE, "the weights of this file are kept elsewhere; use "
                             "--weights FILE");
    const cfx_executable_options options = {.weights = weights ? p->state : NULL,
                                            .compile = &p->compile};
    p->executable = cfx_executable_new(in->package, &options, err);
    p->session = p->executable ? cfx_executable_session(p->executable, err) : NULL;
    if (!p->session)
        return err->status;
    p->signature = cfx_executable_signature(p->executable, 0);
    p->num_inputs = cfx_signature_num_arguments(p->signature);
    return make_inputs(p, err);
}

cfx_status cli_program_open(cli_program *p, const cli_input *in, const char *weights,
                            const cfx_runtime_options *options, cfx_precision precision,
                            bool *told, cfx_error *err)
{
    const cfx_status status = cli_program_begin(p, in, weights, options, err);
    p->compile.precision = precision;
    return status ? status : cli_program_load(p, in, weights != NULL, told, err);
}

cfx_status cli_program_fill(cli_program *p, const cli_input *in, const cli_args *args,
                            const char *random, cfx_error *err)
{
    const cfx_status status = cli_give_inputs(p, args->repeated, args->num_repeated, err);
    return status || !random ? status : cli_random_inputs(p, in->graph, random, err);
}

const char *cli_program_input(const cli_program *p, size_t i)
{
    cfx_signature_input in;
    if (!p->executable)
        return cfx_program_input(p->program, i);
    return i < p->num_inputs && cfx_signature_input_at(p->signature, i, &in) ? in.name : NULL;
}

cfx_datum cli_program_run(const cli_program *p, size_t *graph, cfx_error *err)
{
    *graph = 0;
    if (p->executable)
        return cfx_executable_run(p->executable, p->session, p->rt, p->inputs, p->num_inputs, graph,
                                  err);
    return cfx_program_run(p->program, p->rt, p->inputs, p->num_inputs, err);
}

/* "it has x, y" */
static cfx_status no_input(const cli_program *p, const char *name, size_t size, cfx_error *err)
{
    char all[200] = "";
    size_t used = 0;
    for (size_t i = 0; i < p->num_inputs; i++) {
        const char *one = cli_program_input(p, i);
        if (used + strlen(one) + 8 > sizeof all) {
            snprintf(all + used, sizeof all - used, ", ...");
            break;
        }
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", one);
    }
    return cfx_error_set(err, CFX_E_KEY, "the graph has no input '%.*s'; its inputs: %s",
                         size > 80 ? 80 : (int)size, name, p->num_inputs ? all : "none");
}

cfx_status cli_program_set(cli_program *p, const char *name, size_t size, cfx_datum value,
                           cfx_error *err)
{
    for (size_t i = 0; i < p->num_inputs; i++) {
        const char *one = cli_program_input(p, i);
        if (strlen(one) != size || memcmp(one, name, size) != 0)
            continue;
        if (p->inputs[i].kind != CFX_DATUM_INVALID)
            return cfx_error_set(err, CFX_E_VALUE, "the input '%s' is given twice", one);
        p->inputs[i] = cfx_datum_retain(value);
        return CFX_OK;
    }
    return no_input(p, name, size, err);
}
