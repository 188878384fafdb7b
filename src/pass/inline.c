/* inline.c - replaces calls of modules that were captured, too, by the nodes of those modules.
 *
 *     before                                     after, if `block` was captured as
 *     %x = placeholder[target=x]()                 %a = placeholder[target=a]()
 *     %block = call_module[target=block](%x)       %fc = call_module[target=fc](%a)
 *     output(%block)                               output(%fc)
 *                                                is
 *                                                %x = placeholder[target=x]()
 *                                                %fc = call_module[target=block.fc](%x)
 *                                                output(%fc)
 *
 * Needs: the modules. A call is left alone if its arguments do not fit the inputs of the module's
 * graph, if there is an input for any number of them, or if that graph has no output.
 * Keeps: names (as far as they are free), order, types and locations of all other nodes and of the
 * copies; the scopes of copies nest in the scope of the call.
 *
 * First the calls are followed without a change, to find a module that contains itself. Then each
 * call is replaced where it stands, and what was put there is gone through in turn: recursion goes
 * as deep as modules nest, which is limited. Linear in the nodes and edges of the result.
 */
#include "analysis/splice_impl.h"
#include "ir/walk_impl.h"
#include "pass_impl.h"

typedef struct inline_job {
    const cfx_module_tree *modules;
    const cfx_inline_options *opts;
    cfx_graph *stack[CFX_MAX_REGION_DEPTH];  /* the graphs that are being put into one another */
    size_t depth;
    cfxi_vec taken;  /* of cfx_node *: users of calls that only took an item */
    bool changed;
} inline_job;

/* ---- what a call gives to the inputs ------------------------------------------------------- */

/* The value that a call gives to the `i`-th input `n`; INVALID if it gives none. */
static cfx_value argument_for(const cfx_node *call, const cfx_node *n, size_t i)
{
    cfx_value v = cfx_node_arg(call, i);
    return v.kind == CFX_KIND_INVALID ? cfx_node_kwarg(call, n->callee->ref->name->data) : v;
}

/* The default of an input, for the graph of the call; INVALID if it has none. */
static cfx_value default_of(const cfx_node *call, const cfx_node *n, cfx_error *err)
{
    cfx_value v = cfx_node_arg(n, 0);
    return cfxi_ir_is_plain(v) && !cfxi_ir_is_seq(v) && !cfxi_ir_is_str(v)
               ? v : cfx_value_map(call->graph, n->graph, v, NULL, NULL, err);
}

/* Whether every argument of a call goes to an input of `src`, and every input has one. */
static bool fits(const cfx_node *call, const cfx_graph *src)
{
    size_t inputs = 0;
    size_t given = 0;
    bool output = false;
    for (const cfx_node *n = src->root.next; n != &src->root; n = n->next) {
        output = output || n->op == CFX_OP_OUTPUT;
        if (n->op != CFX_OP_PLACEHOLDER)
            continue;
        bool has = argument_for(call, n, inputs++).kind != CFX_KIND_INVALID;
        given += has;
        if (n->callee->ref->name->data[0] == '*' || (!has && !n->args))
            return false;
    }
    return output && given == cfx_node_num_args(call) + (call->kwargs ? call->kwargs->size / 2 : 0);
}

static cfx_status bind_inputs(const cfx_node *call, cfx_graph *src, cfx_node_map *map,
                              cfx_error *err)
{
    size_t i = 0;
    for (const cfx_node *n = src->root.next; n != &src->root; n = n->next) {
        if (n->op != CFX_OP_PLACEHOLDER)
            continue;
        cfx_value v = argument_for(call, n, i++);
        if (v.kind == CFX_KIND_INVALID)
            v = default_of(call, n, err);
        if (v.kind == CFX_KIND_INVALID)
            return CFX_E_NOMEM;
        CFX_TRY(cfx_node_map_set(map, n, v, err));
    }
    return CFX_OK;
}

/* The graph that a node calls by way of a module, if it can be put in the place of the call. */
static cfx_graph *callee_of(const inline_job *job, const cfx_node *n, const char *path)
{
    if (n->op != CFX_OP_CALL_MODULE)
        return NULL;
    cfx_graph *src = job->modules->graph(job->modules->ctx, path);
    return src && fits(n, src) ? src : NULL;
}

/* ---- looking for modules that contain themselves ------------------------------------------- */

