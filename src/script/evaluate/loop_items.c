/* loop_items.c - what a `for` goes over: known items, or a sequence whose length is a graph value.
 *
 * The latter is taken apart as it is written: range, enumerate, zip and reversed of graph values
 * become a count and, for the round i, an item. `for i, row in enumerate(x)` counts to len(x) and
 * has (i, x[i]).
 */
#include "graph_control_impl.h"

/* ---- taking the head of a loop apart ------------------------------------------------------- */

static bool is_graph(const cfxi_sequence *s)
{
    bool graph = false;
    for (size_t i = 0; i < s->n; i++)
        graph = graph || is_graph(&s->parts[i]);
    return graph || s->graph;
}

static cfxi_sequence *parts_of(cfx_evaluator *ev, cfxi_sequence *s, size_t n)
{
    s->parts = cfxi_eval_ev_alloc(ev, (n + 1) * sizeof *s->parts);
    s->n = n;
    return s->parts;
}

/* Whether an input is annotated as a dict: dict, dict[str, Tensor], typing.Dict[str, Tensor]. */
static bool says_dict(const cfx_node *n)
{
    const cfx_value type = cfx_node_type(n);
    cfx_error ignored = {0};
    const char *text = type.kind == CFX_KIND_HOST ? cfx_value_host_name(n->graph, type, &ignored)
                                                  : cfx_value_text(type, NULL);
    const char *end = text ? text + strcspn(text, "[") : NULL;
    return text && end - text >= 4 &&
           (strncmp(end - 4, "dict", 4) == 0 || strncmp(end - 4, "Dict", 4) == 0);
}

/* Whether it is a dict, or one of its views: those have items, but not by index. */
static bool has_keys(cfx_evaluator *ev, cfx_object *o)
{
    static const char views[][8] = {"keys", "values", "items"};
    const cfx_node *n = cfxi_eval_node(ev, o);
    const char *name = cfx_node_op(n) == CFX_OP_CALL_METHOD ? cfx_node_target(n, NULL, NULL) : NULL;
    for (size_t i = 0; name && cfx_node_num_args(n) == 1 && i < 3; i++)
        if (strcmp(name, views[i]) == 0)
            return true;
    return cfxi_eval_kind(ev, o) == CFX_OBJECT_DICT ||
           (cfx_node_op(n) == CFX_OP_PLACEHOLDER && says_dict(n));
}

/* Whether a loop over what may be anything seems to be one over keys: list() is right for all. */
static bool may_have_keys(cfx_evaluator *ev, const cfxi_ast *expr, cfx_object *o)
{
    return expr && cfxi_eval_kind(ev, o) == CFX_OBJECT_OTHER &&
           cfxi_base_pointers_get(&ev->frame->def->script->keyed, expr);
}

/* Who has the items, if that is a list or dict that is growing: a round may change it. */
static bool find_owner(cfx_evaluator *ev, cfx_object *o, cfxi_owner **out)
{
    const char *part = NULL;
    cfx_object *dict = ev->growing.n > 0 ? cfxi_eval_view_owner(ev, o, &part) : NULL;
    o = dict ? dict : o;
    if (cfxi_eval_current(ev, o) == o)
        return true;
    if (!part && ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_DICT)
        part = "keys";
    *out = cfxi_eval_ev_alloc(ev, sizeof **out);
    if (*out)
        **out = (cfxi_owner){.object = o, .part = part};
    return *out != NULL;
}

/* A value by itself, which `expr` is (NULL: nobody goes over it). */
static bool plain(cfx_evaluator *ev, const cfxi_ast *expr, cfx_object *o, cfxi_sequence *s)
{
    cfx_object *owner;
    *s = (cfxi_sequence){.kind = CFXI_SEQUENCE_ITEMS};
    if (!find_owner(ev, o, &s->owner))
        return false;
    s->object = s->owner ? cfxi_eval_current(ev, s->owner->object) : cfxi_eval_drained(ev, o);
    if (!s->object)
        return false;
    owner = s->object;
    if (!cfxi_eval_node(ev, owner) && cfxi_eval_change(ev, &owner) == CFX_CHANGE_ITERATOR &&
        !cfxi_eval_will_change(ev, owner))
        return false;
    if (!cfxi_eval_node(ev, s->object) && ev->w->kind(ev->w->ctx, s->object) == CFX_OBJECT_TENSOR) {
        cfx_error err = {0};
        cfx_object *v = ev->w->tensor(ev->w->ctx, s->object, &err);
        if (!v && err.status != CFX_OK) {
            *ev->err = err;
            return false;
        }
        s->object = v ? cfxi_eval_pool(ev, v) : s->object;
    }
    s->graph = s->object && cfxi_eval_node(ev, s->object);
    if (s->graph && (has_keys(ev, s->object) || may_have_keys(ev, expr, s->object)))
        s->object = cfxi_eval_record(ev, "builtins.list", &s->object, 1);
    return s->object != NULL;
}

