/* dim_text.c - expressions of sizes as text, and their values. */
#include "dim_impl.h"

/* ---- printing ------------------------------------------------------------------------------ */

/* How tightly what stands around binds. */
typedef enum place { LOOSE, FACTOR, FIRST_FACTOR, DIVISOR } place;

static void print_dim(const cfx_dims *dims, int64_t d, place where, cfxi_out *out);

static void print_binary(const cfx_dims *dims, const cfxi_dim_expr *e, place where, cfxi_out *out)
{
    bool parentheses = where == FACTOR || where == DIVISOR;
    if (parentheses)
        cfxi_base_out_char(out, '(');
    print_dim(dims, e->a, FIRST_FACTOR, out);
    cfxi_base_out_str(out, e->kind == CFXI_DIM_DIV ? "//" : "%");
    print_dim(dims, e->b, DIVISOR, out);
    if (parentheses)
        cfxi_base_out_char(out, ')');
}

static void print_atom(const cfx_dims *dims, const cfxi_dim_expr *e, place where, cfxi_out *out)
{
    if (e->kind == CFXI_DIM_SYMBOL) {
        cfxi_base_out_str(out, e->name);
    } else if (e->kind == CFXI_DIM_DIV || e->kind == CFXI_DIM_MOD) {
        print_binary(dims, e, where, out);
    } else {
        cfxi_base_out_str(out, e->kind == CFXI_DIM_MAX ? "max(" : "min(");
        print_dim(dims, e->a, LOOSE, out);
        cfxi_base_out_str(out, ", ");
        print_dim(dims, e->b, LOOSE, out);
        cfxi_base_out_char(out, ')');
    }
}

static void print_number(uint64_t number, cfxi_out *out)
{
    cfxi_base_out_printf(out, "%llu", (unsigned long long)number);
}

/* Without its sign. `signed_`: a '-' stands before it that binds tighter than a division. */
static void print_term(const cfx_dims *dims, const cfxi_term *t, bool signed_, cfxi_out *out)
{
    uint64_t size = t->factor < 0 ? 0 - (uint64_t)t->factor : (uint64_t)t->factor;
    bool first = !signed_;
    bool any = false;
    if (size != 1 || t->m->degree == 0) {
        print_number(size, out);
        first = false;
        any = true;
    }
    for (size_t i = 0, n; i < t->m->degree; i += n) {
        const cfxi_dim_expr *e = cfxi_dim_at(dims, t->m->atoms[i]);
        for (n = 1; i + n < t->m->degree && t->m->atoms[i + n] == t->m->atoms[i];)
            n++;
        if (any)
            cfxi_base_out_char(out, '*');
        print_atom(dims, e, first && n == 1 ? FIRST_FACTOR : FACTOR, out);
        first = false;
        any = true;
        if (n > 1)
            cfxi_base_out_printf(out, "**%zu", n);
    }
}

/* A positive term comes first if there is one: 3 - N. */
static void print_sum(const cfx_dims *dims, const cfxi_dim_expr *e, cfxi_out *out)
{
    size_t first = 0;
    while (first + 1 < e->n && e->t[first].factor < 0)
        first++;
    if (e->t[first].factor < 0)
        first = 0;
    bool minus = e->t[first].factor < 0;
    if (minus)
        cfxi_base_out_char(out, '-');
    print_term(dims, &e->t[first], minus, out);
    for (size_t i = 0; i < e->n; i++) {
        if (i == first)
            continue;
        cfxi_base_out_str(out, e->t[i].factor < 0 ? " - " : " + ");
        print_term(dims, &e->t[i], false, out);
    }
}

static void print_dim(const cfx_dims *dims, int64_t d, place where, cfxi_out *out)
{
    const cfxi_dim_expr *e = cfxi_dim_expr_of(dims, d);
    if (!cfx_dim_is_symbol(d) || !e) {
        cfxi_base_out_printf(out, d < 0 && where != LOOSE ? "(%lld)" : "%lld", (long long)d);
        return;
    }
    if (e->kind != CFXI_DIM_SUM) {
        print_atom(dims, e, where, out);
        return;
    }
    bool parentheses = where != LOOSE &&
                       (e->n > 1 || e->t[0].factor < 0 || where != FIRST_FACTOR);
    if (parentheses)
        cfxi_base_out_char(out, '(');
    print_sum(dims, e, out);
    if (parentheses)
        cfxi_base_out_char(out, ')');
}

cfx_status cfx_dims_print(const cfx_dims *dims, int64_t d, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    cfxi_base_out_begin(&out, sink);
    if (d == CFX_DIM_UNKNOWN || (cfx_dim_is_symbol(d) && !cfxi_dim_expr_of(dims, d)))
        cfxi_base_out_char(&out, '?');
    else
        print_dim(dims, d, LOOSE, &out);
    return cfxi_base_out_end(&out, err);
}

