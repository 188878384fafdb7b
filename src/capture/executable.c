/* executable.c - .cfx files made ready to run: programs, their signatures, their weights.
 *
 * graph.ir, graphs/1/graph.ir, graphs/2/graph.ir ... are one model for different inputs: they share
 * module.ir and the weights. Preparing looks at types and sizes of weights, never at elements, so a
 * mapped file is not read.
 */
#include "analysis/alias_impl.h"
#include "capture_impl.h"

#include <cfx/compile.h>
#include <cfx/executable.h>

#include <stdio.h>

enum {
    MOST_GRAPHS = 1000,  /* of a file: each is looked up by its name */
    FEW = 32             /* inputs for which the C stack has room */
};

/* One graph of the file. */
typedef struct ready_graph {
    cfx_signature *signature;
    cfx_program *program;
    cfx_keeping keeping;   /* arrays of its own; names are the signature's */
    cfx_datum *defaults;   /* one for each input; INVALID if it has none */
    size_t num_inputs;
} ready_graph;

struct cfx_executable {
    const cfx_allocator *allocator;
    char *model;
    cfxi_vec graphs;       /* of ready_graph */
    cfx_session *first;    /* what sessions begin with; tensors are the file's */
};

static ready_graph *graph_at(const cfx_executable *e, size_t i)
{
    return &((ready_graph *)e->graphs.data)[i];
}

/* ---- errors -------------------------------------------------------------------------------- */

/* "graphs/1/graph.ir: ..."; the place in the text stays. */
static cfx_status inside(const char *entry, const cfx_error *why, cfx_error *err)
{
    cfx_error_set(err, why->status, "%s: %.440s", entry, why->message);
    if (err) {
        err->line = why->line;
        err->column = why->column;
    }
    return why->status;
}

/* What cannot be lowered: all of it, as far as a message has room. */
typedef struct trouble {
    char text[420];
    size_t used;
    size_t count;
} trouble;

static cfx_status note(void *ctx, const cfx_node *n, const char *why)
{
    trouble *t = ctx;
    (void)n;  /* `why` names it, and its line */
    const size_t room = sizeof t->text - t->used;
    const int size = snprintf(t->text + t->used, room, "%s%s", t->count++ ? "; " : "", why);
    t->used += size < 0 ? 0 : (size_t)size < room ? (size_t)size : room - 1;
    return CFX_OK;
}

/* ---- what a graph writes to ---------------------------------------------------------------- */

typedef struct weight_write {
    const cfxi_aliases *aliases;
    bool found;
} weight_write;

static bool note_write(void *ctx, uint32_t channel, bool writes)
{
    weight_write *w = ctx;
    const cfxi_aliases *a = w->aliases;
    if (writes && channel < a->n && a->sets[channel].outside == CFXI_OUTSIDE_ATTRIBUTE)
        w->found = true;
    return true;
}

static cfx_status find_writes(cfxi_aliases *a, cfx_error *err)
{
    CFX_TRY(cfxi_analysis_alias_join_all(a, err));
    for (cfx_node *n = cfx_graph_first(a->graph); n; n = cfx_node_next(n)) {
        unsigned does;
        weight_write w = {a, false};
        CFX_TRY(cfxi_analysis_does(a->model, n, &does, err));
        if (does & CFXI_WRITES_ANY)
            cfxi_analysis_each_channel(a, n, does, note_write, &w);
        if (w.found)
            return cfx_error_set(err, CFX_E_UNSUPPORTED, "the node %%%.100s writes to weights, "
                                 "which all runs share; save the model after model.eval()",
                                 cfx_node_name(n, NULL));
    }
    return CFX_OK;
}

/* Runs share weights without a lock, so that a graph must not write to them: a norm in training
 * does. `g` is lowered. */
static cfx_status check_writes(cfx_graph *g, cfx_module *root, cfx_error *err)
{
    const cfx_module_tree tree = cfx_module_as_tree(root);
    cfxi_effect_model model = {.modules = &tree};
    cfxi_aliases aliases;
    cfx_status status = cfxi_analysis_aliases_begin(&aliases, g, &model, CFXI_USES_ALL, err);
    if (status == CFX_OK)
        status = find_writes(&aliases, err);
    cfxi_analysis_aliases_end(&aliases);
    cfxi_analysis_model_end(&model);
    return status;
}