static cfx_status enter(inline_job *job, cfx_graph *src, const cfx_node *call, const char *path,
                        cfx_error *err)
{
    const char *file = cfx_node_file(call) ? cfx_node_file(call) : "?";
    for (size_t i = 0; i < job->depth; i++)
        if (job->stack[i] == src)
            return cfx_error_set(err, CFX_E_LIMIT, "%s:%u: the module '%s' calls itself and cannot "
                                 "be inlined (node %%%s)", file,
                                 cfx_node_line(call), path, call->name->data);
    if (job->depth == CFX_MAX_REGION_DEPTH)
        return cfx_error_set(err, CFX_E_LIMIT, "module calls nest more than %d deep at '%s'",
                             CFX_MAX_REGION_DEPTH, path);
    job->stack[job->depth++] = src;
    return CFX_OK;
}

/* "prefix" and the target of a node, joined by a dot. */
static cfx_status join(cfx_buffer *out, const char *prefix, const cfx_node *n, cfx_error *err)
{
    const cfx_str *name = n->callee->ref->name;
    bool dot = prefix[0] != '\0';
    cfx_buffer_free(out);
    if (cfx_buffer_append(out, prefix, strlen(prefix)) != CFX_OK ||
        cfx_buffer_append(out, ".", dot) != CFX_OK ||
        cfx_buffer_append(out, name->data, name->size) != CFX_OK)
        return cfxi_base_nomem(err);
    return CFX_OK;
}

typedef struct follow_job {
    inline_job *job;
    const char *prefix;
} follow_job;

static cfx_status follow(cfx_graph *g, void *ctx, cfx_error *err)
{
    inline_job *job = ((follow_job *)ctx)->job;
    cfx_buffer path;
    cfx_status status = CFX_OK;
    cfx_buffer_init(&path, g->allocator);
    cfxi_ir_graph_freeze(g);
    for (cfx_node *n = g->root.next; n != &g->root && status == CFX_OK; n = n->next) {
        if (n->op != CFX_OP_CALL_MODULE)
            continue;
        status = join(&path, ((follow_job *)ctx)->prefix, n, err);
        cfx_graph *src = status == CFX_OK ? callee_of(job, n, path.data) : NULL;
        if (!src)
            continue;
        status = enter(job, src, n, path.data, err);
        if (status == CFX_OK) {
            follow_job inner = {job, path.data};
            status = follow(src, &inner, err);
            job->depth--;
        }
    }
    cfxi_ir_graph_thaw(g);
    cfx_buffer_free(&path);
    return status == CFX_OK ? cfxi_analysis_each_region(g, follow, ctx, err) : status;
}

/* ---- what copies are given ----------------------------------------------------------------- */

/* Puts "prefix." before a path. */
static cfx_status prefix_path(cfx_node *n, const char *prefix, cfx_error *err)
{
    cfx_buffer path;
    if (n->op != CFX_OP_GET_ATTR && n->op != CFX_OP_CALL_MODULE)
        return CFX_OK;
    cfx_buffer_init(&path, n->graph->allocator);
    cfx_status status = join(&path, prefix, n, err);
    if (status == CFX_OK)
        status = cfx_node_set_target(n, (cfx_target){.name = path.data, .size = path.size}, err);
    cfx_buffer_free(&path);
    return status;
}

/* In a region, and in those in it. */
static cfx_status prefix_paths(cfx_graph *g, void *prefix, cfx_error *err)
{
    cfx_status status = CFX_OK;
    cfx_iter it;
    cfx_iter_begin(&it, g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;)
        status = prefix_path(n, prefix, err);
    cfx_iter_end(&it);
    return status == CFX_OK ? cfxi_analysis_each_region(g, prefix_paths, prefix, err) : status;
}

/* The scope that stands for `scope`, of the graph that was copied, inside the scope of the call. */
static cfx_status nest_scope(cfx_graph *g, cfx_node *copy, uint32_t outer, const char *prefix,
                             cfx_error *err)
{
    uint32_t chain[CFX_MAX_REGION_DEPTH];
    size_t n = 0;
    for (uint32_t at = copy->scope; at && n < CFX_MAX_REGION_DEPTH;
         at = cfx_graph_stack_outer(g, at))
        chain[n++] = at;
    uint32_t scope = outer;
    cfx_buffer path;
    cfx_buffer_init(&path, g->allocator);
    while (n > 0) {
        const char *inner = cfx_graph_stack_path(g, chain[--n]);
        cfx_buffer_free(&path);
        if (cfx_buffer_append(&path, prefix, strlen(prefix)) != CFX_OK ||
            cfx_buffer_append(&path, ".", inner[0] != '\0') != CFX_OK ||
            cfx_buffer_append(&path, inner, strlen(inner)) != CFX_OK) {
            cfx_buffer_free(&path);
            return cfxi_base_nomem(err);
        }
        scope = cfx_graph_intern_stack(g, scope, path.data, cfx_graph_stack_type(g, chain[n]),
                                       cfx_graph_stack_object(g, chain[n]), err);
        if (!scope)
            break;
    }
    cfx_buffer_free(&path);
    copy->scope = scope;
    return scope || !outer ? CFX_OK : CFX_E_NOMEM;
}