/* ---- parsing ------------------------------------------------------------------------------- */

enum { PARSE_DEPTH = 64 };

typedef struct reader {
    cfx_dims *dims;
    const char *text;
    size_t size;
    size_t at;
    int depth;
    cfx_error *err;
} reader;

static int64_t parse_sum(reader *r);

static int64_t complain(reader *r, const char *what)
{
    if (r->err->status == CFX_OK) {
        cfx_error_set(r->err, CFX_E_SYNTAX, "%s at column %zu of the size '%.*s'", what, r->at + 1,
                      r->size > 80 ? 80 : (int)r->size, r->text);
        r->err->column = (uint32_t)r->at + 1;
    }
    return CFX_DIM_UNKNOWN;
}

static bool take(reader *r, const char *word)
{
    size_t size = strlen(word);
    while (r->at < r->size && (r->text[r->at] == ' ' || r->text[r->at] == '\t'))
        r->at++;
    if (r->size - r->at < size || memcmp(r->text + r->at, word, size) != 0)
        return false;
    r->at += size;
    return true;
}

/* A name, or max(a, b). */
static int64_t parse_name(reader *r)
{
    char name[64];
    size_t from = r->at;
    const size_t size = cfxi_base_identifier_size(r->text + from, r->size - from);
    r->at += size;
    if (size >= sizeof name)
        return complain(r, "name too long");
    memcpy(name, r->text + from, size);
    name[size] = '\0';
    bool most = strcmp(name, "max") == 0;
    if (!most && strcmp(name, "min") != 0)
        return cfx_dims_symbol(r->dims, name, 2, r->err);
    if (!take(r, "("))
        return complain(r, "expected '('");
    int64_t a = parse_sum(r);
    while (r->err->status == CFX_OK && take(r, ",")) {
        int64_t b = parse_sum(r);
        if (r->err->status == CFX_OK)
            a = most ? cfx_dim_max(r->dims, a, b, r->err) : cfx_dim_min(r->dims, a, b, r->err);
    }
    return r->err->status == CFX_OK && !take(r, ")") ? complain(r, "expected ')'") : a;
}

static int64_t parse_number(reader *r)
{
    int64_t number;
    size_t from = r->at;
    while (r->at < r->size && cfxi_base_is_digit(r->text[r->at]))
        r->at++;
    if (!cfxi_base_parse_int(r->text + from, r->at - from, &number))
        return complain(r, "number too large");
    return number;
}

static int64_t parse_power(reader *r)
{
    int64_t base;
    take(r, "");
    char c = r->at < r->size ? r->text[r->at] : '\0';
    if (cfxi_base_is_digit(c)) {
        base = parse_number(r);
    } else if (cfxi_base_is_ident_start(c)) {
        base = parse_name(r);
    } else if (take(r, "(")) {
        base = parse_sum(r);
        if (r->err->status == CFX_OK && !take(r, ")"))
            return complain(r, "expected ')'");
    } else {
        return complain(r, "expected a size");
    }
    if (r->err->status != CFX_OK || !take(r, "**"))
        return base;
    take(r, "");
    int64_t power = r->at < r->size && cfxi_base_is_digit(r->text[r->at]) ? parse_number(r) : -1;
    if (power < 1 || power > CFXI_DIM_DEGREE)
        return complain(r, "expected a power from 1 to 16");
    int64_t product = base;
    while (--power > 0 && r->err->status == CFX_OK)
        product = cfx_dim_mul(r->dims, product, base, r->err);
    return product;
}

static int64_t parse_unary(reader *r)
{
    bool minus = false;
    while (take(r, "-"))
        minus = !minus;
    int64_t d = parse_power(r);
    return minus && r->err->status == CFX_OK ? cfx_dim_sub(r->dims, 0, d, r->err) : d;
}

static int64_t parse_product(reader *r)
{
    int64_t a = parse_unary(r);
    while (r->err->status == CFX_OK) {
        bool divide = take(r, "//");
        bool rest = !divide && take(r, "%");
        if (!divide && !rest && !take(r, "*"))
            break;
        int64_t b = parse_unary(r);
        if (r->err->status == CFX_OK)
            a = (divide ? cfx_dim_div : rest ? cfx_dim_mod : cfx_dim_mul)(r->dims, a, b, r->err);
    }
    return a;
}

static int64_t parse_sum(reader *r)
{
    if (++r->depth > PARSE_DEPTH) {
        cfx_error_set(r->err, CFX_E_LIMIT, "parentheses in a size nest more than %d deep",
                      PARSE_DEPTH);
        return CFX_DIM_UNKNOWN;
    }
    int64_t a = parse_product(r);
    while (r->err->status == CFX_OK) {
        bool plus = take(r, "+");
        if (!plus && !take(r, "-"))
            break;
        int64_t b = parse_product(r);
        if (r->err->status == CFX_OK)
            a = (plus ? cfx_dim_add : cfx_dim_sub)(r->dims, a, b, r->err);
    }
    r->depth--;
    return a;
}