/* ---- one graph ----------------------------------------------------------------------------- */

static void graph_free(ready_graph *r, const cfx_allocator *allocator)
{
    const cfx_keeping *k = &r->keeping;
    for (size_t i = 0; r->defaults && i < r->num_inputs; i++)
        cfx_datum_release(r->defaults[i]);
    cfxi_base_free(allocator, r->defaults, r->num_inputs * sizeof *r->defaults);
    cfxi_base_free(allocator, (void *)(uintptr_t)k->takes, k->num_takes * sizeof *k->takes);
    cfxi_base_free(allocator, (void *)(uintptr_t)k->keeps, k->num_keeps * sizeof *k->keeps);
    cfx_program_free(r->program);
    cfx_signature_free(r->signature);
}

/* Defaults that a program cannot take (functions of Python) are none. */
static cfx_status read_defaults(ready_graph *r, const cfx_graph *g, const cfx_allocator *allocator,
                                cfx_error *err)
{
    size_t i = 0;
    const size_t n = cfx_program_num_inputs(r->program);
    r->defaults = n ? cfxi_base_alloc(allocator, n * sizeof *r->defaults) : NULL;
    if (n && !r->defaults)
        return cfxi_base_nomem(err);
    for (r->num_inputs = n; i < n; i++)
        r->defaults[i] = cfx_datum_invalid();
    i = 0;
    for (const cfx_node *node = cfx_graph_first(g); node && i < n; node = cfx_node_next(node)) {
        cfx_error why = {0};
        size_t num_args;
        const cfx_value *args = cfx_value_items(cfx_node_args(node), &num_args);
        if (cfx_node_op(node) != CFX_OP_PLACEHOLDER)
            continue;
        if (num_args > 0)
            r->defaults[i] = cfxi_capture_datum_of_value(args[0], allocator, &why);
        if (why.status == CFX_E_NOMEM)
            return cfxi_base_nomem(err);
        i++;
    }
    return CFX_OK;
}

/* The state of a signature as sessions have it. */
static cfx_status make_keeping(ready_graph *r, const cfx_allocator *allocator, cfx_error *err)
{
    cfx_signature_input in;
    cfx_signature_result out;
    const size_t first = cfx_signature_num_arguments(r->signature);
    const size_t num_takes = cfxi_capture_signature_size(r->signature) - first;
    size_t num_keeps = 0;
    for (size_t i = 0; cfx_signature_result_at(r->signature, i, &out); i++)
        num_keeps += out.state;
    cfx_kept_input *takes = num_takes ? cfxi_base_alloc(allocator, num_takes * sizeof *takes)
                                      : NULL;
    r->keeping = (cfx_keeping){.takes = takes, .num_takes = takes ? num_takes : 0};
    cfx_kept_result *keeps = num_keeps ? cfxi_base_alloc(allocator, num_keeps * sizeof *keeps)
                                       : NULL;
    r->keeping.keeps = keeps;
    r->keeping.num_keeps = keeps ? num_keeps : 0;
    if (r->keeping.num_takes < num_takes || r->keeping.num_keeps < num_keeps)
        return cfxi_base_nomem(err);
    for (size_t i = first; cfx_signature_input_at(r->signature, i, &in); i++)
        takes[i - first] = (cfx_kept_input){in.name, i, in.kind, in.dtype, in.rank};
    num_keeps = 0;
    for (size_t i = 0; cfx_signature_result_at(r->signature, i, &out); i++)
        if (out.state)
            keeps[num_keeps++] = (cfx_kept_result){out.name, i};
    return CFX_OK;
}

