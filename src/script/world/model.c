/* model.c - a model from its source: its statements are run, the model is made, and its forward is
 * captured. */
#include "world_impl.h"

#include "ir/text_lex_impl.h"

#include <cfx/pyscript.h>

#include <stdio.h>

typedef struct job {
    cfx_at at;
    const char *source;
    size_t size;
    const char *file;
    const cfx_script_model_options *options;
    cfxi_world w;
    cfx_graph *g;
    cfx_evaluator *ev;
    cfx_script *script;
    cfx_script *caller;      /* of the expression that makes the model; or NULL */
    cfx_object *globals;
    cfx_object *model;       /* what is captured: a module, or a function */
    cfx_object *forward;     /* what is called */
    cfx_module *made;        /* borrowed from the scope */
} job;

/* The expression that makes the model is evaluated as one statement: in parentheses, so that it is
 * one expression. */
static const char call_name[] = "__cfx_model__";
static const char call_begin[] = "__cfx_model__ = (";
static const char call_end[] = "\n)\n";

/* ---- messages ------------------------------------------------------------------------------ */

static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash && slash[1] ? slash + 1 : file;
}

static size_t offset_of(const char *text, size_t size, uint32_t line, uint32_t column)
{
    size_t at = 0;
    for (uint32_t n = 1; n < line && at < size; at++)
        n += text[at] == '\n';
    return at + column < size ? at + column : size;
}

