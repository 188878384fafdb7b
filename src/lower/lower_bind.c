/* lower_bind.c - the arguments of a call as those of a row. */
#include "ir/walk_impl.h"
#include "lower_impl.h"

#include <stdio.h>

/* ---- a call in the making ------------------------------------------------------------------ */

void cfxi_lower_lowered_begin(cfxi_lowered *c, cfx_operator op)
{
    cfx_schema_param param;
    *c = (cfxi_lowered){.op = op, .packed = cfx_value_invalid(), .out = cfx_value_invalid(),
                         .max_norm = cfx_value_invalid(), .norm_type = cfx_value_invalid()};
    for (; c->n < CFXI_MOST_PARAMS && cfx_operator_param(op, c->n, &param); c->n++) {
        c->args[c->n] = cfx_value_invalid();
        c->defaults[c->n] = param.value;
    }
}

/* Passes `v` for the parameter of this name. */
static void set_param(cfxi_lowered *c, const char *param, cfx_value v)
{
    const size_t i = cfx_operator_find_param(c->op, param);
    if (i < c->n)
        c->args[i] = v;
}

void cfxi_lower_unbind(cfxi_lower *l, cfxi_lowered *c)
{
    cfx_value_discard(l->g, c->packed);
    c->packed = cfx_value_invalid();
}

static bool misfit(cfxi_lowered *c, const char *what, cfx_schema_text name)
{
    snprintf(c->why, sizeof c->why, "%s '%.*s'", what, (int)name.size, name.text);
    return false;
}

/* ---- arguments by position ----------------------------------------------------------------- */

typedef struct binding {
    cfxi_spelled_param params[CFXI_MOST_PARAMS];
    cfx_value values[CFXI_MOST_PARAMS];
    size_t n;
} binding;

static bool takes_loose(cfx_operator op, const binding *b, size_t i)
{
    cfx_schema_param param;
    const bool last = i + 1 == b->n || b->params[i + 1].keyword_only;
    if (!last || !cfx_operator_param(op, b->params[i].param, &param))
        return false;
    return param.variadic || strncmp(param.type, "int[]", 5) == 0 ||
           strncmp(param.type, "Tensor[]", 8) == 0;
}

/* Whether a call names its row, as lowering writes it: then "*Any values" is one list already. */
static bool is_lowered(const cfx_node *n)
{
    const char *target = n->op == CFX_OP_CALL_FUNCTION ? cfx_node_target(n, NULL, NULL) : NULL;
    return target && strncmp(target, "cfx.ops.", 8) == 0;
}

/* x.view(2, 3): what is left over is the last list. One value alone may be the list. */
static bool pack(cfxi_lower *l, const cfx_node *n, binding *b, size_t i, cfxi_lowered *c)
{
    cfx_schema_param param;
    const size_t rest = cfx_node_num_args(n) - i;
    const cfx_value *first = &n->args->items[i];
    cfx_operator_param(c->op, b->params[i].param, &param);
    if (rest == 1 && (!param.variadic || (first->kind == CFX_KIND_LIST && is_lowered(n)))) {
        b->values[i] = *first;
        return true;
    }
    c->packed = cfx_value_list(l->g, first, rest, l->err);
    b->values[i] = c->packed;
    return c->packed.kind != CFX_KIND_INVALID;
}

static bool bind_positions(cfxi_lower *l, const cfx_node *n, binding *b, cfxi_lowered *c)
{
    const size_t args = cfx_node_num_args(n);
    for (size_t i = 0; i < args; i++) {
        if (i == b->n || b->params[i].keyword_only) {
            snprintf(c->why, sizeof c->why, "too many arguments: expected at most %zu, got %zu",
                     i, args);
            return false;
        }
        if (takes_loose(c->op, b, i))
            return pack(l, n, b, i, c);
        b->values[i] = n->args->items[i];
    }
    return true;
}

/* ---- arguments by keyword ------------------------------------------------------------------ */

/* Names that PyTorch takes as well, after NumPy's. */
static const char *const aliases[][2] = {
    {"input", "self"}, {"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "self"}, {"x2", "other"},
    {"self", "input"}, {"x1", "self"},
};

static bool is_named(const cfxi_spelled_param *param, const cfx_str *key)
{
    if (cfxi_ops_text_is(param->name, key->data, key->size))
        return true;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(key->data, aliases[i][0]) == 0 &&
            cfxi_ops_text_is(param->name, aliases[i][1], strlen(aliases[i][1])))
            return true;
    return false;
}