/* Whether a signature is that of the graph: as many inputs, as many results. */
static cfx_status check_agrees(const ready_graph *r, const cfx_graph *g, cfx_error *err)
{
    size_t listed;
    size_t num_args = 0;
    size_t n = 0;
    const size_t num_inputs = cfxi_capture_signature_size(r->signature);
    const cfx_node *output = cfx_graph_last(g);
    const cfx_value *args = output ? cfx_value_items(cfx_node_args(output), &num_args) : NULL;
    const bool tuple = num_args == 1 &&
                       (args[0].kind == CFX_KIND_TUPLE || args[0].kind == CFX_KIND_LIST);
    if (num_inputs != cfx_program_num_inputs(r->program))
        return cfx_error_set(err, CFX_E_VALUE, "the graph has %zu inputs, its signature %zu",
                             cfx_program_num_inputs(r->program), num_inputs);
    if (!cfxi_capture_signature_lists(r->signature, &listed))
        return CFX_OK;
    if (tuple)
        cfx_value_items(args[0], &n);
    if (!tuple || n != listed)
        return cfx_error_set(err, CFX_E_VALUE,
                             "the graph must return a tuple of the %zu results of its signature",
                             listed);
    return CFX_OK;
}

static cfx_status make_program(ready_graph *r, cfx_graph *g, cfx_module *root,
                               const cfx_executable_options *o, cfx_error *err)
{
    trouble t = {.used = 0};
    cfx_error why = {0};
    const cfx_lower_options options = {.each = note, .ctx = &t};
    const cfx_compile_options none = {0};
    r->program = cfxi_capture_program(g, root, o->library, &options,
                                      o->compile ? o->compile : &none, root->allocator, &why);
    if (r->program)
        return CFX_OK;
    if (t.count > 0 && why.status == CFX_E_TYPE)
        return cfx_error_set(err, CFX_E_TYPE, "%zu call%s cannot run without Python: %s", t.count,
                             t.count == 1 ? "" : "s", t.text);
    if (err)
        *err = why;
    return why.status;
}

static cfx_signature *signature_of(const cfx_package *p, const char *name, const cfx_graph *g,
                                   const cfx_allocator *allocator, cfx_error *err)
{
    size_t size;
    const char *text = cfx_package_text(p, name, &size);
    return text ? cfx_signature_parse(text, size, allocator, err)
                : cfx_signature_of_graph(g, allocator, err);
}

static cfx_status make_graph(ready_graph *r, const cfx_package *p, const char *folder,
                             cfx_module *root, const cfx_executable_options *o,
                             cfx_error *err)
{
    char name[64];
    cfx_error why = {0};
    const cfx_allocator *allocator = root->allocator;
    snprintf(name, sizeof name, "%ssignature.ir", folder);
    char graph_name[64];
    snprintf(graph_name, sizeof graph_name, "%sgraph.ir", folder);
    cfx_graph *g = cfxi_capture_package_graph(p, graph_name, allocator, &why);
    r->signature = g ? signature_of(p, name, g, allocator, &why) : NULL;
    cfx_status status = why.status;
    if (r->signature && cfxi_capture_signature_refused(r->signature)) {
        cfx_graph_release(g);
        return CFX_OK;
    }
    if (r->signature)
        status = make_program(r, g, root, o, &why);
    if (status == CFX_OK)
        status = check_writes(g, root, &why);
    if (status == CFX_OK)
        status = check_agrees(r, g, &why);
    if (status == CFX_OK)
        status = read_defaults(r, g, allocator, &why);
    if (status == CFX_OK)
        status = make_keeping(r, allocator, &why);
    const bool parsed = !g || r->signature;
    cfx_graph_release(g);
    return status == CFX_OK ? CFX_OK : inside(parsed ? graph_name : name, &why, err);
}

/* ---- all of a file ------------------------------------------------------------------------- */

static cfx_status add_graph(cfx_executable *e, const cfx_package *p, const char *folder,
                            cfx_module *root, const cfx_executable_options *o,
                             cfx_error *err)
{
    if (!cfxi_base_vec_reserve(&e->graphs, 1, sizeof(ready_graph), e->allocator))
        return cfxi_base_nomem(err);
    ready_graph *r = graph_at(e, e->graphs.size);
    *r = (ready_graph){.signature = NULL};
    const cfx_status status = make_graph(r, p, folder, root, o, err);
    if (status == CFX_OK)
        e->graphs.size++;
    else
        graph_free(r, e->allocator);
    return status;
}