/* The status whose exception that is. */
static cfx_status status_of(const cfx_object *exc)
{
    const int kind = exc && exc->cls ? exc->cls->as.cls.exception : -1;
    static const struct {
        uint8_t kind, status;
    } rows[] = {
        {CFXI_TypeError, CFX_E_TYPE}, {CFXI_IndexError, CFX_E_INDEX}, {CFXI_KeyError, CFX_E_KEY},
        {CFXI_RuntimeError, CFX_E_SHAPE}, {CFXI_ZeroDivisionError, CFX_E_DIVISION},
        {CFXI_OverflowError, CFX_E_OVERFLOW},
        {CFXI_NotImplementedError, CFX_E_UNSUPPORTED}, {CFXI_RecursionError, CFX_E_LIMIT},
        {CFXI_NameError, CFX_E_KEY}, {CFXI_AttributeError, CFX_E_KEY},
        {CFXI_ModuleNotFoundError, CFX_E_KEY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (kind == rows[i].kind)
            return (cfx_status)rows[i].status;
    return CFX_E_VALUE;
}

/* An exception that was not caught: where, the line with a caret, and the call stack. */
static void show_exception(const job *j, cfx_error *err)
{
    cfx_script_location p;
    char shown[CFXI_SHOWN_SIZE] = "";
    char calls[200] = "";
    char what[300];
    size_t used = 0;
    const cfx_status status = status_of(j->w.pending);
    snprintf(what, sizeof what, "%.290s", err->message);
    if (!cfx_evaluator_where(j->ev, 0, &p)) {
        err->status = status;
        return;
    }
    const bool own = strcmp(p.file, j->file) == 0;
    const char *text = own ? j->source : j->options->call;
    const size_t size = own ? j->size : strlen(text);
    const size_t column = own ? p.column : p.line > 1 ? p.column : p.column - strlen(call_begin);
    const cfxi_lexer lex = {.text = text, .size = size};
    cfxi_ir_lex_show(&lex, offset_of(text, size, p.line, (uint32_t)column), shown);
    for (size_t i = 1; cfx_evaluator_where(j->ev, i, &p) && used < sizeof calls; i++)
        used += (size_t)snprintf(calls + used, sizeof calls - used, "\ncalled from %.60s:%u in "
                                 "%.40s", base_name(p.file), p.line, p.function);
    cfx_evaluator_where(j->ev, 0, &p);
    cfx_error_set(err, status, "%.80s:%u: %s%s%s%s", base_name(p.file), p.line, what,
                  shown[0] ? "\n" : "", shown, calls);
    err->line = p.line;
    err->column = p.column + 1;
}

/* A source with a syntax error: "net.py:3: " in the place of "path/net.py: line 3, column 7: ". */
static void show_syntax(const job *j, cfx_error *err)
{
    char what[sizeof err->message];
    const size_t n = strlen(j->file);
    const cfx_error was = *err;
    const char *text = was.message;
    if (was.line == 0 || strncmp(text, j->file, n) != 0 || strncmp(text + n, ": line ", 7) != 0)
        return;
    const char *colon = strstr(text + n + 2, ": ");
    if (!colon)
        return;
    snprintf(what, sizeof what, "%s", colon + 2);
    cfx_error_set(err, was.status, "%.80s:%u: %.400s", base_name(j->file), was.line, what);
    err->line = was.line;
    err->column = was.column;
}

/* ---- what is to be captured ---------------------------------------------------------------- */

static bool is_module_class(const cfx_object *o)
{
    return o->type == CFXI_TYPE_CLASS && o->as.cls.own && o->as.cls.layout == CFXI_TYPE_MODULE;
}

enum { NAMES_SIZE = 200 };

/* What could be captured, by its names: "f, g, Net". */
static void list_names(const job *j, char out[NAMES_SIZE])
{
    cfx_object *name;
    cfx_object *o;
    size_t used = 0;
    out[0] = '\0';
    for (size_t at = 0; cfxi_world_dict_next(j->globals, &at, &name, &o);) {
        if (!is_module_class(o) && o->type != CFXI_TYPE_FUNCTION)
            continue;
        const char *text = name->as.text.data;
        const bool fits = used + name->as.text.size + 8 < NAMES_SIZE;
        used += (size_t)snprintf(out + used, NAMES_SIZE - used, "%s%s", used ? ", " : "",
                                 fits ? text : "...");
        if (!fits)
            return;
    }
}

/* The last class, or the only function. Borrowed. */
static cfx_object *choose(job *j, cfx_error *err)
{
    cfx_object *name;
    cfx_object *o;
    cfx_object *cls = NULL;
    cfx_object *function = NULL;
    size_t functions = 0;
    for (size_t at = 0; cfxi_world_dict_next(j->globals, &at, &name, &o);) {
        if (is_module_class(o))
            cls = o;
        if (o->type == CFXI_TYPE_FUNCTION) {
            function = o;
            functions++;
        }
    }
    if (cls || functions == 1)
        return cls ? cls : function;
    char names[NAMES_SIZE];
    list_names(j, names);
    if (functions)
        cfx_error_set(err, CFX_E_KEY, "%.80s: the file has several functions (%s); name the one to "
                      "capture", base_name(j->file), names);
    else
        cfx_error_set(err, CFX_E_VALUE, "%.80s: the file has neither a class derived from "
                      "torch.nn.Module nor a function", base_name(j->file));
    return NULL;
}

/* The value of the expression `call`, a new reference. */
static cfx_object *evaluate_call(job *j, cfx_error *err)
{
    cfx_buffer text;
    cfx_object *made = NULL;
    if (j->options->call[strspn(j->options->call, " \t\r\n")] == '\0') {
        cfx_error_set(err, CFX_E_VALUE, "%.80s: the call that creates the model is empty",
                      base_name(j->file));
        return NULL;
    }
    cfx_buffer_init(&text, j->w.allocator);
    cfx_status status = cfxi_world_put(&text, call_begin, err);
    if (status == CFX_OK)
        status = cfxi_world_put(&text, j->options->call, err);
    if (status == CFX_OK)
        status = cfxi_world_put(&text, call_end, err);
    if (status == CFX_OK)
        j->caller = cfx_script_parse(text.data, text.size, "<call>", true, j->w.allocator, err);
    cfx_buffer_free(&text);
    if (!j->caller && err->line > 0) {
        const char *colon = strstr(err->message, "column ");
        const char *what = colon ? strchr(colon, ':') : NULL;
        char why[200];
        snprintf(why, sizeof why, "%.190s", what ? what + 2 : err->message);
        cfx_error_set(err, CFX_E_VALUE, "%.80s: the call '%.100s' is not an expression: %.*s",
                      base_name(j->file), j->options->call, (int)strcspn(why, "\n"), why);
    }
    if (j->caller && cfx_evaluator_run(j->ev, j->caller, j->globals, err) == CFX_OK)
        made = cfxi_world_ref(cfxi_world_dict_get(j->globals, call_name));
    if (!made && err->status == CFX_OK)
        cfx_error_set(err, CFX_E_SYNTAX, "the call must be one expression: '%.100s'",
                      j->options->call);
    return made;
}

/* The class is made without arguments. */
static cfx_object *instantiate(job *j, cfx_object *cls, cfx_error *err)
{
    cfx_object *o = cfx_evaluator_call(j->ev, cls, (cfx_call_args){.n = 0}, err);
    if (!o && err->status == CFX_E_HOST && strstr(err->message, "missing")) {
        char what[300];
        snprintf(what, sizeof what, "%.290s", err->message);
        cfx_error_set(err, CFX_E_TYPE, "%.80s: %s; give the call that creates it, such as "
                      "'%.60s(...)'",
                      base_name(j->file), what, cls->as.cls.name);
    }
    return o;
}

static cfx_status find_model(job *j, cfx_error *err)
{
    cfx_object *o = NULL;
    if (j->options->call) {
        o = evaluate_call(j, err);
    } else if (j->options->name) {
        char names[NAMES_SIZE];
        list_names(j, names);
        o = cfxi_world_ref(cfxi_world_dict_get(j->globals, j->options->name));
        if (!o)
            cfx_error_set(err, CFX_E_KEY, "%.80s: the file has no '%.80s'%s%s",
                          base_name(j->file), j->options->name, names[0] ? "; it has " : "", names);
    } else {
        o = cfxi_world_ref(choose(j, err));
    }
    if (o && o->type == CFXI_TYPE_CLASS) {
        cfx_object *cls = o;
        o = instantiate(j, cls, err);
        cfxi_world_unref(cls);
    }
    j->model = o;
    if (!o)
        return err->status;
    const bool method = o->type == CFXI_TYPE_METHOD && o->as.parts.a->type == CFXI_TYPE_FUNCTION;
    const cfx_object *call = o->type == CFXI_TYPE_INSTANCE && o->cls
                                 ? cfxi_world_class_find(o->cls, "__call__") : NULL;
    if (o->type == CFXI_TYPE_MODULE || o->type == CFXI_TYPE_FUNCTION || method ||
        (call && call->type == CFXI_TYPE_FUNCTION))
        return CFX_OK;
    return cfx_error_set(err, CFX_E_TYPE, "%.80s: only a module or a function can be captured, not "
                         "an object of type '%.60s'", base_name(j->file),
                         cfxi_world_type_name(o));
}

/* ---- capturing ----------------------------------------------------------------------------- */

/* The module whose tensors and children the graph names: the model, or an empty one. */
static cfx_status make_root(job *j, cfx_error *err)
{
    cfxi_world *w = &j->w;
    if (j->model->type == CFXI_TYPE_MODULE) {
        w->root = cfxi_world_ref(j->model);
        if (j->options->eval)
            cfx_module_train(w->root->as.module, false);
    } else {
        cfx_module *m = cfxi_capture_module_make(w->allocator, err);
        w->root = m ? cfxi_world_layer_object(w, m, err) : NULL;
        cfx_module_release(m);
    }
    if (!w->root)
        return err->status;
    return cfxi_capture_places_fill(&w->places, w->root->as.module, err);
}

typedef struct inputs {
    cfx_object *args[CFXI_MOST_ARGS];
    const char *names[CFXI_MOST_ARGS];
    char stars[2][80];   /* "*args", "**kwargs" */
    size_t n, n_named;
} inputs;

static cfx_object *placeholder(job *j, const char *target, const char *wish, cfx_object *value,
                               cfx_error *err)
{
    cfx_value usual = value ? cfxi_world_to_value(&j->w, value, err) : cfx_value_none();
    if (usual.kind == CFX_KIND_INVALID)
        return NULL;
    cfx_value args = cfx_value_tuple(j->g, &usual, value != NULL, err);
    const cfx_target name = {.name = target, .size = strlen(target)};
    cfx_node *n = args.kind == CFX_KIND_INVALID
                      ? NULL
                      : cfx_graph_create(j->g, CFX_OP_PLACEHOLDER, name, args, cfx_value_invalid(),
                                         wish, cfx_value_invalid(), err);
    if (!n) {
        cfx_value_discard(j->g, args);
        return NULL;
    }
    return cfxi_world_value_object(&j->w, n, err);
}

/* A placeholder for each parameter, but for the first of a method. */
static cfx_status add_inputs(job *j, const cfx_script_function *f, bool bound, inputs *in,
                             cfx_error *err)
{
    cfx_script_parameter p;
    for (size_t i = bound; cfx_script_function_parameter(f, i, &p); i++) {
        const char *name = p.name;
        if (in->n == CFXI_MOST_ARGS)
            return cfx_error_set(err, CFX_E_LIMIT, "models with more than %d inputs are not "
                                 "supported", CFXI_MOST_ARGS);
        if (p.kind == CFX_PARAMETER_ARGS || p.kind == CFX_PARAMETER_KWARGS) {
            const bool many = p.kind == CFX_PARAMETER_KWARGS;
            snprintf(in->stars[many], sizeof in->stars[many], "*%s%.70s", many ? "*" : "", p.name);
            name = in->stars[many];
        }
        in->args[in->n] = placeholder(j, name, p.name, p.value, err);
        if (!in->args[in->n])
            return err->status;
        in->n++;
        if (p.kind != CFX_PARAMETER_PLAIN && p.kind != CFX_PARAMETER_POSITION)
            in->names[in->n_named++] = name;
    }
    return CFX_OK;
}

/* A Sequential, or a module of torch.nn, is called with one input. */
static cfx_status one_input(job *j, inputs *in, cfx_error *err)
{
    in->args[0] = placeholder(j, "input", "input", NULL, err);
    in->n = in->args[0] != NULL;
    return in->n ? CFX_OK : err->status;
}

/* The function whose parameters a call takes: that behind functools.wraps, as inspect.signature
 * tells. */
static const cfx_script_function *signature_of(const cfx_object *f, const cfx_script_function *own)
{
    const cfx_object *inner = f->type == CFXI_TYPE_METHOD ? f->as.parts.a : f;
    while (inner->type == CFXI_TYPE_FUNCTION && inner->attrs) {
        const cfx_object *wrapped = cfxi_world_dict_get(inner->attrs, "__wrapped__");
        if (!wrapped || wrapped->type != CFXI_TYPE_FUNCTION || wrapped == inner)
            break;
        inner = wrapped;
    }
    return inner->type == CFXI_TYPE_FUNCTION ? inner->as.function : own;
}

/* What is called: forward, bound; or the function, or the module itself. */
static cfx_status find_forward(job *j, inputs *in, cfx_error *err)
{
    cfx_script_callee how;
    cfx_script_parameter first;
    CFX_TRY(cfxi_world_callee(&j->w, j->model, &how, err));
    if (how.kind == CFX_CALLEE_MODULE) {
        j->forward = cfxi_world_ref(how.function);
        CFX_TRY(cfxi_world_callee(&j->w, j->forward, &how, err));
    } else if (how.kind == CFX_CALLEE_OWN && !how.self &&
               cfx_script_function_parameter(how.own, 0, &first) &&
               strcmp(first.name, "self") == 0) {  /* as cfx code writes a graph */
        j->forward =
            cfxi_world_parts_object(&j->w, CFXI_TYPE_METHOD, j->model, j->w.root, NULL, err);
        if (!j->forward)
            return err->status;
        how.self = j->w.root;
    } else {
        j->forward = cfxi_world_ref(j->model);
    }
    if (how.kind == CFX_CALLEE_OWN)
        return add_inputs(j, signature_of(j->forward, how.own), how.self != NULL, in, err);
    return one_input(j, in, err);
}

/* What of a result would be something else in the runtime, a set a tuple, say; or NULL. */
static const char *cannot_return(const cfx_object *o, int depth)
{
    cfx_object *key;
    cfx_object *value;
    const char *found = NULL;
    if (depth > CFXI_DEEPEST)
        return NULL;
    if (o->type == CFXI_TYPE_SET || o->type == CFXI_TYPE_FROZENSET)
        return "a set cannot be returned: the runtime has none; return a sorted list instead";
    if (o->type == CFXI_TYPE_LIST && o->as.seq.of)
        return "a view of a dict cannot be returned; return list(...) of it";
    if (o->type == CFXI_TYPE_TUPLE || o->type == CFXI_TYPE_LIST)
        for (size_t i = 0; !found && i < o->as.seq.n; i++)
            found = cannot_return(o->as.seq.items[i], depth + 1);
    if (o->type == CFXI_TYPE_DICT)
        for (size_t at = 0; !found && cfxi_world_dict_next(o, &at, &key, &value);)
            found = cannot_return(value, depth + 1);
    return found;
}

/* What the program returns, as the output of the graph. */
static cfx_status put_result(job *j, cfx_object *result, cfx_error *err)
{
    const char *why = cannot_return(result, 0);
    if (why)
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "%.80s:%u: %s",
                             base_name(j->w.file ? j->w.file : j->file), j->w.line, why);
    const cfx_value v = cfxi_world_to_value(&j->w, result, err);
    if (v.kind == CFX_KIND_INVALID || !cfx_graph_output(j->g, v, err))
        return err->status;
    return cfx_script_tidy_graph(j->g, err);
}

static cfx_status capture(job *j, cfx_error *err)
{
    inputs in = {.n = 0};
    cfx_object *result = NULL;
    cfx_status status = make_root(j, err);
    cfx_evaluator_accept(j->ev);
    cfxi_world_freeze(&j->w);
    j->w.recording = true;
    if (status == CFX_OK)
        status = find_forward(j, &in, err);
    if (status == CFX_OK) {
        const cfx_call_args args = {in.args, in.n, in.names, in.n_named};
        result = cfx_evaluator_call(j->ev, j->forward, args, err);
        status = result ? cfx_evaluator_finish(j->ev, err) : err->status;
    }
    for (size_t i = 0; i < in.n; i++)
        cfxi_world_unref(in.args[i]);
    if (status == CFX_OK)
        status = put_result(j, result, err);
    cfxi_world_unref(result);
    return status;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static const char *class_name(const job *j)
{
    const cfx_object *f = j->model->type == CFXI_TYPE_METHOD ? j->model->as.parts.a : j->model;
    if (f->type == CFXI_TYPE_FUNCTION)
        return cfx_script_function_name(f->as.function);
    return j->model->cls->as.cls.name;
}

static cfx_status begin(job *j, cfx_error *err)
{
    const cfx_allocator *allocator = j->at.scope->allocator;
    CFX_TRY(cfxi_world_begin(&j->w, allocator, err));
    j->w.scope = j->at.scope;
    j->w.out = j->options->print;
    if (j->options->most_bytes)
        j->w.most_bytes = j->options->most_bytes;
    j->g = cfx_graph_new(allocator, &cfxi_capture_object_host, err);
    j->w.graph = j->g;
    const cfx_script_options limits = {j->options->most_calls, j->options->most_rounds};
    j->ev = j->g ? cfx_evaluator_new(&j->w.table, j->g, &limits, err) : NULL;
    j->w.evaluator = j->ev;
    j->globals = j->ev ? cfxi_world_dict_object(&j->w, CFXI_TYPE_DICT, err) : NULL;
    if (!j->globals)
        return err->status;
    cfx_object *name = cfxi_world_str(&j->w, "__script__", err);
    cfx_status status = name ? cfxi_world_dict_put(j->globals, "__name__", name, err) : err->status;
    cfxi_world_unref(name);
    if (status == CFX_OK)
        status = cfxi_world_load_library(&j->w, j->source, j->size, err);
    j->w.last = j->w.ring.prev;
    return status;
}

static cfx_status run(job *j, cfx_error *err)
{
    CFX_TRY(begin(j, err));
    j->script = cfx_script_parse(j->source, j->size, j->file, false, j->w.allocator, err);
    if (!j->script)
        show_syntax(j, err);
    if (!j->script)
        return err->status;
    CFX_TRY(cfx_evaluator_run(j->ev, j->script, j->globals, err));
    CFX_TRY(find_model(j, err));
    CFX_TRY(capture(j, err));
    j->made = cfx_module_from_graph_at(cfx_at_make(j->at.scope, NULL, 0), j->g, class_name(j),
                                       j->w.root->as.module);
    if (!j->made) {
        *err = *cfx_scope_error(j->at.scope);
        cfx_scope_clear_error(j->at.scope);
    }
    return j->made ? CFX_OK : err->status;
}

static void end(job *j)
{
    cfx_evaluator_free(j->ev);
    j->w.evaluator = NULL;
    cfxi_world_end(&j->w);
    cfxi_world_free_library(&j->w);
    cfx_script_release(j->caller);
    cfx_script_release(j->script);
    cfx_graph_release(j->g);
}

cfx_module *cfx_script_model_at(cfx_at at, const char *source, size_t size, const char *file,
                                cfx_script_model_options options)
{
    cfx_error err = {0};
    if (!cfx_scope_ok(at.scope))
        return NULL;
    job j = {.at = at, .source = source, .size = size, .file = file ? file : "<script>",
             .options = &options};
    if (!source) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "the source is NULL");
        return NULL;
    }
    const size_t mark = at.scope->modules.size;
    const cfx_status status = run(&j, &err);
    if (status == CFX_E_HOST || err.status == CFX_E_HOST)
        show_exception(&j, &err);
    end(&j);
    cfxi_capture_scope_keep(at, mark, status == CFX_OK ? j.made : NULL);
    if (status == CFX_OK)
        return j.made;
    cfxi_capture_scope_take(at, &err);
    return NULL;
}