static bool head_call(cfx_evaluator *ev, const cfxi_Call *c, cfx_object *f,
                      cfx_script_special which, cfxi_sequence *s)
{
    static const uint8_t kinds[CFX_SPECIALS] = {
        [CFX_SPECIAL_RANGE] = CFXI_SEQUENCE_RANGE,
        [CFX_SPECIAL_ENUMERATE] = CFXI_SEQUENCE_ENUMERATE,
        [CFX_SPECIAL_ZIP] = CFXI_SEQUENCE_ZIP,
        [CFX_SPECIAL_REVERSED] = CFXI_SEQUENCE_REVERSED,
    };
    *s = (cfxi_sequence){.kind = (cfxi_sequence_kind)kinds[which], .object = f};
    if (!parts_of(ev, s, c->args.count + c->keywords.count))
        return false;
    for (size_t i = 0; i < c->args.count; i++) {
        const bool number = which == CFX_SPECIAL_RANGE || (which == CFX_SPECIAL_ENUMERATE && i > 0);
        cfx_object *o;
        if (!number && !cfxi_eval_sequence_of(ev, c->args.items[i], &s->parts[i]))
            return false;
        if (number && (!(o = cfxi_eval(ev, c->args.items[i])) || !plain(ev, NULL, o, &s->parts[i])))
            return false;
    }
    if (c->keywords.count == 1) {  /* enumerate(x, start=1) */
        cfx_object *o = cfxi_eval(ev, cfxi_syntax_as_keyword(c->keywords.items[0])->value);
        return o && plain(ev, NULL, o, &s->parts[c->args.count]);
    }
    return true;
}

static bool is_head(const cfxi_Call *c, cfx_script_special which)
{
    for (size_t i = 0; i < c->args.count; i++)
        if (c->args.items[i]->kind == CFXI_AST_Starred)
            return false;
    const size_t n = c->args.count;
    switch (which) {
    case CFX_SPECIAL_RANGE:
        return n >= 1 && n <= 3 && c->keywords.count == 0;
    case CFX_SPECIAL_ENUMERATE:
        return n >= 1 && n + c->keywords.count <= 2 &&
               (c->keywords.count == 0 ||
                (cfxi_syntax_as_keyword(c->keywords.items[0])->arg &&
                 strcmp(cfxi_syntax_as_keyword(c->keywords.items[0])->arg, "start") == 0));
    case CFX_SPECIAL_ZIP:
        return n >= 1 && c->keywords.count == 0;
    case CFX_SPECIAL_REVERSED:
        return n == 1 && c->keywords.count == 0;
    default:
        return false;
    }
}

bool cfxi_eval_sequence_of(cfx_evaluator *ev, const cfxi_ast *expr, cfxi_sequence *s)
{
    cfx_script_callee callee = {0};
    if (expr->kind == CFXI_AST_Call && cfxi_syntax_as_Call(expr)->func->kind == CFXI_AST_Name) {
        const cfxi_Call *c = cfxi_syntax_as_Call(expr);
        cfx_object *f = cfxi_eval(ev, c->func);
        if (!f || ev->w->callee(ev->w->ctx, f, &callee, ev->err) != CFX_OK)
            return false;
        if (callee.kind == CFX_CALLEE_SPECIAL && is_head(c, callee.special)) {
            if (!head_call(ev, c, f, callee.special, s))
                return false;
            s->graph = is_graph(s);
            return s->graph || cfxi_eval_sequence_known(ev, s);
        }
    }
    cfx_object *o = expr->kind == CFXI_AST_GeneratorExp ? cfxi_eval_comprehend(ev, expr)
                                                        : cfxi_eval_raw(ev, expr);
    return o && plain(ev, expr, o, s);
}