static bool is_off(cfx_value v)
{
    return v.kind == CFX_KIND_INVALID || v.kind == CFX_KIND_NONE ||
           (v.kind == CFX_KIND_BOOL && !v.as.b);
}

/* Arguments that change nothing of what is computed here. */
static bool is_idle(cfx_schema_text name)
{
    static const char *const idle[] = {"_stacklevel", "requires_grad", "device", "pin_memory",
                                       "non_blocking", "norm_type", "scale_grad_by_freq", "sparse",
                                       "layout", "check_reduction"};
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        if (cfxi_ops_text_is(name, idle[i], strlen(idle[i])))
            return true;
    return false;
}

/* Rows that an argument which is True turns into others. */
static const struct {
    const char *name;
    cfx_operator from;
    cfx_operator to;
} turns[] = {
    {"return_indices", CFX_OPID_max_pool1d, CFX_OPID_max_pool1d_with_indices},
    {"return_indices", CFX_OPID_max_pool2d, CFX_OPID_max_pool2d_with_indices},
    {"return_indices", CFX_OPID_max_pool3d, CFX_OPID_max_pool3d_with_indices},
    {"as_tuple", CFX_OPID_nonzero, CFX_OPID_where_nonzero},
};

static bool turn(cfxi_lowered *c, cfx_schema_text name)
{
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++)
        if (c->op == turns[i].from &&
            cfxi_ops_text_is(name, turns[i].name, strlen(turns[i].name))) {
            c->op = turns[i].to;
            return true;
        }
    return false;
}

/* tensordot's dims, 2 or ([0], [1]), as two lists. */
static bool spread_dims(cfxi_lower *l, cfxi_lowered *c, cfx_value v)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    if (v.kind == CFX_KIND_INT && v.as.i >= 0 && v.as.i <= 8) {
        cfx_value last[8];
        cfx_value first[8];
        for (int64_t i = 0; i < v.as.i; i++) {
            last[i] = cfx_value_int(i - v.as.i);
            first[i] = cfx_value_int(i);
        }
        set_param(c, "dims_self", cfx_value_list(l->g, last, (size_t)v.as.i, l->err));
        set_param(c, "dims_other", cfx_value_list(l->g, first, (size_t)v.as.i, l->err));
        return l->err->status == CFX_OK;
    }
    if ((v.kind != CFX_KIND_LIST && v.kind != CFX_KIND_TUPLE) || n != 2)
        return false;
    set_param(c, "dims_self", items[0]);
    set_param(c, "dims_other", items[1]);
    return true;
}

/* An argument that is no parameter of the row. */
static bool bind_extra(cfxi_lower *l, cfxi_lowered *c, cfx_schema_text name, cfx_value v)
{
    if (c->op == CFX_OPID_tensordot && cfxi_ops_text_is(name, "dims", 4) &&
        spread_dims(l, c, v.kind == CFX_KIND_INVALID ? cfx_value_int(2) : v))
        return true;
    c->first_only = c->first_only ||  /* of torch.nn, not aten's */
                    (c->op == CFX_OPID_embedding_bag && cfxi_ops_text_is(name, "max_norm", 8));
    if (is_off(v))
        return true;
    if (c->op == CFX_OPID_embedding || c->op == CFX_OPID_embedding_bag) {
        cfx_value *own = cfxi_ops_text_is(name, "max_norm", 8)    ? &c->max_norm
                         : cfxi_ops_text_is(name, "norm_type", 9) ? &c->norm_type : NULL;
        if (own) {
            *own = v;
            return true;
        }
    }
    if (is_idle(name))
        return true;
    if (cfxi_ops_text_is(name, "out", 3)) {
        c->out = v;
        return true;
    }
    if (v.kind == CFX_KIND_BOOL && cfxi_ops_text_is(name, "inplace", 7)) {
        c->in_place = true;
        return true;
    }
    if (v.kind == CFX_KIND_BOOL && turn(c, name))
        return true;
    return misfit(c, "it has no parameter", name);
}