int64_t cfx_dims_parse(cfx_dims *dims, const char *text, size_t size, cfx_error *err)
{
    cfx_error own = {0};
    reader r = {.dims = dims, .text = text, .size = size, .err = &own};
    int64_t d = parse_sum(&r);
    if (own.status == CFX_OK && (take(&r, ""), r.at < r.size))
        complain(&r, "unexpected text");
    if (own.status == CFX_OK)
        return d;
    if (err)
        *err = own;
    return CFX_DIM_UNKNOWN;
}

/* ---- values -------------------------------------------------------------------------------- */

typedef struct evaluation {
    const cfx_dims *dims;
    cfxi_dim_value_fn *value;
    void *ctx;
    uint32_t number;
    cfx_error *err;
} evaluation;

static cfx_status eval_dim(const evaluation *v, int64_t d, int64_t *out);

static cfx_status eval_symbol(const evaluation *v, const cfxi_dim_expr *e, int64_t *out)
{
    *out = v->value(v->ctx, e->name);
    if (*out != CFX_DIM_UNKNOWN)
        return CFX_OK;
    if (e->is_equal)
        return eval_dim(v, e->equal, out);
    return cfx_error_set(v->err, CFX_E_KEY, "no value is given for the size %s", e->name);
}

static cfx_status eval_sum(const evaluation *v, const cfxi_dim_expr *e, int64_t *out)
{
    int64_t sum = 0;
    for (size_t i = 0; i < e->n; i++) {
        int64_t product = e->t[i].factor;
        for (size_t k = 0; k < e->t[i].m->degree; k++) {
            int64_t atom;
            CFX_TRY(eval_dim(v, cfxi_dim_of(cfxi_dim_at(v->dims, e->t[i].m->atoms[k])), &atom));
            if (__builtin_mul_overflow(product, atom, &product))
                return cfxi_dim_overflow(v->err);
        }
        if (__builtin_add_overflow(sum, product, &sum))
            return cfxi_dim_overflow(v->err);
    }
    *out = sum;
    return CFX_OK;
}

static cfx_status eval_binary(const evaluation *v, const cfxi_dim_expr *e, int64_t *out)
{
    int64_t a;
    int64_t b;
    CFX_TRY(eval_dim(v, e->a, &a));
    CFX_TRY(eval_dim(v, e->b, &b));
    v->err->status = CFX_OK;
    *out = e->kind == CFXI_DIM_DIV   ? cfx_dim_div(NULL, a, b, v->err)
           : e->kind == CFXI_DIM_MOD ? cfx_dim_mod(NULL, a, b, v->err)
           : e->kind == CFXI_DIM_MAX ? (a > b ? a : b)
                                     : (a < b ? a : b);
    return v->err->status;
}

/* Each expression is evaluated once; `busy` ends assumptions that go in a circle. */
static cfx_status eval_dim(const evaluation *v, int64_t d, int64_t *out)
{
    cfxi_dim_expr *e = cfx_dim_is_symbol(d) ? cfxi_dim_expr_of(v->dims, d) : NULL;
    cfx_status status;
    *out = d;
    if (!e)
        return d > CFX_DIM_UNKNOWN ? CFX_OK
                                   : cfx_error_set(v->err, CFX_E_KEY, "a size is not known");
    if (e->valued_at == v->number) {
        *out = e->value;
        return CFX_OK;
    }
    if (e->busy)
        return cfx_error_set(v->err, CFX_E_KEY, "a size is defined only in terms of itself");
    e->busy = true;
    if (e->kind == CFXI_DIM_SYMBOL)
        status = eval_symbol(v, e, out);
    else if (e->kind == CFXI_DIM_SUM)
        status = eval_sum(v, e, out);
    else
        status = eval_binary(v, e, out);
    e->busy = false;
    if (status == CFX_OK) {
        e->value = *out;
        e->valued_at = v->number;
    }
    return status;
}

cfx_status cfxi_dim_eval(const cfx_dims *dims, int64_t d, cfxi_dim_value_fn *value, void *ctx,
                         int64_t *out, cfx_error *err)
{
    cfx_error own = {0};
    uint32_t number = dims ? ++((cfx_dims *)(uintptr_t)dims)->evaluation : 0;
    const evaluation v = {dims, value, ctx, number, &own};
    cfx_status status = eval_dim(&v, d, out);
    if (status != CFX_OK && err)
        *err = own;
    return status;
}