/* All of it is known: the world's own object. */
bool cfxi_eval_sequence_known(cfx_evaluator *ev, cfxi_sequence *s)
{
    cfx_object **args = cfxi_eval_ev_alloc(ev, (s->n + 1) * sizeof *args);
    if (!args)
        return false;
    for (size_t i = 0; i < s->n; i++)
        args[i] = s->parts[i].object;
    const cfx_call_args call = {.args = args, .n = s->n};
    s->function = s->object;
    s->object = cfxi_eval_world_call(ev, s->object, call);
    s->kind = s->kind == CFXI_SEQUENCE_RANGE ? CFXI_SEQUENCE_RANGE : CFXI_SEQUENCE_ITEMS;
    return s->object != NULL;
}

/* ---- how many, and the i-th ---------------------------------------------------------------- */

static bool known_int(cfx_evaluator *ev, cfx_object *o, int64_t *i)
{
    return !cfxi_eval_node(ev, o) && ev->w->integer(ev->w->ctx, o, i);
}

typedef struct range {
    cfx_object *start, *stop, *step;
    bool by_1;
    bool simple;  /* from 0, by 1 */
} range;

static bool range_of(cfx_evaluator *ev, const cfxi_sequence *s, range *r)
{
    int64_t start = 0, step = 1;
    r->start = s->n > 1 ? s->parts[0].object : cfxi_eval_int(ev, 0);
    r->stop = s->parts[s->n > 1].object;
    r->step = s->n > 2 ? s->parts[2].object : cfxi_eval_int(ev, 1);
    if (!r->start || !r->step)
        return false;
    r->by_1 = known_int(ev, r->step, &step) && step == 1;
    r->simple = r->by_1 && known_int(ev, r->start, &start) && start == 0;
    return true;
}

/* max(0, -((start - stop) // step)), which is (stop - start) / step rounded up. */
static cfx_object *range_count(cfx_evaluator *ev, const range *r)
{
    if (r->simple)
        return r->stop;
    cfx_object *n = r->by_1 ? cfxi_eval_binary(ev, CFX_SIGN_SUB, r->stop, r->start)
                            : cfxi_eval_binary(ev, CFX_SIGN_SUB, r->start, r->stop);
    if (n && !r->by_1)
        n = cfxi_eval_binary(ev, CFX_SIGN_FLOORDIV, n, r->step);
    if (n && !r->by_1)
        n = cfxi_eval_unary(ev, CFX_SIGN_NEG, n);
    cfx_object *in[2] = {cfxi_eval_int(ev, 0), n};
    return n && in[0] ? cfxi_eval_record(ev, "builtins.max", in, 2) : NULL;
}

static cfx_object *smallest(cfx_evaluator *ev, const cfxi_sequence *s)
{
    cfx_object *in[8];
    if (s->n > 8)
        return cfxi_eval_fail(ev, NULL, CFX_E_LIMIT,
                              "zip() takes at most 8 arguments that depend on data");
    for (size_t i = 0; i < s->n; i++)
        if (!(in[i] = cfxi_eval_sequence_count(ev, &s->parts[i])))
            return NULL;
    return s->n == 1 ? in[0] : cfxi_eval_record(ev, "builtins.min", in, s->n);
}

cfx_object *cfxi_eval_sequence_count(cfx_evaluator *ev, const cfxi_sequence *s)
{
    range r;
    cfx_object **items;
    size_t n;
    switch (s->kind) {
    case CFXI_SEQUENCE_ITEMS:
        if (s->graph)
            return cfxi_eval_record(ev, "builtins.len", &s->object, 1);
        return cfxi_eval_items(ev, s->object, &items, &n) ? cfxi_eval_int(ev, (int64_t)n) : NULL;
    case CFXI_SEQUENCE_RANGE:
        return range_of(ev, s, &r) ? range_count(ev, &r) : NULL;
    case CFXI_SEQUENCE_ENUMERATE:
    case CFXI_SEQUENCE_REVERSED:
        return cfxi_eval_sequence_count(ev, &s->parts[0]);
    case CFXI_SEQUENCE_ZIP:
        return smallest(ev, s);
    }
    return NULL;
}