static cfx_status add_graphs(cfx_executable *e, const cfx_package *p, cfx_module *root,
                             const cfx_executable_options *o, cfx_error *err)
{
    size_t size;
    CFX_TRY(add_graph(e, p, "", root, o, err));
    for (int i = 1; i < MOST_GRAPHS; i++) {
        char name[64];
        snprintf(name, sizeof name, "graphs/%d/graph.ir", i);
        if (!cfx_package_text(p, name, &size))
            return CFX_OK;
        snprintf(name, sizeof name, "graphs/%d/", i);
        CFX_TRY(add_graph(e, p, name, root, o, err));
    }
    return cfx_error_set(err, CFX_E_VALUE, "the file has more than %d graphs", MOST_GRAPHS);
}

/* Whether the file says how its state is nested: then some may belong to another graph, which has
 * not run yet. */
static bool knows_structures(const cfx_executable *e)
{
    size_t n;
    cfxi_capture_signature_present(graph_at(e, 0)->signature, &n);
    return n > 0;
}

static cfx_status first_value(cfx_executable *e, const cfx_signature *s, size_t i,
                              const cfx_state *weights, cfx_error *err)
{
    cfx_signature_input in;
    cfx_signature_input_at(s, i, &in);
    cfx_datum value = cfxi_capture_signature_value(s, i);
    if (cfx_session_get(e->first, in.name).kind != CFX_DATUM_INVALID)
        return CFX_OK;  /* another graph has it, too */
    if (in.kind == CFX_DATUM_TENSOR) {
        cfx_tensor *t = cfx_state_get(weights, in.name);
        if (!t && !knows_structures(e))
            return cfx_error_set(err, CFX_E_VALUE,
                                 "the weights have no tensor for the state '%.100s'", in.name);
        if (!t)
            return CFX_OK;  /* another graph makes it */
        value = cfx_datum_scalar(CFX_DATUM_TENSOR, 0);
        value.as.tensor = t;
    }
    return value.kind == CFX_DATUM_INVALID ? CFX_OK
                                           : cfx_session_set(e->first, in.name, value, err);
}

/* What is called in a session by how it is nested: "structure of cache". */
typedef struct structure_name {
    char text[280];
} structure_name;

static structure_name name_of_structure(const char *path)
{
    structure_name name;
    snprintf(name.text, sizeof name.text, "structure of %.250s", path);
    return name;
}

static cfx_status set_structure(cfx_session *s, const char *path, const char *text,
                                const cfx_allocator *allocator, cfx_error *err)
{
    const structure_name name = name_of_structure(path);
    const cfx_datum d = cfx_datum_from_text(CFX_DATUM_STR, text, strlen(text), allocator, err);
    const cfx_status status = d.kind == CFX_DATUM_INVALID ? CFX_E_NOMEM
                                                          : cfx_session_set(s, name.text, d, err);
    cfx_datum_release(d);
    return status;
}

static cfx_status first_values(cfx_executable *e, const cfx_state *weights, cfx_error *err)
{
    for (size_t k = 0; k < e->graphs.size; k++) {
        const ready_graph *r = graph_at(e, k);
        for (size_t i = cfx_signature_num_arguments(r->signature); i < r->num_inputs; i++)
            CFX_TRY(first_value(e, r->signature, i, weights, err));
    }
    size_t n;
    const cfxi_nesting *present = cfxi_capture_signature_present(graph_at(e, 0)->signature, &n);
    for (size_t i = 0; i < n; i++)
        CFX_TRY(set_structure(e->first, present[i].path, present[i].after, e->allocator, err));
    return CFX_OK;
}

/* A graph for another mode, training or evaluation, is no use here; but there must be one. */
static cfx_status check_some_run(const cfx_executable *e, cfx_error *err)
{
    for (size_t i = 0; i < e->graphs.size; i++)
        if (graph_at(e, i)->program)
            return CFX_OK;
    return cfx_error_set(err, CFX_E_UNSUPPORTED, "%.400s",
                         cfxi_capture_signature_refused(graph_at(e, 0)->signature));
}