static bool bind_keywords(cfxi_lower *l, const cfx_node *n, binding *b, cfxi_lowered *c)
{
    for (uint32_t i = 0; n->kwargs && i + 1 < n->kwargs->size; i += 2) {
        const cfx_str *key = n->kwargs->items[i].as.str;
        const cfx_value v = n->kwargs->items[i + 1];
        const cfx_schema_text name = {key->data, key->size};
        size_t at = 0;
        while (at < b->n && !cfxi_ops_text_is(b->params[at].name, key->data, key->size))
            at++;
        for (size_t k = 0; at == b->n && k < b->n; k++)
            if (is_named(&b->params[k], key))
                at = k;
        if (at == b->n && !bind_extra(l, c, name, v))
            return false;
        if (at < b->n && b->values[at].kind != CFX_KIND_INVALID)
            return misfit(c, "argument given twice:", name);
        if (at < b->n)
            b->values[at] = v;
    }
    return true;
}

/* ---- values -------------------------------------------------------------------------------- */

typedef struct word {
    const char *param;
    const char *text;
    int64_t number;
} word;

/* Words for what the rows number. */
static const word words[] = {
    {"reduction", "none", 0}, {"reduction", "mean", 1}, {"reduction", "sum", 2},
    {"reduction", "batchmean", 2},
    {"mode", "sum", 0},       {"mode", "mean", 1},      {"mode", "max", 2},
    {"compute_mode", "use_mm_for_euclid_dist_if_necessary", 0},
    {"compute_mode", "use_mm_for_euclid_dist", 1},
    {"compute_mode", "donot_use_mm_for_euclid_dist", 2},
};

static const word types[] = {
    {"", "builtins.float", CFX_DTYPE_FLOAT64},     {"", "float", CFX_DTYPE_FLOAT64},
    {"", "builtins.int", CFX_DTYPE_INT64},         {"", "int", CFX_DTYPE_INT64},
    {"", "builtins.bool", CFX_DTYPE_BOOL},         {"", "bool", CFX_DTYPE_BOOL},
    {"", "builtins.complex", CFX_DTYPE_COMPLEX128}, {"", "complex", CFX_DTYPE_COMPLEX128},
};

static bool is_word_for(const cfxi_lowered *c, const cfx_schema_param *param, const word *w)
{
    return cfxi_ops_text_is(param->name, w->param, strlen(w->param)) &&
           (strcmp(w->text, "batchmean") != 0 || c->op == CFX_OPID_kl_div);
}

enum { MOST_CLASSES = 16, DEEPEST_CLASSES = 32 };

/* The classes that isinstance asks for, by their names: those of Python's and PyTorch's. Others
 * stay what they are. */
static cfx_value class_names(const cfxi_lower *l, cfx_value v)
{
    cfx_value named[MOST_CLASSES];
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    if (v.kind == CFX_KIND_HOST) {
        const char *name = cfx_value_host_name(l->g, v, NULL);
        const bool known = name && (strncmp(name, "builtins.", 9) == 0 ||
                                    strncmp(name, "torch.", 6) == 0 || !strchr(name, '.'));
        return known ? cfx_value_str(l->g, name, strlen(name), l->err) : v;
    }
    if (v.kind != CFX_KIND_TUPLE || n > MOST_CLASSES || v.pad > DEEPEST_CLASSES)
        return v;
    for (size_t i = 0; i < n; i++) {
        named[i] = class_names(l, items[i]);
        if (named[i].kind != CFX_KIND_STR && named[i].kind != CFX_KIND_TUPLE)
            return v;
    }
    return cfx_value_tuple(l->g, named, n, l->err);
}

static bool has_host(cfx_value v)
{
    return cfxi_ir_value_has(v, CFXI_KIND_BIT(CFX_KIND_HOST));
}

enum { MOST_NUMBERS = 16 };

/* Numbers of classes that only the host knows (numpy.float64), also in a list, as plain ones. */
static cfx_value plain_numbers(const cfxi_lower *l, cfx_value v)
{
    cfx_value plain[MOST_NUMBERS];
    size_t n;
    const cfx_host *host = l->g->host;
    const cfx_value *items = cfx_value_items(v, &n);
    if (v.kind == CFX_KIND_HOST && host && host->number && cfx_value_object(v)) {
        cfx_value number = v;
        return host->number(host->ctx, cfx_value_object(v), &number, l->err) == CFX_OK ? number : v;
    }
    if ((v.kind != CFX_KIND_LIST && v.kind != CFX_KIND_TUPLE) || n > MOST_NUMBERS || !has_host(v))
        return v;
    for (size_t i = 0; i < n; i++)
        plain[i] = items[i].kind == CFX_KIND_HOST ? plain_numbers(l, items[i]) : items[i];
    return v.kind == CFX_KIND_LIST ? cfx_value_list(l->g, plain, n, l->err)
                                   : cfx_value_tuple(l->g, plain, n, l->err);
}

