/* annotate.c - gives nodes the types that the operator table says they have.
 *
 *     before                                          after
 *     %x = placeholder[target=x]()                    %x = placeholder[target=x]()
 *     %y = call_function[target=torch.relu](%x)       %y: &torch.Tensor = call_function[...](%x)
 *     %n = call_method[target=dim](%y)                %n: &builtins.int = call_method[...](%y)
 *     output(%n)                                      output(%n)
 *
 * Needs: nothing. Keeps: existing types, and everything else. A call of a method or a sign
 * says something only if its first argument is known to be a tensor; with the option
 * `inputs_are_tensors` inputs and attributes are taken for some.
 *
 * One walk. Linear in nodes and edges.
 */
#include "analysis/call_arguments_impl.h"
#include "pass_impl.h"

typedef struct annotate_job {
    const cfx_module_tree *modules;
    bool inputs;
    bool changed;
} annotate_job;

/* The qualified name of a type of the schema language; NULL if it has none. */
static const char *python_name(const char *type)
{
    static const char *const names[][2] = {{"Tensor", "torch.Tensor"}, {"bool", "builtins.bool"},
                                           {"float", "builtins.float"}, {"int", "builtins.int"},
                                           {"str", "builtins.str"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], type) == 0)
            return names[i][1];
    return NULL;
}

static cfx_status set_type(annotate_job *job, cfx_node *n, const char *name, cfx_error *err)
{
    cfx_graph *g = n->graph;
    cfx_value type = cfx_value_name(g, name, strlen(name), err);
    if (type.kind == CFX_KIND_INVALID)
        return CFX_E_NOMEM;
    bool known = cfx_value_object(type) || !g->host || !g->host->resolve;
    cfx_status status = known ? cfx_node_set_type(n, type, err) : CFX_OK;
    if (status != CFX_OK || !known)
        cfx_value_discard(g, type);
    job->changed = job->changed || (known && status == CFX_OK);
    return status;
}

static cfx_status visit(annotate_job *job, const cfxi_tensors *tensors, cfx_node *n, cfx_error *err)
{
    cfx_schema_param result;
    const char *type;
    if (cfx_node_type(n).kind != CFX_KIND_INVALID)
        return CFX_OK;
    CFX_TRY(cfxi_analysis_result_type(tensors, n, &result, &type, err));
    const char *name = type ? python_name(type) : NULL;
    return name ? set_type(job, n, name, err) : CFX_OK;
}

static cfx_status annotate(cfx_graph *g, void *ctx, cfx_error *err)
{
    annotate_job *job = ctx;
    cfxi_tensors tensors;
    cfx_iter it;  /* the host is asked for types, and may run any code */
    cfx_status status = cfxi_analysis_tensors_begin(&tensors, g, job->modules, job->inputs, err);
    cfx_iter_begin(&it, g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;)
        status = visit(job, &tensors, n, err);
    cfx_iter_end(&it);
    cfxi_analysis_tensors_end(&tensors);
    return status == CFX_OK ? cfxi_analysis_each_region(g, annotate, ctx, err) : status;
}

cfx_status cfxi_pass_annotate(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                              bool *changed, cfx_error *err)
{
    const cfx_annotate_options *options = opts;
    annotate_job job = {.modules = modules, .inputs = options && options->inputs_are_tensors};
    cfx_status status = annotate(g, &job, err);
    if (changed)
        *changed = job.changed;
    return status;
}