static cfx_status fill(cfx_executable *e, const cfx_package *p, const cfx_executable_options *o,
                       cfx_error *err)
{
    const char *model = cfx_package_model(p);
    const size_t size = strlen(model) + 1;
    const cfx_state *weights = o->weights ? o->weights : cfx_package_weights(p);
    if (!weights)
        return cfx_error_set(err, CFX_E_VALUE, "the weights of this file are kept elsewhere; pass "
                             "them as options");
    e->model = cfxi_base_alloc(e->allocator, size);
    if (!e->model)
        return cfxi_base_nomem(err);
    memcpy(e->model, model, size);
    e->first = cfx_session_new(e->allocator, err);
    if (!e->first)
        return CFX_E_NOMEM;
    cfx_module *root = cfxi_capture_module_make(e->allocator, err);
    cfx_status status = root ? cfxi_capture_package_modules(root, p, weights, err) : CFX_E_NOMEM;
    if (status == CFX_OK)
        status = add_graphs(e, p, root, o, err);
    if (status == CFX_OK)
        status = check_some_run(e, err);
    if (status == CFX_OK)
        status = first_values(e, weights, err);
    cfx_module_release(root);
    return status;
}

cfx_executable *cfx_executable_new(const cfx_package *p, const cfx_executable_options *options,
                                   cfx_error *err)
{
    cfx_error own;
    const cfx_executable_options none = {.weights = NULL};
    err = cfxi_base_error_or(err, &own);
    options = options ? options : &none;
    if (cfxi_base_expect(p, "package", err) != CFX_OK)
        return NULL;
    const cfx_allocator *allocator = cfxi_base_allocator(options->package.allocator);
    cfx_executable *e = cfxi_base_alloc(allocator, sizeof *e);
    if (!e) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *e = (cfx_executable){.allocator = allocator};
    if (fill(e, p, options, err) == CFX_OK)
        return e;
    cfx_executable_free(e);
    return NULL;
}

cfx_executable *cfx_executable_load(const char *path, const cfx_executable_options *options,
                                    cfx_error *err)
{
    cfx_package_options package = options ? options->package : (cfx_package_options){0};
    package.read_only = true;  /* check_writes */
    cfx_package *p = cfx_package_load(path, &package, err);
    cfx_executable *e = p ? cfx_executable_new(p, options, err) : NULL;
    cfx_package_free(p);
    return e;
}

void cfx_executable_free(cfx_executable *e)
{
    if (!e)
        return;
    for (size_t i = 0; i < e->graphs.size; i++)
        graph_free(graph_at(e, i), e->allocator);
    cfxi_base_vec_free(&e->graphs, sizeof(ready_graph), e->allocator);
    cfx_session_free(e->first);
    if (e->model)
        cfxi_base_free(e->allocator, e->model, strlen(e->model) + 1);
    cfxi_base_free(e->allocator, e, sizeof *e);
}

const char *cfx_executable_model(const cfx_executable *e) { return e->model; }

size_t cfx_executable_num_graphs(const cfx_executable *e) { return e->graphs.size; }

const cfx_signature *cfx_executable_signature(const cfx_executable *e, size_t i)
{
    return i < e->graphs.size ? graph_at(e, i)->signature : NULL;
}

/* ---- sessions ------------------------------------------------------------------------------ */

/* A program may write into a tensor that it keeps, so that each session has its own. */
static cfx_status begin_with(cfx_session *s, cfx_runtime *rt, const char *name, cfx_datum first,
                             cfx_error *err)
{
    const cfx_datum value = first.kind == CFX_DATUM_TENSOR
                                ? cfx_operator_run(rt, CFX_OPID_clone, &first, 1, err) : first;
    cfx_status status = CFX_E_NOMEM;
    if (value.kind != CFX_DATUM_INVALID)
        status = cfx_session_set(s, name, value, err);
    if (first.kind == CFX_DATUM_TENSOR)
        cfx_datum_release(value);
    return status;
}