/* What the row wants in the place of what the caller may write. */
static cfx_value translate(const cfxi_lower *l, cfxi_lowered *c, const cfx_schema_param *param,
                           cfx_value v)
{
    if (c->op == CFX_OPID_isinstance && cfxi_ops_text_is(param->name, "cls", 3))
        return class_names(l, v);
    if (v.kind == CFX_KIND_BOOL && cfxi_ops_text_is(param->name, "correction", 10))
        return cfx_value_int(v.as.b);  /* unbiased */
    c->batch_mean = c->batch_mean || (v.kind == CFX_KIND_STR && c->op == CFX_OPID_kl_div &&
                                      strcmp(cfx_value_text(v, NULL), "batchmean") == 0);
    if (v.kind == CFX_KIND_STR && strncmp(param->type, "int", 3) == 0 && !strchr(param->type, '['))
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (is_word_for(c, param, &words[i]) &&
                strcmp(cfx_value_text(v, NULL), words[i].text) == 0)
                return cfx_value_int(words[i].number);
    if (v.kind == CFX_KIND_STR && cfxi_ops_text_is(param->name, "p", 1) &&
        strcmp(cfx_value_text(v, NULL), "fro") == 0)
        return cfx_value_int(2);
    if (v.kind == CFX_KIND_HOST && strncmp(param->type, "ScalarType", 10) == 0) {
        const char *name = cfx_value_host_name(l->g, v, NULL);
        for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
            if (strcmp(name, types[i].text) == 0)
                return cfx_value_dtype((cfx_dtype)types[i].number);
    }
    return v;
}

static void add_why(cfxi_lowered *c, const char *before, const char *what)
{
    const size_t used = strlen(c->why);
    snprintf(c->why + used, sizeof c->why - used, "%s%s", before, what);
}

/* Of a word, which others there are; of anything else, the type. */
static void tell_choices(cfxi_lowered *c, const cfx_schema_param *param, cfx_value v)
{
    bool any = false;
    for (size_t i = 0; v.kind == CFX_KIND_STR && i < sizeof words / sizeof *words; i++) {
        if (!is_word_for(c, param, &words[i]))
            continue;
        add_why(c, any ? ", " : ", which must be one of ", words[i].text);
        any = true;
    }
    if (c->op == CFX_OPID_remainder && v.kind == CFX_KIND_STR)
        add_why(c, ", which must be a tensor or number; ",
                "to format a string, use str.format or an f-string instead of '%'");
    else if (!any)
        add_why(c, ", which must be ", param->type);
}

/* [x] + [y], (1, 2) == (1, 2), "a" * 3, d | e: rows that do with containers what Python does. */
static bool is_sign_of_python(const cfx_node *n, cfx_operator op)
{
    static const cfx_operator signs[] = {CFX_OPID_add, CFX_OPID_add_, CFX_OPID_mul, CFX_OPID_mul_,
                                         CFX_OPID_eq, CFX_OPID_ne, CFX_OPID_lt, CFX_OPID_le,
                                         CFX_OPID_gt, CFX_OPID_ge, CFX_OPID_bitwise_or,
                                         CFX_OPID_bitwise_or_};
    const char *spelling = cfxi_ops_node_spelling(n);
    if (!spelling || (*spelling && strncmp(spelling, "operator.", 9) != 0))
        return false;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (op == signs[i])
            return true;
    return false;
}

/* Also a type or device, which is compared. */
static bool is_container(const cfxi_lower *l, cfx_value v)
{
    const cfxi_what what = cfxi_lower_what(l, v);
    return v.kind == CFX_KIND_LIST || v.kind == CFX_KIND_TUPLE || v.kind == CFX_KIND_STR ||
           v.kind == CFX_KIND_DICT || v.kind == CFX_KIND_NONE || what == CFXI_WHAT_TENSORS ||
           what == CFXI_WHAT_NUMBERS || what == CFXI_WHAT_NONE || what == CFXI_WHAT_DTYPE ||
           what == CFXI_WHAT_DEVICE;
}

