/* merge_modes.c - makes one graph of two that were captured in different modes.
 *
 *     g, captured in training mode             other, captured in evaluation mode
 *     %y = F.dropout(%x, 0.5, True)            %y = F.dropout(%x, 0.5, False)
 *
 *     g afterwards
 *     %t = get_attr[target=training]()
 *     %y = F.dropout(%x, 0.5, %t)
 *
 * Needs: both graphs were captured from one program. Keeps: what `g` computes in the modes that it
 * held for.
 *
 * Nodes are paired in their order. A literal that differs is looked at in all settings of the flags
 * for which it is known: it becomes a choice by a flag that tells its values apart. Which of
 * several flags the program really asked is not known; so the result holds for these settings
 * alone, and the caller captures the program again for any other.
 */
#include "analysis/analysis_impl.h"

#include <cfx/embed/check.h>

#include <stdio.h>

enum { NO_FLAG = -1 };

typedef struct merge_job {
    cfx_graph *g;
    const cfx_mode_table *modes;
    cfx_node_map *partners;  /* of nodes of the other graph */
    cfx_node **flags;        /* by module: the last node so far that reads its flag, or NULL */
    cfx_error *err;
} merge_job;

/* A literal that a flag decides: of module `path`, or NO_FLAG if `on` and `off` are the same. */
typedef struct choice {
    long path;
    cfx_value on, off;
} choice;

/* ---- choices ------------------------------------------------------------------------------- */

static bool is_literal(cfx_value v) { return v.kind >= CFX_KIND_BOOL && v.kind <= CFX_KIND_FLOAT; }

/* The number of a module in the table; NO_FLAG if it is not there. */
static long path_number(const cfx_mode_table *modes, const char *path, size_t size)
{
    for (size_t i = 0; i < modes->n_paths; i++)
        if (strlen(modes->paths[i]) == size && memcmp(modes->paths[i], path, size) == 0)
            return (long)i;
    return NO_FLAG;
}

/* The module whose flag a node reads. */
static long flag_path(const cfx_mode_table *modes, cfx_value v)
{
    if (v.kind != CFX_KIND_NODE || !cfxi_ir_is_flag(v.as.node))
        return NO_FLAG;
    size_t size = 0;
    const char *path = cfx_node_target(v.as.node, &size, NULL);
    const size_t name = strlen("training");
    return path_number(modes, path, size > name ? size - name - 1 : 0);
}

/* The literal that is all of a region. */
static bool literal_of_region(cfx_value region, cfx_value *out)
{
    const cfx_graph *g = cfx_value_graph(region);
    const cfx_node *only = g && g->size == 1 ? cfx_graph_first(g) : NULL;
    *out = only && only->op == CFX_OP_OUTPUT ? cfx_node_arg(only, 0) : cfx_value_invalid();
    return is_literal(*out);
}

/* What `n` chooses, if it is a flag, its opposite, or a branch on it with a literal each way. */
static bool read_node(const cfx_mode_table *modes, cfx_node *n, choice *out)
{
    *out = (choice){flag_path(modes, cfx_value_node(n)), cfx_value_bool(true),
                    cfx_value_bool(false)};
    if (out->path != NO_FLAG || n->op != CFX_OP_CALL_FUNCTION)
        return out->path != NO_FLAG;
    out->path = flag_path(modes, cfx_node_arg(n, 0));
    if (out->path == NO_FLAG)
        return false;
    if (cfx_node_num_args(n) == 1 && cfx_node_operator(n) == CFX_OPID_not) {
        out->on = cfx_value_bool(false);
        out->off = cfx_value_bool(true);
        return true;
    }
    return cfx_node_num_args(n) == 4 && cfx_node_operator(n) == CFX_OPID_cond &&
           literal_of_region(cfx_node_arg(n, 1), &out->on) &&
           literal_of_region(cfx_node_arg(n, 2), &out->off);
}

static bool read_choice(const cfx_mode_table *modes, cfx_value v, choice *out)
{
    if (v.kind == CFX_KIND_NODE)
        return read_node(modes, v.as.node, out);
    *out = (choice){NO_FLAG, v, v};
    return is_literal(v);
}

static bool flag_in(const cfx_mode_table *modes, size_t setting, size_t path)
{
    return modes->flags[setting * modes->n_paths + path];
}

static cfx_value value_in(const cfx_mode_table *modes, size_t setting, const choice *c)
{
    const bool on = c->path == NO_FLAG || flag_in(modes, setting, (size_t)c->path);
    return on ? c->on : c->off;
}

/* ---- the flag that decides ----------------------------------------------------------------- */