static cfx_object *range_item(cfx_evaluator *ev, const cfxi_sequence *s, cfx_object *i)
{
    range r;
    if (!range_of(ev, s, &r))
        return NULL;
    if (r.simple)
        return i;
    cfx_object *by = r.by_1 ? i : cfxi_eval_binary(ev, CFX_SIGN_MUL, i, r.step);
    return by ? cfxi_eval_binary(ev, CFX_SIGN_ADD, r.start, by) : NULL;
}

static cfx_object *pair(cfx_evaluator *ev, const cfxi_sequence *s, cfx_object *i)
{
    cfx_object *in[2] = {i, cfxi_eval_sequence_item(ev, &s->parts[0], i)};
    int64_t start;
    const bool from_0 = s->n < 2 || (known_int(ev, s->parts[1].object, &start) && start == 0);
    if (in[1] && !from_0)
        in[0] = cfxi_eval_binary(ev, CFX_SIGN_ADD, i, s->parts[1].object);
    return in[0] && in[1] ? cfxi_eval_tuple(ev, in, 2) : NULL;
}

static cfx_object *from_end(cfx_evaluator *ev, const cfxi_sequence *s, cfx_object *i)
{
    cfx_object *n = cfxi_eval_sequence_count(ev, &s->parts[0]);
    cfx_object *one = n ? cfxi_eval_int(ev, 1) : NULL;
    cfx_object *last = one ? cfxi_eval_binary(ev, CFX_SIGN_SUB, n, one) : NULL;
    cfx_object *at = last ? cfxi_eval_binary(ev, CFX_SIGN_SUB, last, i) : NULL;
    return at ? cfxi_eval_sequence_item(ev, &s->parts[0], at) : NULL;
}

/* What it has at the i-th place, or for the i-th key, now. */
static cfx_object *owners_item(cfx_evaluator *ev, const cfxi_sequence *s, cfx_object *i)
{
    cfx_object *o = s->owner->object;
    const char *part = s->owner->part;
    if (!part)
        return cfxi_eval_item(ev, o, i);
    cfx_object *pair[2] = {cfxi_eval_item(ev, s->object, i), NULL};
    if (!pair[0] || strcmp(part, "keys") == 0)
        return pair[0];
    pair[1] = cfxi_eval_item(ev, o, pair[0]);
    return pair[1] && strcmp(part, "items") == 0 ? cfxi_eval_tuple(ev, pair, 2) : pair[1];
}

cfx_object *cfxi_eval_sequence_item(cfx_evaluator *ev, const cfxi_sequence *s, cfx_object *i)
{
    cfx_object **items;
    switch (s->kind) {
    case CFXI_SEQUENCE_ITEMS:
        return s->owner ? owners_item(ev, s, i) : cfxi_eval_item(ev, s->object, i);
    case CFXI_SEQUENCE_RANGE:
        return range_item(ev, s, i);
    case CFXI_SEQUENCE_ENUMERATE:
        return pair(ev, s, i);
    case CFXI_SEQUENCE_REVERSED:
        return from_end(ev, s, i);
    case CFXI_SEQUENCE_ZIP:
        items = cfxi_eval_ev_alloc(ev, (s->n + 1) * sizeof *items);
        for (size_t k = 0; items && k < s->n; k++)
            if (!(items[k] = cfxi_eval_sequence_item(ev, &s->parts[k], i)))
                return NULL;
        return items ? cfxi_eval_tuple(ev, items, s->n) : NULL;
    }
    return NULL;
}

cfx_object *cfxi_eval_lazy_sequence(cfx_evaluator *ev, cfx_script_special which, cfx_call_args args)
{
    static const char names[CFX_SPECIALS][12] = {
        [CFX_SPECIAL_RANGE] = "range", [CFX_SPECIAL_ENUMERATE] = "enumerate",
        [CFX_SPECIAL_ZIP] = "zip", [CFX_SPECIAL_REVERSED] = "reversed"};
    (void)args;
    return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                          "%s() of a value that depends on data can only be used directly in a "
                          "`for` statement or a comprehension; write it there%s",
                          names[which],
                          which == CFX_SPECIAL_RANGE ? "; for `i in range(n)` write "
                                                       "0 <= i < n" : "");
}