/* Checks one argument of the row; None for what cannot be None is not given. */
static bool settle(const cfxi_lower *l, cfxi_lowered *c, size_t i, bool strictly)
{
    cfx_schema_param param;
    cfx_operator_param(c->op, i, &param);
    const bool optional = param.type[strlen(param.type) - 1] == '?' ||
                          strncmp(param.type, "Any", 3) == 0 || param.variadic;
    if (c->args[i].kind == CFX_KIND_NONE && !optional && c->defaults[i].text)
        c->args[i] = cfx_value_invalid();
    if (c->args[i].kind == CFX_KIND_INVALID)
        return c->defaults[i].text || optional || misfit(c, "missing argument", param.name);
    c->args[i] = translate(l, c, &param, c->args[i]);
    if (c->op == CFX_OPID_isinstance && has_host(c->args[i]))
        return misfit(c, "isinstance needs a class of Python or PyTorch for", param.name);
    if (param.variadic || cfxi_lower_fits(l, param.type, c->args[i], strictly) ||
        (c->of_python && strcmp(param.type, "Tensor") == 0 && is_container(l, c->args[i])))
        return true;
    misfit(c, "invalid argument for", param.name);
    tell_choices(c, &param, c->args[i]);
    return false;
}

/* ---- one row ------------------------------------------------------------------------------- */

/* Hands what is bound by the spelling's parameters to those of the row. */
static bool hand_over(cfxi_lower *l, const binding *b, cfxi_lowered *c, bool strictly)
{
    for (size_t i = 0; i < b->n; i++) {
        const cfxi_spelled_param *p = &b->params[i];
        if (p->param == SIZE_MAX) {
            if (!bind_extra(l, c, p->name, b->values[i]))
                return false;
            continue;
        }
        c->args[p->param] = plain_numbers(l, b->values[i]);
        if (p->value.text)
            c->defaults[p->param] = p->value;
    }
    for (size_t i = 0; i < c->n; i++)
        if (!settle(l, c, i, strictly))
            return false;
    return true;
}

bool cfxi_lower_calls_row(const cfx_node *n)
{
    const char *spelling = cfxi_ops_node_spelling(n);
    return spelling && !*spelling;
}

bool cfxi_lower_bind(cfxi_lower *l, const cfx_node *n, cfx_operator op, const char *list,
                     bool strictly, cfxi_lowered *c)
{
    binding b = {.n = 0};
    cfxi_lower_lowered_begin(c, op);
    c->of_python = is_sign_of_python(n, op);
    for (; b.n < CFXI_MOST_PARAMS && cfxi_ops_listed_param(op, list, b.n, &b.params[b.n]); b.n++) {
        b.values[b.n] = cfx_value_invalid();
        b.params[b.n].keyword_only &= !cfxi_lower_calls_row(n);
    }
    const bool fits = bind_positions(l, n, &b, c) && bind_keywords(l, n, &b, c) &&
                      hand_over(l, &b, c, strictly);
    if (!fits)
        cfxi_lower_unbind(l, c);
    return fits;
}

/* ---- one of several ------------------------------------------------------------------------ */

/* scatter's own words for what scatter_reduce calls otherwise. */
static bool rename_reduce(cfxi_lower *l, cfxi_lowered *c)
{
    const bool renamed = c->op == CFX_OPID_scatter_reduce || c->op == CFX_OPID_scatter_reduce_;
    const size_t i = renamed ? cfx_operator_find_param(c->op, "reduce") : SIZE_MAX;
    const char *text = i < c->n && c->args[i].kind == CFX_KIND_STR
                           ? cfx_value_text(c->args[i], NULL) : "";
    const char *other = strcmp(text, "add") == 0 ? "sum" : strcmp(text, "multiply") == 0 ? "prod"
                                                                                         : NULL;
    if (!other)
        return true;
    c->args[i] = cfx_value_str(l->g, other, strlen(other), l->err);
    return c->args[i].kind != CFX_KIND_INVALID;
}

bool cfxi_lower_choose(cfxi_lower *l, const cfx_node *n, cfxi_lowered *c)
{
    char why[sizeof c->why] = "";
    const cfx_operator from = cfx_node_operator(n);
    const char *spelled = cfxi_ops_spelling_list(cfxi_ops_node_spelling(n));
    for (int strictly = 1; strictly >= 0; strictly--) {
        cfx_operator to = from;
        const char *list = spelled;
        for (size_t i = 0;; i++) {
            if (cfxi_lower_bind(l, n, to, list, strictly, c))
                return from != CFX_OPID_scatter && from != CFX_OPID_scatter_
                           ? true : rename_reduce(l, c);
            if (i == 0)
                memcpy(why, c->why, sizeof why);
            if (l->err->status == CFX_E_NOMEM || cfxi_lower_calls_row(n) ||
                !cfxi_lower_form(from, i, &to, &list))
                break;
        }
    }
    memcpy(c->why, why, sizeof why);
    return false;
}