cfx_session *cfx_executable_session(const cfx_executable *e, cfx_error *err)
{
    const char *name;
    const cfx_runtime_options options = {.allocator = e->allocator, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&options, err);
    cfx_session *s = rt ? cfx_session_new(e->allocator, err) : NULL;
    cfx_status status = s ? CFX_OK : CFX_E_NOMEM;
    for (size_t i = 0; status == CFX_OK && (name = cfx_session_name(e->first, i)) != NULL; i++)
        status = begin_with(s, rt, name, cfx_session_get(e->first, name), err);
    cfx_runtime_free(rt);
    if (status == CFX_OK)
        return s;
    cfx_session_free(s);
    return NULL;
}

/* ---- running ------------------------------------------------------------------------------- */

/* All inputs of a graph, borrowed: the caller's, defaults, and what the session has. */
static void gather(const ready_graph *r, const cfx_session *session, const cfx_datum *inputs,
                   size_t n, cfx_datum *all)
{
    const size_t num_arguments = cfx_signature_num_arguments(r->signature);
    for (size_t i = 0; i < num_arguments; i++)
        all[i] = i < n && inputs[i].kind != CFX_DATUM_INVALID ? inputs[i] : r->defaults[i];
    for (size_t i = 0; i < r->keeping.num_takes; i++)
        all[num_arguments + i] = cfx_session_get(session, r->keeping.takes[i].name);
}

/* What the graph returns; a tuple if the signature lists it. */
static cfx_datum run_plain(const ready_graph *r, cfx_runtime *rt, const cfx_datum *all,
                           cfx_error *err)
{
    size_t n;
    const cfx_datum result = cfx_program_run(r->program, rt, all, r->num_inputs, err);
    if (result.kind != CFX_DATUM_LIST || !cfxi_capture_signature_lists(r->signature, &n))
        return result;
    const cfx_datum *items = cfx_datum_items(result, &n);
    const cfx_datum tuple =
        cfx_datum_seq(CFX_DATUM_TUPLE, items, n, cfx_runtime_allocator(rt), err);
    cfx_datum_release(result);
    return tuple;
}

/* Whether the session has what the graph takes of it, nested as it was when it was captured. */
static cfx_status check_session(const ready_graph *r, const cfx_session *session, cfx_error *err)
{
    size_t n;
    const cfxi_nesting *slots = cfxi_capture_signature_slots(r->signature, &n);
    for (size_t i = 0; i < n; i++) {
        const structure_name name = name_of_structure(slots[i].path);
        const char *now = cfx_datum_text(cfx_session_get(session, name.text), NULL);
        if (slots[i].before && (!now || strcmp(now, slots[i].before) != 0))
            return cfx_error_set(err, CFX_E_ASSERTION, "%.100s has another structure than when the "
                                 "model was captured", slots[i].path);
    }
    for (size_t i = 0; i < r->keeping.num_takes; i++)
        if (cfx_session_get(session, r->keeping.takes[i].name).kind == CFX_DATUM_INVALID)
            return cfx_error_set(err, CFX_E_ASSERTION, "the state '%.100s' has no value",
                                 r->keeping.takes[i].name);
    return CFX_OK;
}

/* What a run leaves in the session besides what it has computed. */
static cfx_status leave_session(const cfx_executable *e, const ready_graph *r, cfx_session *session,
                                cfx_error *err)
{
    size_t n;
    const cfxi_nesting *slots = cfxi_capture_signature_slots(r->signature, &n);
    for (size_t i = 0; i < n; i++)
        CFX_TRY(set_structure(session, slots[i].path, slots[i].after, e->allocator, err));
    const cfxi_literal *literals = cfxi_capture_signature_literals(r->signature, &n);
    for (size_t i = 0; i < n; i++)
        CFX_TRY(cfx_session_set(session, literals[i].name, literals[i].value, err));
    return CFX_OK;
}

/* Runs a graph that keeps state. */
static cfx_datum run_kept(const cfx_executable *e, const ready_graph *r, cfx_session *session,
                          cfx_runtime *rt, const cfx_datum *all, cfx_error *err)
{
    const size_t n = cfx_signature_num_arguments(r->signature);
    cfx_datum result = cfx_session_run(session, r->program, &r->keeping, rt, all, n, err);
    if (result.kind == CFX_DATUM_INVALID || leave_session(e, r, session, err) == CFX_OK)
        return result;
    cfx_datum_release(result);
    return cfx_datum_invalid();
}

