/* match_statement.c - match.
 *
 * A pattern matches, does not, or a graph value tells: then the case is a branch of which the cases
 * behind it are the other way. Names are bound as they are met; where a graph value tells, once
 * more inside the branch, because what they stand for may be there only if the pattern matches.
 */
#include "evaluate_impl.h"

static cfxi_eval_truth match_pattern(cfx_evaluator *ev, const cfxi_ast *pattern, cfx_object *o,
                                     cfx_object **pred);

/* ---- two answers as one -------------------------------------------------------------------- */

/* An answer of a graph value as a bool, which merges with True and False. */
static cfx_object *as_bool(cfx_evaluator *ev, cfx_object *o)
{
    return cfxi_eval_kind(ev, o) == CFX_OBJECT_BOOL ? o
                                                    : cfxi_eval_record(ev, "builtins.bool", &o, 1);
}

static cfxi_flow way_answer(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    *value = as_bool(ev, ctx);
    return *value ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

static cfxi_flow way_true(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)ctx;
    *value = ev->true_;
    return CFXI_FLOW_ON;
}

/* Adds an answer to one that is TRUE or a graph value, so that both must hold. */
static cfxi_eval_truth both(cfx_evaluator *ev, cfxi_eval_truth first, cfx_object **pred,
                            cfxi_eval_truth second, cfx_object *other)
{
    if (second != CFXI_TRUTH_GRAPH)
        return second == CFXI_TRUE ? first : second;
    if (first == CFXI_TRUE)
        *pred = other;
    else if (cfxi_eval_branch(ev, *pred, way_answer, cfxi_eval_way_false, other, pred) !=
             CFXI_FLOW_ON)
        return CFXI_TRUTH_FAIL;
    return CFXI_TRUTH_GRAPH;
}

/* ---- values -------------------------------------------------------------------------------- */

static cfxi_eval_truth compare(cfx_evaluator *ev, cfx_script_sign sign, cfx_object *o,
                               cfx_object *v, cfx_object **pred)
{
    *pred = v ? cfxi_eval_compare_sign(ev, sign, o, v) : NULL;
    return *pred ? cfxi_eval_truth_of(ev, pred) : CFXI_TRUTH_FAIL;
}

static cfxi_eval_truth fail_unknown(cfx_evaluator *ev, const cfxi_ast *pattern, const char *what)
{
    cfxi_eval_fail(ev, pattern, CFX_E_UNSUPPORTED,
                   "cannot match this pattern: %s of this value depends on data; compare the value "
                   "with `if`",
                   what);
    return CFXI_TRUTH_FAIL;
}

/* ---- sequences ----------------------------------------------------------------------------- */

static bool is_star(const cfxi_ast *pattern) { return pattern->kind == CFXI_AST_MatchStar; }

static cfxi_eval_truth match_items(cfx_evaluator *ev, cfxi_ast_list patterns, cfx_object **items,
                                   size_t n, cfx_object **pred)
{
    cfxi_eval_truth truth = CFXI_TRUE;
    size_t at = 0;
    for (size_t i = 0; i < patterns.count; i++) {
        const cfxi_ast *p = patterns.items[i];
        cfx_object *other = NULL;
        if (is_star(p)) {
            const size_t rest = n + 1 - patterns.count;
            const char *name = cfxi_syntax_as_MatchStar(p)->name;
            cfx_object *list = name ? cfxi_eval_new_list(ev, items + at, rest) : NULL;
            if (name && (!list || !cfxi_eval_bind_name(ev, name, list)))
                return CFXI_TRUTH_FAIL;
            at += rest;
            continue;
        }
        const cfxi_eval_truth next = match_pattern(ev, p, items[at++], &other);
        truth = both(ev, truth, pred, next, other);
        if (truth != CFXI_TRUE && truth != CFXI_TRUTH_GRAPH)
            return truth;
    }
    return truth;
}