/* What a literal is in a setting: `a` in those that `g` holds for, `b` in the last one. */
static cfx_value known_value(const cfx_mode_table *modes, size_t setting, const choice *a,
                             const choice *b)
{
    return value_in(modes, setting, setting + 1 < modes->n_settings ? a : b);
}

/* Whether both graphs have the same literal in the last setting. */
static bool agree(const cfx_mode_table *modes, const choice *a, const choice *b)
{
    const size_t last = modes->n_settings - 1;
    return cfx_value_equal(value_in(modes, last, a), value_in(modes, last, b));
}

/* Whether a flag tells the values of a literal apart in all settings. */
static bool decides(const cfx_mode_table *modes, long path, const choice *a, const choice *b,
                    choice *out)
{
    bool seen[2] = {false, false};
    cfx_value values[2] = {cfx_value_none(), cfx_value_none()};
    for (size_t i = 0; path != NO_FLAG && i < modes->n_settings; i++) {
        const bool flag = flag_in(modes, i, (size_t)path);
        const cfx_value v = known_value(modes, i, a, b);
        if (seen[flag] && !cfx_value_equal(values[flag], v))
            return false;
        seen[flag] = true;
        values[flag] = v;
    }
    if (seen[true] && seen[false])
        *out = (choice){path, values[true], values[false]};
    return seen[true] && seen[false];
}

/* The flag that decides a literal of `n`: preferably that of the module whose code made the call,
 * or of one around it. "layers.0@1" is the second call of "layers.0". */