/* Runs a graph if it is for these inputs; *agrees says whether it was. */
static cfx_datum try_graph(const cfx_executable *e, const ready_graph *r, cfx_session *session,
                           cfx_runtime *rt, const cfx_datum *inputs, size_t n, bool *agrees,
                           cfx_error *err)
{
    cfx_datum few[FEW];
    cfx_datum result = cfx_datum_invalid();
    const size_t num = r->num_inputs;
    const size_t num_arguments = cfx_signature_num_arguments(r->signature);
    size_t num_slots;
    cfxi_capture_signature_slots(r->signature, &num_slots);
    const bool keeps = r->keeping.num_takes + r->keeping.num_keeps + num_slots > 0;
    *agrees = false;
    if (!r->program) {
        cfx_error_set(err, CFX_E_ASSERTION, "%.400s", cfxi_capture_signature_refused(r->signature));
        return result;
    }
    if (keeps && !session) {
        cfx_error_set(err, CFX_E_VALUE, "the model keeps state from run to run: pass a session");
        return result;
    }
    if (keeps && check_session(r, session, err) != CFX_OK)
        return result;
    if (n > num_arguments) {
        cfx_error_set(err, CFX_E_ASSERTION, "too many inputs: expected at most %zu, got %zu",
                      num_arguments, n);
        return result;
    }
    cfx_datum *all = num <= FEW ? few : cfxi_base_alloc(e->allocator, num * sizeof *all);
    if (!all) {
        cfxi_base_nomem(err);
        return result;
    }
    gather(r, session, inputs, n, all);
    const cfx_status status = cfx_signature_check(r->signature, all, num, err);
    *agrees = status == CFX_OK;
    if (status == CFX_OK)
        result = keeps ? run_kept(e, r, session, rt, all, err) : run_plain(r, rt, all, err);
    if (all != few)
        cfxi_base_free(e->allocator, all, num * sizeof *all);
    return result;
}

cfx_datum cfx_executable_run_graph(const cfx_executable *e, size_t i, cfx_session *session,
                                   cfx_runtime *rt, const cfx_datum *inputs, size_t n, bool *agrees,
                                   cfx_error *err)
{
    *agrees = false;
    if (cfxi_base_expect(e, "executable", err) || cfxi_base_expect(rt, "runtime", err))
        return cfx_datum_invalid();
    if (i < e->graphs.size)
        return try_graph(e, graph_at(e, i), session, rt, inputs, n, agrees, err);
    cfx_error_set(err, CFX_E_INDEX, "the model has no graph %zu", i);
    return cfx_datum_invalid();
}

cfx_datum cfx_executable_run(const cfx_executable *e, cfx_session *session, cfx_runtime *rt,
                             const cfx_datum *inputs, size_t n, size_t *graph, cfx_error *err)
{
    cfx_error first = {0};
    const cfx_datum none = cfx_datum_invalid();
    if (cfxi_base_expect(e, "executable", err) || cfxi_base_expect(rt, "runtime", err))
        return none;
    for (size_t i = 0; i < e->graphs.size; i++) {
        bool agrees;
        cfx_error why = {0};
        const cfx_datum result =
            try_graph(e, graph_at(e, i), session, rt, inputs, n, &agrees, &why);
        if (!agrees && why.status == CFX_E_ASSERTION) {
            first = i == 0 ? why : first;
            continue;
        }
        if (result.kind == CFX_DATUM_INVALID && err)
            *err = why;
        if (graph)
            *graph = i;
        return result;
    }
    if (err)
        *err = first;
    return none;
}

cfx_status cfx_executable_print_plans(const cfx_executable *e, cfx_sink sink, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(e, "executable", err));
    for (size_t i = 0; i < e->graphs.size; i++)
        if (graph_at(e, i)->program)
            CFX_TRY(cfx_program_print_plans(graph_at(e, i)->program, sink, err));
    return CFX_OK;
}