/* ---- lists that grow while a loop goes over them ------------------------------------------- */

static bool goes_over(cfx_evaluator *ev, const cfxi_sequence *s, const cfx_node *n)
{
    for (size_t i = 0; i < s->n; i++)
        if (goes_over(ev, &s->parts[i], n))
            return true;
    return s->kind == CFXI_SEQUENCE_ITEMS && s->graph && cfxi_eval_node(ev, s->object) == n;
}

static bool changes_length(const char *method)
{
    static const char names[][12] = {"append", "extend", "insert", "pop", "remove", "clear",
                                     "popitem", "__delitem__", "__iadd__", "__imul__"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], method) == 0)
            return true;
    return false;
}

static bool fail_going(cfx_evaluator *ev)
{
    return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                          "the length of a list or dict that a `for` goes over changes in the "
                          "loop, and depends on data; go over a copy (list(x)), or change a copy");
}

bool cfxi_eval_check_going(cfx_evaluator *ev, cfx_object *o, const char *method)
{
    if (!ev->going || !changes_length(method) || !cfxi_eval_node(ev, o) ||
        cfxi_eval_kind(ev, o) == CFX_OBJECT_TENSOR)
        return true;
    for (const cfxi_going *g = ev->going; g; g = g->outer) {
        o = cfxi_eval_before_loop(g->attempt, o);
        const cfx_node *n = cfxi_eval_node(ev, o);
        if (n && goes_over(ev, g->over, n))
            return fail_going(ev);
    }
    return true;
}

bool cfxi_eval_check_known(cfx_evaluator *ev, const cfxi_sequence *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (!cfxi_eval_check_known(ev, &s->parts[i]))
            return false;
    const char *part;
    if (s->graph)
        return !s->owner || !s->owner->part ||
               cfxi_eval_current(ev, s->owner->object) == s->owner->start || fail_going(ev);
    cfx_object *dict = ev->growing.n > 0 ? cfxi_eval_view_owner(ev, s->object, &part) : NULL;
    cfx_object *o = dict ? dict : s->object;
    return cfxi_eval_current(ev, o) == o || fail_going(ev);
}

/* ---- dicts that get keys while a loop goes over them --------------------------------------- */

static bool owns(const cfxi_sequence *s, const cfx_object *o)
{
    for (size_t i = 0; i < s->n; i++)
        if (owns(&s->parts[i], o))
            return true;
    return s->owner && s->owner->object == o;
}

bool cfxi_eval_check_owner(cfx_evaluator *ev, cfx_object *o, const char *method)
{
    for (const cfxi_going *g = ev->going; g && changes_length(method); g = g->outer)
        if (owns(g->over, o))
            return fail_going(ev);
    return true;
}

bool cfxi_eval_has_keyed(const cfxi_sequence *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (cfxi_eval_has_keyed(&s->parts[i]))
            return true;
    return s->owner && s->owner->part;
}

void cfxi_eval_begin_round(cfx_evaluator *ev, const cfxi_sequence *s)
{
    for (size_t i = 0; i < s->n; i++)
        cfxi_eval_begin_round(ev, &s->parts[i]);
    if (s->owner)
        s->owner->start = cfxi_eval_current(ev, s->owner->object);
}

bool cfxi_eval_end_round(cfx_evaluator *ev, const cfxi_sequence *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->kind == CFXI_SEQUENCE_ZIP ? !cfxi_eval_check_known(ev, &s->parts[i])
                                         : !cfxi_eval_end_round(ev, &s->parts[i]))
            return false;
    cfx_object *now = s->owner && s->owner->part ? cfxi_eval_current(ev, s->owner->object) : NULL;
    if (!now || now == s->owner->start)
        return true;
    cfx_object *before = cfxi_eval_record(ev, "builtins.len", &s->object, 1);
    cfx_object *after = before ? cfxi_eval_record(ev, "builtins.len", &now, 1) : NULL;
    cfx_object *wrong = after ? cfxi_eval_compare(ev, CFX_SIGN_NE, after, before) : NULL;
    return cfxi_eval_raise_if(ev, wrong, "RuntimeError",
                              "dictionary changed size during iteration");
}