static bool find_flag(const cfx_mode_table *modes, const cfx_node *n, const choice *a,
                      const choice *b, choice *out)
{
    for (uint32_t s = cfx_node_module_stack(n); s; s = cfx_graph_stack_outer(n->graph, s)) {
        const char *path = cfx_graph_stack_path(n->graph, s);
        if (decides(modes, path_number(modes, path, strcspn(path, "@")), a, b, out))
            return true;
    }
    for (size_t i = 0; i < modes->n_paths; i++)
        if (decides(modes, (long)i, a, b, out))
            return true;
    return false;
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* Whether an item of such a container can be something that the graph computes. */
static bool takes_nodes(cfx_value v)
{
    return v.kind == CFX_KIND_LIST || v.kind == CFX_KIND_TUPLE || v.kind == CFX_KIND_DICT ||
           v.kind == CFX_KIND_SLICE;
}

static bool same_node(const void *ctx, const cfx_node *a, const cfx_node *b)
{
    const cfx_value partner = cfx_node_map_get(((const merge_job *)ctx)->partners, b);
    return partner.kind == CFX_KIND_NODE && partner.as.node == a;
}

static bool same_region(const void *ctx, const cfx_ref *a, const cfx_ref *b)
{
    (void)ctx;
    return cfxi_ir_region_equal(a->region, b->region);
}

/* Whether two arguments of partners can become one. */
static bool fits(const merge_job *job, const cfx_node *at, cfx_value a, cfx_value b)
{
    const cfxi_same how = {.node = same_node, .region = same_region, .ctx = job};
    const cfx_mode_table *modes = job->modes;
    choice one, two, flag;
    if (read_choice(modes, a, &one) && read_choice(modes, b, &two))
        return agree(modes, &one, &two) ||
               (cfxi_ir_is_call(at) && find_flag(modes, at, &one, &two, &flag));
    if (a.kind != b.kind || !takes_nodes(a))
        return cfxi_ir_same_value(&how, a, b);
    size_t n, m;
    const cfx_value *items = cfx_value_items(a, &n), *others = cfx_value_items(b, &m);
    for (size_t i = 0; n == m && i < n; i++)
        if (!fits(job, at, items[i], others[i]))
            return false;
    return n == m;
}

/* Whether it sets a flag: then what reads it later does not read what the caller set. */
static bool sets_flag(const cfx_node *n)
{
    size_t size = 0;
    const cfx_value name = cfx_node_arg(n, 1);
    const char *text = n->op == CFX_OP_CALL_FUNCTION && name.kind == CFX_KIND_STR
                           ? cfx_value_text(name, &size) : NULL;
    return text && strcmp(text, "training") == 0 && cfx_node_num_args(n) == 3;
}

static bool pairs_with(const merge_job *job, const cfx_node *a, const cfx_node *b)
{
    const cfx_value types[] = {cfx_node_type(a), cfx_node_type(b)};
    return a->op == b->op && cfxi_ir_same_ref(a->callee->ref, b->callee->ref) && !sets_flag(a) &&
           cfx_value_equal(types[0], types[1]) &&
           fits(job, a, cfx_node_args(a), cfx_node_args(b)) &&
           fits(job, a, cfx_node_kwargs(a), cfx_node_kwargs(b));
}

/* The next node from `n` on that is not a choice. */
static cfx_node *past_choices(const cfx_mode_table *modes, cfx_node *n)
{
    choice ignored;
    while (n && read_node(modes, n, &ignored))
        n = cfx_node_next(n);
    return n;
}

/* *merged: whether the graphs differ in literals alone that flags decide. */
static cfx_status compare(merge_job *job, cfx_graph *other, bool *merged)
{
    cfx_node *a = past_choices(job->modes, cfx_graph_first(job->g));
    cfx_node *b = past_choices(job->modes, cfx_graph_first(other));
    while (a && b && pairs_with(job, a, b)) {
        CFX_TRY(cfx_node_map_set(job->partners, b, cfx_value_node(a), job->err));
        a = past_choices(job->modes, cfx_node_next(a));
        b = past_choices(job->modes, cfx_node_next(b));
    }
    *merged = !a && !b;
    return CFX_OK;
}

/* ---- editing ------------------------------------------------------------------------------- */

/* A new node goes where `at` is, and came from the same line. */
static cfx_node *placed(cfx_node *made, const cfx_node *at)
{
    if (made) {
        made->location = at->location;
        made->scope = at->scope;
    }
    return made;
}

static cfx_node *flag_node(merge_job *job, const cfx_node *at, long path)
{
    const char *module = job->modes->paths[path];
    const size_t size = strlen(module) + sizeof ".training";
    char *text = job->flags[path] ? NULL : cfxi_base_alloc(job->g->allocator, size);
    if (text) {
        snprintf(text, size, "%s%straining", module, *module ? "." : "");
        job->flags[path] = placed(cfx_graph_get_attr(job->g, text, job->err), at);
        cfxi_base_free(job->g->allocator, text, size);
    } else if (!job->flags[path]) {
        cfxi_base_nomem(job->err);
    }
    return job->flags[path];
}

/* A region that returns a literal. */
static cfx_value literal_region(const merge_job *job, cfx_value literal)
{
    cfx_graph *region = cfx_graph_new(job->g->allocator, job->g->host, job->err);
    cfx_value v = cfx_value_invalid();
    if (region && cfx_graph_output(region, literal, job->err))
        v = cfx_value_region(job->g, region, job->err);
    cfx_graph_release(region);
    return v;
}

static cfx_node *branch(const merge_job *job, cfx_node *flag, const choice *c, const char *name)
{
    cfx_value args[] = {cfx_value_node(flag), literal_region(job, c->on), cfx_value_invalid(),
                        cfx_value_invalid()};
    if (args[1].kind != CFX_KIND_INVALID)
        args[2] = literal_region(job, c->off);
    if (args[2].kind != CFX_KIND_INVALID)
        args[3] = cfx_value_tuple(job->g, NULL, 0, job->err);
    return args[3].kind != CFX_KIND_INVALID
               ? cfxi_ir_call_by_name(job->g, "cfx.cond", args, 4, name, job->err) : NULL;
}

/* The node that gives a literal as a flag decides. `name` is what it should be called, or NULL. */
static cfx_value write_choice(merge_job *job, cfx_node *at, const choice *c, const char *name)
{
    cfx_node *n = flag_node(job, at, c->path);
    const bool bools = c->on.kind == CFX_KIND_BOOL && c->off.kind == CFX_KIND_BOOL;
    if (n && !bools) {
        n = placed(branch(job, n, c, name), at);
    } else if (n && !c->on.as.b) {
        const cfx_value flag = cfx_value_node(n);
        n = placed(cfxi_ir_call_by_name(job->g, "operator.not_", &flag, 1, NULL, job->err), at);
    }
    return n ? cfx_value_node(n) : cfx_value_invalid();
}

static cfx_value merged_value(merge_job *job, cfx_node *at, cfx_value a, cfx_value b,
                              const char *name);

/* A container with its items merged; itself if none differs. */
static cfx_value merged_items(merge_job *job, cfx_node *at, cfx_value a, cfx_value b)
{
    size_t n, bytes;
    const cfx_value *items = cfx_value_items(a, &n), *others = cfx_value_items(b, NULL);
    cfx_value *made = NULL, v = a;
    bool changed = false;
    if (n == 0)
        return a;
    if (cfxi_base_mul_size(n, sizeof *made, 0, &bytes))
        made = cfxi_base_alloc(job->g->allocator, bytes);
    if (!made)
        cfxi_base_nomem(job->err);
    for (size_t i = 0; made && v.kind != CFX_KIND_INVALID && i < n; i++) {
        const bool entry = a.kind == CFX_KIND_DICT && i % 2 && items[i - 1].kind == CFX_KIND_STR;
        made[i] = merged_value(job, at, items[i], others[i],
                               entry ? cfx_value_text(items[i - 1], NULL) : NULL);
        changed = changed || made[i].kind != items[i].kind || made[i].as.i != items[i].as.i;
        v = made[i].kind == CFX_KIND_INVALID ? made[i] : v;
    }
    if (made && changed && v.kind != CFX_KIND_INVALID)
        v = cfx_value_seq(job->g, (cfx_kind)a.kind, made, n, job->err);
    cfxi_base_free(job->g->allocator, made, made ? bytes : 0);
    return made ? v : cfx_value_invalid();
}

static cfx_value merged_value(merge_job *job, cfx_node *at, cfx_value a, cfx_value b,
                              const char *name)
{
    const cfx_mode_table *modes = job->modes;
    choice one, two, flag;
    if (takes_nodes(a))
        return merged_items(job, at, a, b);
    if (!read_choice(modes, a, &one) || !read_choice(modes, b, &two) || agree(modes, &one, &two) ||
        !find_flag(modes, at, &one, &two, &flag))
        return a;
    return write_choice(job, at, &flag, name);
}

/* Edits one node. What it was in the settings that `g` holds for, it stays. */
static cfx_status merge_node(merge_job *job, cfx_node *a, const cfx_node *b)
{
    const cfx_value args = cfx_node_args(a), kwargs = cfx_node_kwargs(a);
    CFX_TRY(cfx_graph_set_insert_point(job->g, (cfx_insert_point){.node = a}, job->err));
    const cfx_value new_args = merged_value(job, a, args, cfx_node_args(b), NULL);
    const cfx_value new_kwargs = new_args.kind == CFX_KIND_INVALID
                                     ? new_args
                                     : merged_value(job, a, kwargs, cfx_node_kwargs(b), NULL);
    if (new_kwargs.kind == CFX_KIND_INVALID)
        return job->err->status;
    if (new_args.as.seq != args.as.seq)
        CFX_TRY(cfx_node_set_args(a, new_args, job->err));
    return new_kwargs.as.seq != kwargs.as.seq ? cfx_node_set_kwargs(a, new_kwargs, job->err)
                                              : CFX_OK;
}

static cfx_status edit(merge_job *job, cfx_graph *other)
{
    cfx_node *b = past_choices(job->modes, cfx_graph_first(other));
    for (cfx_node *a = cfx_graph_first(job->g); a; a = cfx_node_next(a)) {
        const long path = flag_path(job->modes, cfx_value_node(a));
        choice ignored;
        if (path != NO_FLAG)
            job->flags[path] = a;
        if (read_node(job->modes, a, &ignored))
            continue;
        CFX_TRY(merge_node(job, a, b));
        b = past_choices(job->modes, cfx_node_next(b));
    }
    return CFX_OK;
}

/* Choices that a later one has replaced. */
static cfx_status drop_unused(merge_job *job)
{
    for (cfx_node *n = cfx_graph_last(job->g), *before; n; n = before) {
        choice ignored;
        before = cfx_node_prev(n);
        if (n->n_users == 0 && read_node(job->modes, n, &ignored))
            CFX_TRY(cfx_graph_erase(job->g, n, job->err));
    }
    return CFX_OK;
}

cfx_status cfx_graph_merge_modes(cfx_graph *g, cfx_graph *other, const cfx_mode_table *modes,
                                 bool *merged, cfx_error *err)
{
    cfx_error own = {0};
    merge_job job = {.g = g, .modes = modes, .err = err ? err : &own};
    const cfx_insert_point was = cfx_graph_insert_point(g);
    size_t bytes = 0;
    *merged = false;
    if (modes->n_settings < 2)
        return cfx_error_set(err, CFX_E_VALUE, "merging modes needs two settings or more");
    if (cfxi_base_mul_size(modes->n_paths + 1, sizeof *job.flags, 0, &bytes))
        job.flags = cfxi_base_alloc(g->allocator, bytes);
    job.partners = job.flags ? cfx_node_map_new(g->allocator, job.err) : NULL;
    cfx_status status = job.partners ? CFX_OK : cfxi_base_nomem(job.err);
    if (status == CFX_OK) {
        memset(job.flags, 0, bytes);
        status = compare(&job, other, merged);
    }
    if (status == CFX_OK && *merged) {
        status = edit(&job, other);
        cfx_error ignored = {0};
        cfx_graph_set_insert_point(g, was, &ignored);
        if (status == CFX_OK)
            status = drop_unused(&job);
    }
    *merged = *merged && status == CFX_OK;
    if (job.partners)
        cfx_node_map_free(job.partners);
    cfxi_base_free(g->allocator, job.flags, job.flags ? bytes : 0);
    return status;
}
