/* export_checks.c - what a program checks while it runs.
 *
 * ONNX has no assertions: what they say is kept as a text of the file. They go before the graph is
 * lowered, and with them what only they have asked: where in its memory a tensor begins, whether
 * gradients are wanted.
 *
 *     %offset = call_method[target=storage_offset](%x)
 *     %eq = call_function[target=operator.eq](%offset, 0)
 *     %_assert = call_function[target=torch._assert](%eq, 'x has an offset')
 *         =>  "model.py:12: x has an offset"
 */
#include "export_impl.h"
#include "ir/walk_impl.h"

#include <cfx/embed/pass.h>

/* The first text among the arguments; or NULL. */
static const char *message_of(const cfx_node *n)
{
    const char *text = NULL;
    for (size_t i = 0; i < cfx_node_num_args(n) && !text; i++)
        text = cfx_value_text(cfx_node_arg(n, i), NULL);
    const cfx_value named = cfx_node_kwarg(n, "message");
    return text || named.kind != CFX_KIND_STR ? text : cfx_value_text(named, NULL);
}

void cfxi_export_note_check(cfxi_exporter *x, const cfx_node *n)
{
    const char *text = message_of(n);
    const char *file = cfx_node_file(n);
    const char *before = x->checks;
    x->checks = cfxi_export_text(x, "%s%s%s:%u: %s", before ? before : "", before ? "\n" : "",
                                 file ? file : "", (unsigned)cfx_node_line(n),
                                 text ? text : cfx_operator_name(cfx_node_operator(n)));
}

/* len(parts) == 3: how many parts there are is told by that (export_parts.c). */
static bool tells_length(const cfx_node *n)
{
    const cfx_value asked = cfx_node_arg(n, 0);
    const cfx_value of = asked.kind == CFX_KIND_NODE ? cfx_node_arg(asked.as.node, 0) : asked;
    return of.kind == CFX_KIND_NODE && cfx_node_operator(of.as.node) == CFX_OPID_len;
}

static bool is_check(const cfx_node *n)
{
    return (cfx_operator_flags(cfx_node_operator(n)) & CFX_OPERATOR_CHECKS) &&
           cfx_node_num_users(n) == 0 && !tells_length(n);
}

static cfx_status drop_from(cfxi_exporter *x, cfx_graph *g, bool *dropped, cfx_error *err)
{
    cfx_node *next;
    for (cfx_node *n = cfx_graph_first(g); n; n = next) {
        next = cfx_node_next(n);
        if (!is_check(n))
            continue;
        cfxi_export_note_check(x, n);
        CFX_TRY(cfx_graph_erase(g, n, err));
        *dropped = true;
    }
    return CFX_OK;
}

cfx_status cfxi_export_drop_checks(cfxi_exporter *x, cfx_graph *g, const cfx_module_tree *modules,
                                   cfx_error *err)
{
    static const cfx_dce_options options = {.strict = true};
    cfxi_region_walk walk;
    bool dropped = false;
    cfx_graph *each;
    cfxi_ir_regions_begin(&walk, g);
    while ((each = cfxi_ir_regions_next(&walk)))
        CFX_TRY(drop_from(x, each, &dropped, err));
    return dropped ? cfx_pass_run(cfx_pass_find("dce"), g, modules, &options, NULL, err) : CFX_OK;
}