/* The i-th of the patterns and the item of a graph value that it is for. */
static cfx_object *graph_item(cfx_evaluator *ev, cfxi_ast_list patterns, size_t i, cfx_object *o)
{
    size_t star = 0;
    while (star < patterns.count && !is_star(patterns.items[star]))
        star++;
    if (i == star)
        return cfxi_eval_item_rest(ev, o, i, patterns.count - i - 1);
    return cfxi_eval_item_at(ev, o, i < star ? (int64_t)i : -(int64_t)(patterns.count - i));
}

static bool always_matches(const cfxi_ast *pattern)
{
    return is_star(pattern) ||
           (pattern->kind == CFXI_AST_MatchAs && !cfxi_syntax_as_MatchAs(pattern)->pattern);
}

typedef struct graph_sequence {
    const cfxi_MatchSequence *m;
    cfx_object *o;
} graph_sequence;

/* Whether the items match, once there are as many as there should be. */
static cfxi_flow way_items(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    const graph_sequence *s = ctx;
    cfxi_eval_truth truth = CFXI_TRUE;
    cfx_object *pred = NULL;
    for (size_t i = 0; i < s->m->patterns.count; i++) {
        const cfxi_ast *p = s->m->patterns.items[i];
        cfx_object *other = NULL;
        if (always_matches(p))
            continue;
        cfx_object *item = graph_item(ev, s->m->patterns, i, s->o);
        const cfxi_eval_truth next = item ? match_pattern(ev, p, item, &other) : CFXI_TRUTH_FAIL;
        truth = both(ev, truth, &pred, next, other);
        if (truth != CFXI_TRUE && truth != CFXI_TRUTH_GRAPH)
            break;
    }
    *value = truth == CFXI_TRUTH_FAIL    ? NULL
             : truth == CFXI_TRUTH_GRAPH ? as_bool(ev, pred)
                                         : cfxi_eval_bool(ev, truth == CFXI_TRUE);
    return *value ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

static cfxi_eval_truth match_graph_sequence(cfx_evaluator *ev, const cfxi_MatchSequence *m,
                                            cfx_object *o, bool starred, cfx_object **pred)
{
    graph_sequence s = {m, o};
    bool all = true;
    for (size_t i = 0; i < m->patterns.count; i++)
        all = all && always_matches(m->patterns.items[i]);
    cfx_object *sizes[] = {cfxi_eval_record(ev, "builtins.len", &o, 1),
                           cfxi_eval_int(ev, (int64_t)m->patterns.count - starred)};
    const cfxi_eval_truth fits = sizes[0] && sizes[1]
                                ? compare(ev, starred ? CFX_SIGN_GE : CFX_SIGN_EQ, sizes[0],
                                          sizes[1], pred)
                                : CFXI_TRUTH_FAIL;
    if (all || fits != CFXI_TRUTH_GRAPH)
        return fits;
    const cfxi_flow flow = cfxi_eval_branch(ev, *pred, way_items, cfxi_eval_way_false, &s, pred);
    return flow == CFXI_FLOW_ON ? cfxi_eval_truth_of(ev, pred) : CFXI_TRUTH_FAIL;
}

static cfxi_eval_truth match_sequence(cfx_evaluator *ev, const cfxi_MatchSequence *m, cfx_object *o,
                                      cfx_object **pred)
{
    const cfx_object_kind kind = cfxi_eval_kind(ev, o);
    const bool listed = kind == CFX_OBJECT_TUPLE || kind == CFX_OBJECT_NAMED_TUPLE ||
                        kind == CFX_OBJECT_LIST;
    bool starred = false;
    cfx_object **items;
    size_t n;
    if (cfxi_eval_node(ev, o) && kind == CFX_OBJECT_OTHER)
        return fail_unknown(ev, &m->ast, "the type");
    if (!listed)
        return CFXI_FALSE;
    for (size_t i = 0; i < m->patterns.count; i++)
        starred = starred || is_star(m->patterns.items[i]);
    if (cfxi_eval_node(ev, o))
        return match_graph_sequence(ev, m, o, starred, pred);
    if (!cfxi_eval_contents(ev, o, &items, &n))
        return CFXI_TRUTH_FAIL;
    if (n + starred < m->patterns.count || (n > m->patterns.count && !starred))
        return CFXI_FALSE;
    return match_items(ev, m->patterns, items, n, pred);
}

/* ---- mappings ------------------------------------------------------------------------------ */

/* The dict without the keys that were matched. */
static bool bind_rest(cfx_evaluator *ev, const cfxi_MatchMapping *m, cfx_object *o,
                      const cfxi_objects *keys)
{
    cfx_object **items;
    size_t n;
    if (!m->rest)
        return true;
    if (!cfxi_eval_contents(ev, o, &items, &n))
        return false;
    cfx_object *rest =
        cfxi_eval_build(ev, CFX_BUILD_DICT, items, n);
    for (size_t i = 0; rest && i < keys->n; i++) {
        if (!cfxi_eval_set_item(ev, rest, keys->items[i], NULL))
            return false;
    }
    return rest && cfxi_eval_bind_name(ev, m->rest, rest);
}

static cfxi_eval_truth match_mapping(cfx_evaluator *ev, const cfxi_MatchMapping *m, cfx_object *o,
                                     cfx_object **pred)
{
    cfxi_objects keys = {0};
    cfxi_eval_truth truth = CFXI_TRUE;
    const cfx_object_kind kind = cfxi_eval_kind(ev, o);
    if (cfxi_eval_node(ev, o) && (kind == CFX_OBJECT_DICT || kind == CFX_OBJECT_OTHER))
        return fail_unknown(ev, &m->ast, "the content");
    if (kind != CFX_OBJECT_DICT)
        return CFXI_FALSE;
    for (size_t i = 0; i < m->keys.count; i++) {
        cfx_object *other = NULL;
        cfx_object *key = cfxi_eval(ev, m->keys.items[i]);
        if (!cfxi_eval_push(ev, &keys, key))
            return CFXI_TRUTH_FAIL;
        const cfxi_eval_truth there = compare(ev, CFX_SIGN_IN, key, o, &other);
        if (there != CFXI_TRUE)
            return there == CFXI_TRUTH_GRAPH ? fail_unknown(ev, &m->ast, "a key") : there;
        cfx_object *v = cfxi_eval_item(ev, o, key);
        const cfxi_eval_truth next = v ? match_pattern(ev, m->patterns.items[i], v, &other)
                                  : CFXI_TRUTH_FAIL;
        truth = both(ev, truth, pred, next, other);
        if (truth != CFXI_TRUE && truth != CFXI_TRUTH_GRAPH)
            return truth;
    }
    return bind_rest(ev, m, o, &keys) ? truth : CFXI_TRUTH_FAIL;
}

/* ---- classes ------------------------------------------------------------------------------- */

/* If the type of a graph value is unknown, the program tests it when it runs. */
static cfxi_eval_truth ask_later(cfx_evaluator *ev, const cfxi_MatchClass *m, cfx_object *o,
                                 cfx_object *class, cfx_object **pred)
{
    cfx_object *args[] = {o, class};
    if (m->patterns.count + m->kwd_patterns.count > 0)
        return fail_unknown(ev, &m->ast, "the type");
    *pred = cfxi_eval_record(ev, "builtins.isinstance", args, 2);
    return *pred ? CFXI_TRUTH_GRAPH : CFXI_TRUTH_FAIL;
}

static cfxi_eval_truth is_of_class(cfx_evaluator *ev, const cfxi_MatchClass *m, cfx_object *o,
                                   cfx_object *class, cfx_object **pred)
{
    const cfx_world *w = ev->w;
    if (cfxi_eval_node(ev, o)) {
        const cfx_object_kind kind = cfxi_eval_kind(ev, o);
        if (kind == CFX_OBJECT_OTHER)
            return ask_later(ev, m, o, class, pred);
        const int is = w->kind_is(w->ctx, kind, class, ev->err);
        return is < 0 ? CFXI_TRUTH_FAIL : is ? CFXI_TRUE : CFXI_FALSE;
    }
    cfx_object *args[] = {o, class};
    cfx_object *isinstance = cfxi_eval_builtin(ev, "isinstance");
    if (!isinstance) {
        cfxi_eval_fail(ev, &m->ast, CFX_E_UNSUPPORTED,
                       "class patterns need isinstance, which is not available here");
        return CFXI_TRUTH_FAIL;
    }
    cfx_object *answer = cfxi_eval_world_call(ev, isinstance, cfxi_eval_args(args, 2));
    return answer ? cfxi_eval_truth_of(ev, &answer) : CFXI_TRUTH_FAIL;
}

/* int(x), str(x) and the like match the value itself. */
static bool matches_itself(cfx_evaluator *ev, cfx_object *class)
{
    static const char names[][10] = {"bool", "bytearray", "bytes", "dict", "float", "frozenset",
                                     "int", "list", "set", "str", "tuple"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (cfxi_eval_builtin(ev, names[i]) == class)
            return true;
    }
    return false;
}

/* The attribute that the i-th pattern is for: "" is the value itself; NULL: failed. */
static const char *positional_name(cfx_evaluator *ev, const cfxi_MatchClass *m, cfx_object *class,
                                   size_t i)
{
    bool missing;
    cfx_object **names = NULL;
    size_t n = 0;
    size_t size = 0;
    if (matches_itself(ev, class) && m->patterns.count == 1)
        return "";
    if (ev->err->status == CFX_E_NOMEM)
        return NULL;
    cfx_object *args = cfxi_eval_try_get(ev, class, "__match_args__", &missing);
    if (!args && !missing)
        return NULL;
    if (args && !cfxi_eval_items(ev, args, &names, &n))
        return NULL;
    const char *text = i < n ? ev->w->text(ev->w->ctx, names[i], &size) : NULL;
    char *copy = text ? cfxi_eval_ev_alloc(ev, size + 1) : NULL;
    if (text)
        return copy ? memcpy(copy, text, size) : NULL;
    return cfxi_eval_fail_as(ev, &m->ast, CFX_E_TYPE, "TypeError",
                             "the class accepts %zu positional "
                             "sub-patterns (%zu given)",
                             n, m->patterns.count);
}

static cfxi_eval_truth match_attribute(cfx_evaluator *ev, const cfxi_ast *pattern, cfx_object *o,
                                       const char *name, cfx_object **pred)
{
    bool missing = false;
    cfx_object *v = o;
    if (*name)
        v = cfxi_eval_try_get(ev, o, name, &missing);
    if (!v)
        return missing ? CFXI_FALSE : CFXI_TRUTH_FAIL;
    return match_pattern(ev, pattern, v, pred);
}

static cfxi_eval_truth match_class(cfx_evaluator *ev, const cfxi_MatchClass *m, cfx_object *o,
                                   cfx_object **pred)
{
    cfx_object *class = cfxi_eval(ev, m->cls);
    const size_t n = m->patterns.count;
    cfxi_eval_truth truth = class ? is_of_class(ev, m, o, class, pred) : CFXI_TRUTH_FAIL;
    for (size_t i = 0; i < n + m->kwd_patterns.count; i++) {
        cfx_object *other = NULL;
        if (truth != CFXI_TRUE && truth != CFXI_TRUTH_GRAPH)
            return truth;
        const char *name = i < n ? positional_name(ev, m, class, i) : m->kwd_attrs.items[i - n];
        const cfxi_ast *p = i < n ? m->patterns.items[i] : m->kwd_patterns.items[i - n];
        const cfxi_eval_truth next =
            name ? match_attribute(ev, p, o, name, &other) : CFXI_TRUTH_FAIL;
        truth = both(ev, truth, pred, next, other);
    }
    return truth;
}

/* ---- all ----------------------------------------------------------------------------------- */

static cfxi_eval_truth match_or(cfx_evaluator *ev, const cfxi_MatchOr *m, cfx_object *o,
                                cfx_object **pred)
{
    cfxi_eval_truth truth = CFXI_FALSE;
    for (size_t i = 0; i < m->patterns.count; i++) {
        cfx_object *other = NULL;
        const cfxi_eval_truth next = match_pattern(ev, m->patterns.items[i], o, &other);
        if (next == CFXI_TRUTH_FAIL || next == CFXI_TRUE)
            return next;
        if (next == CFXI_FALSE)
            continue;
        if (truth == CFXI_FALSE)
            *pred = other;
        else if (cfxi_eval_branch(ev, *pred, way_true, way_answer, other, pred) != CFXI_FLOW_ON)
            return CFXI_TRUTH_FAIL;
        truth = CFXI_TRUTH_GRAPH;
    }
    return truth;
}

static cfxi_eval_truth match_as(cfx_evaluator *ev, const cfxi_MatchAs *m, cfx_object *o,
                                cfx_object **pred)
{
    const cfxi_eval_truth truth = m->pattern ? match_pattern(ev, m->pattern, o, pred) : CFXI_TRUE;
    if (!m->name || truth == CFXI_FALSE || truth == CFXI_TRUTH_FAIL)
        return truth;
    return cfxi_eval_bind_name(ev, m->name, o) ? truth : CFXI_TRUTH_FAIL;
}

static cfxi_eval_truth match_pattern(cfx_evaluator *ev, const cfxi_ast *pattern, cfx_object *o,
                                     cfx_object **pred)
{
    cfxi_eval_at(ev, pattern);
    switch ((unsigned)pattern->kind) {
    case CFXI_AST_MatchValue:
        return compare(ev, CFX_SIGN_EQ, o, cfxi_eval(ev, cfxi_syntax_as_MatchValue(pattern)->value),
                       pred);
    case CFXI_AST_MatchSingleton:
        return compare(ev, CFX_SIGN_IS, o,
                       cfxi_eval_constant_of(ev, &cfxi_syntax_as_MatchSingleton(pattern)->value),
                       pred);
    case CFXI_AST_MatchSequence:
        return match_sequence(ev, cfxi_syntax_as_MatchSequence(pattern), cfxi_eval_current(ev, o),
                              pred);
    case CFXI_AST_MatchMapping:
        return match_mapping(ev, cfxi_syntax_as_MatchMapping(pattern), cfxi_eval_current(ev, o),
                             pred);
    case CFXI_AST_MatchClass:
        return match_class(ev, cfxi_syntax_as_MatchClass(pattern), cfxi_eval_current(ev, o), pred);
    case CFXI_AST_MatchOr:
        return match_or(ev, cfxi_syntax_as_MatchOr(pattern), o, pred);
    case CFXI_AST_MatchAs:
        return match_as(ev, cfxi_syntax_as_MatchAs(pattern), o, pred);
    }
    cfxi_eval_fail(ev, pattern, CFX_E_UNSUPPORTED, "%s cannot be matched",
                   cfxi_syntax_ast_name(pattern->kind));
    return CFXI_TRUTH_FAIL;
}

/* ---- names, inside a branch ---------------------------------------------------------------- */

static bool bind_names(cfx_evaluator *ev, const cfxi_ast *pattern, cfx_object *o);

static bool bind_star(cfx_evaluator *ev, const cfxi_ast *pattern, cfx_object *list)
{
    const char *name = cfxi_syntax_as_MatchStar(pattern)->name;
    return !name || (list && cfxi_eval_bind_name(ev, name, list));
}

static bool bind_sequence(cfx_evaluator *ev, cfxi_ast_list patterns, cfx_object *o)
{
    cfx_object **items = NULL;
    size_t n = 0;
    const bool graph = cfxi_eval_node(ev, o) != NULL;
    if (!graph && !cfxi_eval_contents(ev, o, &items, &n))
        return false;
    for (size_t i = 0, at = 0; i < patterns.count; i++) {
        const cfxi_ast *p = patterns.items[i];
        const size_t rest = is_star(p) ? n + 1 - patterns.count : 1;
        cfx_object *item = graph        ? graph_item(ev, patterns, i, o)
                           : is_star(p) ? cfxi_eval_new_list(ev, items + at, rest)
                                        : items[at];
        at += rest;
        if (!item || !(is_star(p) ? bind_star(ev, p, item) : bind_names(ev, p, item)))
            return false;
    }
    return true;
}

static bool bind_mapping(cfx_evaluator *ev, const cfxi_MatchMapping *m, cfx_object *o)
{
    cfxi_objects keys = {0};
    for (size_t i = 0; i < m->keys.count; i++) {
        cfx_object *key = cfxi_eval(ev, m->keys.items[i]);
        cfx_object *v = cfxi_eval_push(ev, &keys, key) ? cfxi_eval_item(ev, o, key) : NULL;
        if (!v || !bind_names(ev, m->patterns.items[i], v))
            return false;
    }
    return bind_rest(ev, m, o, &keys);
}

static bool bind_class(cfx_evaluator *ev, const cfxi_MatchClass *m, cfx_object *o)
{
    cfx_object *class = cfxi_eval(ev, m->cls);
    const size_t n = m->patterns.count;
    for (size_t i = 0; class && i < n + m->kwd_patterns.count; i++) {
        const char *name = i < n ? positional_name(ev, m, class, i) : m->kwd_attrs.items[i - n];
        cfx_object *v = !name ? NULL : *name ? cfxi_eval_get(ev, o, name) : o;
        if (!v || !bind_names(ev, i < n ? m->patterns.items[i] : m->kwd_patterns.items[i - n], v))
            return false;
    }
    return class != NULL;
}

static bool has_names(const cfxi_ast *pattern)
{
    size_t n;
    const cfxi_ast_field *fields = cfxi_syntax_ast_fields(pattern->kind, &n);
    for (size_t i = 0; i < n; i++) {
        const void *at = cfxi_syntax_ast_get(pattern, &fields[i]);
        const cfxi_ast_list list = fields[i].kind == CFXI_FIELD_LIST
                                       ? *(const cfxi_ast_list *)at : (cfxi_ast_list){0};
        if (fields[i].kind == CFXI_FIELD_OPTNAME && *(const char *const *)at)
            return true;
        if (fields[i].kind == CFXI_FIELD_OPT && *(cfxi_ast *const *)at &&
            has_names(*(cfxi_ast *const *)at))
            return true;
        for (size_t k = 0; k < list.count; k++) {
            if (has_names(list.items[k]))
                return true;
        }
    }
    return false;
}

/* Binds the names of a pattern that matches. */
static bool bind_names(cfx_evaluator *ev, const cfxi_ast *pattern, cfx_object *o)
{
    cfxi_eval_at(ev, pattern);
    switch ((unsigned)pattern->kind) {
    case CFXI_AST_MatchSequence:
        return bind_sequence(ev, cfxi_syntax_as_MatchSequence(pattern)->patterns,
                             cfxi_eval_current(ev, o));
    case CFXI_AST_MatchMapping:
        return bind_mapping(ev, cfxi_syntax_as_MatchMapping(pattern), o);
    case CFXI_AST_MatchClass:
        return bind_class(ev, cfxi_syntax_as_MatchClass(pattern), o);
    case CFXI_AST_MatchOr:
        return !has_names(pattern) ||
               cfxi_eval_fail(
                   ev, pattern, CFX_E_UNSUPPORTED,
                   "which of these patterns matches depends on data, and so do the names it binds; "
                   "write a separate case for each pattern");
    case CFXI_AST_MatchAs: {
        const cfxi_MatchAs *m = cfxi_syntax_as_MatchAs(pattern);
        return (!m->pattern || bind_names(ev, m->pattern, o)) &&
               (!m->name || cfxi_eval_bind_name(ev, m->name, o));
    }
    }
    return true;
}

/* ---- the statement ------------------------------------------------------------------------- */

typedef struct cases {
    const cfxi_Match *m;
    size_t i;
    cfx_object *subject;
} cases;

static cfxi_flow run_cases(cfx_evaluator *ev, cases c);

static const cfxi_match_case *case_of(const cases *c)
{
    return cfxi_syntax_as_match_case(c->m->cases.items[c->i]);
}

static cfxi_flow way_case(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    const cases *c = ctx;
    (void)value;
    if (!bind_names(ev, case_of(c)->pattern, c->subject))
        return cfxi_eval_failed_flow(ev);
    return cfxi_eval_exec_block(ev, case_of(c)->body);
}

static cfxi_flow way_next(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    cases c = *(const cases *)ctx;
    (void)value;
    c.i++;
    return run_cases(ev, c);
}

static cfxi_flow way_guard(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    const cases *c = ctx;
    if (!bind_names(ev, case_of(c)->pattern, c->subject))
        return cfxi_eval_failed_flow(ev);
    cfx_object *guard = cfxi_eval(ev, case_of(c)->guard);
    const cfxi_eval_truth truth = guard ? cfxi_eval_truth_of(ev, &guard) : CFXI_TRUTH_FAIL;
    *value = truth == CFXI_TRUTH_FAIL    ? NULL
             : truth == CFXI_TRUTH_GRAPH ? as_bool(ev, guard)
                                         : cfxi_eval_bool(ev, truth == CFXI_TRUE);
    return *value ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

/* Whether a case is the one, its guard included. */
static cfxi_eval_truth try_case(cfx_evaluator *ev, cases *c, cfx_object **pred)
{
    const cfxi_match_case *k = case_of(c);
    const cfxi_eval_truth truth = match_pattern(ev, k->pattern, c->subject, pred);
    if (!k->guard || truth == CFXI_FALSE || truth == CFXI_TRUTH_FAIL)
        return truth;
    if (truth == CFXI_TRUE) {
        *pred = cfxi_eval(ev, k->guard);
        return *pred ? cfxi_eval_truth_of(ev, pred) : CFXI_TRUTH_FAIL;
    }
    const cfxi_flow flow = cfxi_eval_branch(ev, *pred, way_guard, cfxi_eval_way_false, c, pred);
    return flow == CFXI_FLOW_ON ? cfxi_eval_truth_of(ev, pred) : CFXI_TRUTH_FAIL;
}

static cfxi_flow run_cases(cfx_evaluator *ev, cases c)
{
    for (; c.i < c.m->cases.count; c.i++) {
        cfx_object *pred = NULL;
        switch (try_case(ev, &c, &pred)) {
        case CFXI_TRUTH_FAIL:
            return cfxi_eval_failed_flow(ev);
        case CFXI_TRUE:
            return cfxi_eval_exec_block(ev, case_of(&c)->body);
        case CFXI_TRUTH_GRAPH:
            return cfxi_eval_branch(ev, pred, way_case, way_next, &c, NULL);
        case CFXI_FALSE:
            break;
        }
    }
    return CFXI_FLOW_ON;
}

cfxi_flow cfxi_eval_match(cfx_evaluator *ev, const cfxi_Match *m)
{
    cases c = {.m = m, .subject = cfxi_eval_raw(ev, m->subject)};
    return c.subject ? run_cases(ev, c) : cfxi_eval_failed_flow(ev);
}