/* Gives the copy of `n` its paths, its scope and whatever the caller has for it. */
static cfx_status finish_copy(const inline_job *job, const cfx_node *call, cfx_node *n,
                              cfx_node *copy, cfx_error *err)
{
    const char *prefix = call->callee->ref->name->data;
    CFX_TRY(prefix_path(copy, prefix, err));
    void *with = (void *)(uintptr_t)prefix;
    CFX_TRY(cfxi_ir_each_region(cfx_node_args(copy), prefix_paths, with, err));
    CFX_TRY(cfxi_ir_each_region(cfx_node_kwargs(copy), prefix_paths, with, err));
    CFX_TRY(nest_scope(call->graph, copy, call->scope, prefix, err));
    if (!job->opts || !job->opts->copied)
        return CFX_OK;
    cfx_status status = job->opts->copied(job->opts->ctx, n, copy, err);
    return status == CFX_OK ? CFX_OK : cfxi_base_failed(err, status);
}

/* ---- replacing a call ---------------------------------------------------------------------- */

typedef struct copy_job {
    const inline_job *job;
    const cfx_node *call;
} copy_job;

static cfx_status copied(void *ctx, cfx_node *n, cfx_node *copy, cfx_error *err)
{
    const copy_job *c = ctx;
    return finish_copy(c->job, c->call, n, copy, err);
}

static cfx_status replace_call(inline_job *job, cfx_node *call, cfx_graph *src, cfx_error *err)
{
    cfx_graph *g = call->graph;
    cfx_value result = cfx_value_invalid();
    copy_job c = {job, call};
    cfx_node_map *map = cfx_node_map_new(g->allocator, err);
    cfx_status status = map ? bind_inputs(call, src, map, err) : CFX_E_NOMEM;
    if (status == CFX_OK)
        status = cfxi_analysis_splice(call, src, map, copied, &c, &result, err);
    if (status == CFX_OK)
        status = cfxi_analysis_splice_result(call, result, &job->taken, err);
    if (status == CFX_OK)
        status = cfx_graph_erase(g, call, err);
    job->changed = job->changed || status == CFX_OK;
    cfx_value_release(g, result);
    cfx_node_map_free(map);
    return status;
}

/* ---- all of them --------------------------------------------------------------------------- */

/* The nodes from `n` up to `end`, and what is put in their places. */
static cfx_status inline_stretch(inline_job *job, cfx_node *n, const cfx_node *end, cfx_error *err)
{
    while (n != end && !cfxi_ir_node_is_root(n)) {
        cfx_node *next = n->next;
        const char *path = n->callee->ref->name ? n->callee->ref->name->data : "";
        cfx_graph *src = cfxi_ir_node_erased(n) ? NULL : callee_of(job, n, path);
        if (src) {
            const cfx_node *before = n->prev;
            CFX_TRY(enter(job, src, n, path, err));
            cfx_graph_retain(src);  /* hooks may run any code */
            cfxi_ir_graph_freeze(src);
            cfx_status status = replace_call(job, n, src, err);
            cfxi_ir_graph_thaw(src);
            cfx_graph_release(src);
            if (status == CFX_OK)
                status = inline_stretch(job, before->next, next, err);
            job->depth--;
            CFX_TRY(status);
        }
        n = next;
    }
    return CFX_OK;
}

static cfx_status inline_all(cfx_graph *g, void *ctx, cfx_error *err)
{
    inline_job *job = ctx;
    cfx_iter pin;
    cfx_iter_begin(&pin, g, false);
    cfx_status status = inline_stretch(job, g->root.next, &g->root, err);
    if (status == CFX_OK)
        status = cfxi_analysis_erase_taken(&job->taken, err);
    cfx_iter_end(&pin);
    cfxi_base_vec_free(&job->taken, sizeof(cfx_node *), g->allocator);
    job->taken = (cfxi_vec){0};
    return status == CFX_OK ? cfxi_analysis_each_region(g, inline_all, ctx, err) : status;
}

cfx_status cfxi_pass_inline(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                            bool *changed, cfx_error *err)
{
    modules = cfxi_analysis_modules_or_null(modules);
    inline_job job = {.modules = modules, .opts = opts, .stack = {g}, .depth = 1};
    follow_job check = {&job, ""};
    cfx_status status = CFX_OK;
    if (modules)
        status = follow(g, &check, err);
    if (modules && status == CFX_OK)
        status = inline_all(g, &job, err);
    if (changed)
        *changed = job.changed;
    return status;
}
