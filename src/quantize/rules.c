/* rules.c - which configuration a call has: the rules of cfx_qrules, and the one that wins.
 *
 * A rule is found by a key of text: a letter for its kind, and what it applies to. Types stand in
 * keys as ops.def abbreviates them, so that all spellings of a function are one key.
 */
#include "quantize_impl.h"

#include "ops/ops_impl.h"

#include <regex.h>

enum { LONGEST_REGEX = 1000, DEEPEST_REGEX = 50, MOST_REPEATS = 1000 };

typedef struct rule {
    cfx_qconfig config;
    bool stays_float;
} rule;

/* A regular expression, whose rule is found as others are, by its text. */
typedef struct pattern {
    const char *text;   /* borrowed from the keys */
    size_t number;      /* of its rule */
    regex_t *compiled;  /* NULL if the rules have a matcher */
} pattern;

struct cfx_qrules {
    const cfx_allocator *allocator;
    cfxi_named numbers;  /* of the rules, by their keys */
    cfxi_vec rules;      /* rule */
    cfxi_vec patterns;   /* pattern */
    cfx_qrules_match_fn *match;
    void *match_ctx;
};

static rule *rules_of(const cfx_qrules *r) { return r->rules.data; }
static pattern *patterns_of(const cfx_qrules *r) { return r->patterns.data; }

/* ---- keys ----------------------------------------------------------------------------------- */

/* A bare word is a method. */
static bool is_method(const char *type) { return cfxi_base_is_identifier(type, strlen(type)); }

static cfxi_op_name look_up(const char *type)
{
    return is_method(type) ? cfxi_ops_op_lookup_method(type, strlen(type))
                           : cfxi_ops_op_lookup(type, strlen(type));
}

cfx_operator cfxi_quantize_type_operator(const char *type) { return look_up(type).op; }

/* One text for all spellings of a type; it may be in `room`. */
static cfx_schema_text plain_type(const char *type, char room[CFX_SPELLING_SIZE])
{
    const size_t size = strlen(type);
    const cfxi_op_name found = look_up(type);
    if (found.spelling && *found.spelling)
        return (cfx_schema_text){found.spelling, strcspn(found.spelling, " (")};
    if (is_method(type) && size + 1 < CFX_SPELLING_SIZE) {
        room[0] = '.';
        memcpy(room + 1, type, size + 1);
        return (cfx_schema_text){room, size + 1};
    }
    const size_t n = cfxi_ops_shorten(type, size, room);
    return n > 0 ? (cfx_schema_text){room, n} : (cfx_schema_text){type, size};
}

static cfx_status append(cfx_buffer *key, const char *text, size_t size, cfx_error *err)
{
    return cfx_buffer_append(key, text, size) == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
}

static cfx_status text_key(cfx_buffer *key, char kind, const char *text, size_t size,
                           cfx_error *err)
{
    key->size = 0;
    CFX_TRY(append(key, &kind, 1, err));
    return append(key, text, size, err);
}

static cfx_status type_key(cfx_buffer *key, const char *type, cfx_error *err)
{
    char room[CFX_SPELLING_SIZE];
    const cfx_schema_text plain = plain_type(type, room);
    return text_key(key, 't', plain.text, plain.size, err);
}

/* The key of calls of `type` in the module `path`; with a number, that of one of them. */
static cfx_status call_key(cfx_buffer *key, const char *path, size_t path_size, const char *type,
                           const size_t *index, cfx_error *err)
{
    char room[CFX_SPELLING_SIZE];
    char digits[CFXI_NUMBER_SIZE];
    const cfx_schema_text plain = plain_type(type, room);
    CFX_TRY(text_key(key, 'o', path, path_size, err));
    CFX_TRY(append(key, "\n", 1, err));
    CFX_TRY(append(key, plain.text, plain.size, err));
    if (!index)
        return CFX_OK;
    CFX_TRY(append(key, "\n", 1, err));
    return append(key, digits, cfxi_base_format_int((int64_t)*index, digits), err);
}

/* ---- regular expressions -------------------------------------------------------------------- */

/* The greater number of "{2,5}"; 1 if there is none. */
static size_t repeats_at(const char *brace)
{
    size_t most = 1, n = 0;
    for (const char *c = brace + 1; *c && *c != '}'; c++) {
        n = cfxi_base_is_digit(*c) && n <= MOST_REPEATS ? n * 10 + (size_t)(*c - '0') : 0;
        most = n > most ? n : most;
    }
    return most;
}

/* libc would read an expression of any size, and copies what "{}" repeats. */
static cfx_status check_regex(const char *regex, cfx_error *err)
{
    size_t depth = 0, repeats = 1;
    for (const char *c = regex; *c; c++) {
        if (c[0] == '\\' && cfxi_base_is_digit(c[1]))
            return cfx_error_set(err, CFX_E_SYNTAX, "back reference '\\%c' in the regular "
                                 "expression '%.100s' is not supported", c[1], regex);
        if (c[0] == '\\' && c[1])
            c++;
        else if (*c == '(')
            depth++;
        else if (*c == '{')
            repeats *= repeats_at(c);
        if (c - regex >= LONGEST_REGEX || depth > DEEPEST_REGEX || repeats > MOST_REPEATS)
            return cfx_error_set(err, CFX_E_LIMIT, "the regular expression '%.100s...' is too "
                                 "large: at most %d bytes, %d groups, %d repetitions", regex,
                                 LONGEST_REGEX, DEEPEST_REGEX, MOST_REPEATS);
    }
    return CFX_OK;
}

static void free_regex(const cfx_qrules *r, regex_t *compiled)
{
    if (!compiled)
        return;
    regfree(compiled);
    cfxi_base_free(r->allocator, compiled, sizeof *compiled);
}

static cfx_status compile(const cfx_qrules *r, const char *regex, regex_t **out, cfx_error *err)
{
    char why[100];
    CFX_TRY(check_regex(regex, err));
    regex_t *compiled = cfxi_base_alloc(r->allocator, sizeof *compiled);
    if (!compiled)
        return cfxi_base_nomem(err);
    const int code = regcomp(compiled, regex, REG_EXTENDED);
    if (code == 0) {
        *out = compiled;
        return CFX_OK;
    }
    regerror(code, compiled, why, sizeof why);
    cfxi_base_free(r->allocator, compiled, sizeof *compiled);
    if (code == REG_ESPACE)
        return cfxi_base_nomem(err);
    return cfx_error_set(err, CFX_E_SYNTAX, "'%.100s' is not a regular expression of POSIX: %s",
                         regex, why);
}

/* The leftmost match begins where the name does, if one does at all. */
static cfx_status matches(const cfx_qrules *r, const pattern *p, const char *name, bool *yes,
                          cfx_error *err)
{
    regmatch_t at;
    if (r->match) {
        const cfx_status status = r->match(r->match_ctx, p->text, name, yes, err);
        return status == CFX_OK ? CFX_OK : cfxi_base_failed(err, status);
    }
    const int code = regexec(p->compiled, name, 1, &at, 0);
    if (code == REG_ESPACE)
        return cfxi_base_nomem(err);
    *yes = code == 0 && at.rm_so == 0;
    return CFX_OK;
}

/* ---- setting -------------------------------------------------------------------------------- */

cfx_qrules *cfx_qrules_new(const cfx_allocator *allocator, cfx_error *err)
{
    allocator = cfxi_base_allocator(allocator);
    cfx_qrules *r = cfxi_base_alloc(allocator, sizeof *r);
    if (!r) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *r = (cfx_qrules){.allocator = allocator, .numbers = cfxi_rt_named_new(allocator)};
    return r;
}

void cfx_qrules_free(cfx_qrules *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->patterns.size; i++)
        free_regex(r, patterns_of(r)[i].compiled);
    cfxi_base_vec_free(&r->patterns, sizeof(pattern), r->allocator);
    cfxi_base_vec_free(&r->rules, sizeof(rule), r->allocator);
    cfxi_rt_named_free(&r->numbers);
    cfxi_base_free(r->allocator, r, sizeof *r);
}

/* The rule of a key, or NULL. */
static const rule *rule_at(const cfx_qrules *r, const char *key)
{
    const cfx_datum number = cfxi_rt_named_get(&r->numbers, key);
    return number.kind == CFX_DATUM_INT ? &rules_of(r)[number.as.i] : NULL;
}

/* Sets the rule of a key that call_key and the others made with `made`, and frees the key. */
static cfx_status put(cfx_qrules *r, cfx_buffer *key, cfx_status made, const cfx_qconfig *config,
                      cfx_error *err)
{
    static const cfx_qconfig nothing;
    const rule new = {.config = config ? *config : nothing, .stays_float = !config};
    const rule *old = made == CFX_OK ? rule_at(r, key->data) : NULL;
    if (old) {
        rules_of(r)[old - rules_of(r)] = new;
    } else if (made == CFX_OK) {
        made = cfxi_base_vec_reserve(&r->rules, 1, sizeof new, r->allocator)
                   ? cfxi_rt_named_set(&r->numbers, key->data,
                                       cfx_datum_int((int64_t)r->rules.size), err)
                   : cfxi_base_nomem(err);
        if (made == CFX_OK)
            rules_of(r)[r->rules.size++] = new;
    }
    cfx_buffer_free(key);
    return made;
}

static cfx_status begin(const cfx_qrules *r, const void *text, const char *what, cfx_buffer *key,
                        cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(r, "rules", err));
    CFX_TRY(cfxi_base_expect(text, what, err));
    cfx_buffer_init(key, r->allocator);
    return CFX_OK;
}

cfx_status cfx_qrules_set_global(cfx_qrules *r, const cfx_qconfig *config, cfx_error *err)
{
    cfx_buffer key;
    CFX_TRY(begin(r, "", "", &key, err));
    return put(r, &key, text_key(&key, 'g', "", 0, err), config, err);
}

cfx_status cfx_qrules_set_type(cfx_qrules *r, const char *type, const cfx_qconfig *config,
                               cfx_error *err)
{
    cfx_buffer key;
    CFX_TRY(begin(r, type, "type", &key, err));
    return put(r, &key, type_key(&key, type, err), config, err);
}

cfx_status cfx_qrules_set_name(cfx_qrules *r, const char *name, const cfx_qconfig *config,
                               cfx_error *err)
{
    cfx_buffer key;
    CFX_TRY(begin(r, name, "name", &key, err));
    return put(r, &key, text_key(&key, 'n', name, strlen(name), err), config, err);
}

cfx_status cfx_qrules_set_order(cfx_qrules *r, const char *name, const char *type, size_t index,
                                const cfx_qconfig *config, cfx_error *err)
{
    cfx_buffer key;
    CFX_TRY(begin(r, name, "name", &key, err));
    CFX_TRY(cfxi_base_expect(type, "type", err));
    return put(r, &key, call_key(&key, name, strlen(name), type, &index, err), config, err);
}

/* A new expression: what may fail comes before the rule is there. */
static cfx_status add_pattern(cfx_qrules *r, const char *regex, const cfx_qconfig *config,
                              cfx_buffer *key, cfx_error *err)
{
    pattern new = {0};
    cfx_status status = CFX_OK;
    if (!cfxi_base_vec_reserve(&r->patterns, 1, sizeof new, r->allocator))
        status = cfxi_base_nomem(err);
    if (status == CFX_OK && !r->match)
        status = compile(r, regex, &new.compiled, err);
    status = put(r, key, status, config, err);
    if (status != CFX_OK) {
        free_regex(r, new.compiled);
        return status;
    }
    new.number = r->rules.size - 1;
    new.text = cfxi_rt_named_entry(&r->numbers, new.number, NULL) + 1;
    patterns_of(r)[r->patterns.size++] = new;
    return CFX_OK;
}

cfx_status cfx_qrules_set_regex(cfx_qrules *r, const char *regex, const cfx_qconfig *config,
                                cfx_error *err)
{
    cfx_buffer key;
    CFX_TRY(begin(r, regex, "regular expression", &key, err));
    const cfx_status status = text_key(&key, 'r', regex, strlen(regex), err);
    if (status != CFX_OK || rule_at(r, key.data))
        return put(r, &key, status, config, err);
    return add_pattern(r, regex, config, &key, err);
}

cfx_status cfx_qrules_set_matcher(cfx_qrules *r, cfx_qrules_match_fn *match, void *ctx,
                                  cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(r, "rules", err));
    if (r->patterns.size > 0)
        return cfx_error_set(err, CFX_E_VALUE, "the rules have regular expressions already: set "
                             "the matcher before the first of them");
    r->match = match;
    r->match_ctx = ctx;
    return CFX_OK;
}

/* ---- finding -------------------------------------------------------------------------------- */

/* Each of these leaves *found as it is if no rule of its kind applies. */

static cfx_status find_type(const cfx_qrules *r, const char *type, cfx_buffer *key,
                            const rule **found, cfx_error *err)
{
    if (!type)
        return CFX_OK;
    CFX_TRY(type_key(key, type, err));
    const rule *at = rule_at(r, key->data);
    const char *row = at ? NULL : cfx_operator_name(look_up(type).op);
    if (row) {
        CFX_TRY(text_key(key, 't', "cfx.ops.", strlen("cfx.ops."), err));
        CFX_TRY(append(key, row, strlen(row), err));
        at = rule_at(r, key->data);
    }
    if (at)
        *found = at;
    return CFX_OK;
}

static cfx_status find_regex(const cfx_qrules *r, const char *path, const rule **found,
                             cfx_error *err)
{
    for (size_t i = 0; i < r->patterns.size; i++) {
        const pattern *p = &patterns_of(r)[i];
        bool yes = false;
        CFX_TRY(matches(r, p, path, &yes, err));
        if (yes) {
            *found = &rules_of(r)[p->number];
            return CFX_OK;
        }
    }
    return CFX_OK;
}

/* Of the module, or of the nearest one around it. The root has none: the global rule is its. */
static cfx_status find_name(const cfx_qrules *r, const char *path, cfx_buffer *key,
                            const rule **found, cfx_error *err)
{
    CFX_TRY(text_key(key, 'n', path, strlen(path), err));
    while (key->size > 1) {
        const rule *at = rule_at(r, key->data);
        if (at) {
            *found = at;
            return CFX_OK;
        }
        while (key->size > 1 && key->data[key->size - 1] != '.')
            key->size--;
        key->size -= key->size > 1;
        key->data[key->size] = '\0';
    }
    return CFX_OK;
}

/* The part of the path that is the module in which the call stands. */
static size_t caller_size(const cfxi_quantize_call *call)
{
    const char *dot = strrchr(call->path, '.');
    if (call->op != CFX_OP_CALL_MODULE)
        return strlen(call->path);
    return dot ? (size_t)(dot - call->path) : 0;
}

static bool is_counted(const cfxi_quantize_call *call)
{
    return call->type && (call->op == CFX_OP_CALL_FUNCTION || call->op == CFX_OP_CALL_MODULE);
}

static cfx_status find_order(const cfx_qrules *r, const cfxi_quantize_call *call, cfx_buffer *key,
                             const rule **found, cfx_error *err)
{
    if (!is_counted(call))
        return CFX_OK;
    CFX_TRY(call_key(key, call->path, caller_size(call), call->type, &call->index, err));
    const rule *at = rule_at(r, key->data);
    if (at)
        *found = at;
    return CFX_OK;
}

/* From the least particular rule to the most: the last that applies wins. */
static cfx_status find(const cfx_qrules *r, const cfxi_quantize_call *call, cfx_buffer *key,
                       const rule **found, cfx_error *err)
{
    CFX_TRY(text_key(key, 'g', "", 0, err));
    *found = rule_at(r, key->data);
    CFX_TRY(find_type(r, call->like, key, found, err));
    CFX_TRY(find_type(r, call->type, key, found, err));
    if (call->op != CFX_OP_CALL_MODULE)
        CFX_TRY(find_type(r, call->around, key, found, err));
    CFX_TRY(find_regex(r, call->path, found, err));
    CFX_TRY(find_name(r, call->path, key, found, err));
    return find_order(r, call, key, found, err);
}

static const cfx_qconfig *config_of(const rule *found)
{
    return found && !found->stays_float ? &found->config : NULL;
}

cfx_status cfxi_quantize_rules_find(const cfx_qrules *r, const cfxi_quantize_call *call,
                                    const cfx_qconfig **config, cfx_error *err)
{
    cfx_buffer key;
    const rule *found = NULL;
    cfx_buffer_init(&key, r->allocator);
    const cfx_status status = find(r, call, &key, &found, err);
    *config = status == CFX_OK ? config_of(found) : NULL;
    cfx_buffer_free(&key);
    return status;
}

cfx_status cfxi_quantize_rules_of_type(const cfx_qrules *r, const char *type, bool *has,
                                       const cfx_qconfig **config, cfx_error *err)
{
    cfx_buffer key;
    const rule *found = NULL;
    cfx_buffer_init(&key, r->allocator);
    const cfx_status status = find_type(r, type, &key, &found, err);
    *has = found != NULL;
    *config = config_of(found);
    cfx_buffer_free(&key);
    return status;
}

cfx_status cfxi_quantize_order_count(cfxi_quantize_order *order, cfxi_quantize_call *call,
                                     cfx_error *err)
{
    cfx_buffer key;
    call->index = 0;
    if (!is_counted(call))
        return CFX_OK;
    cfx_buffer_init(&key, order->allocator);
    cfx_status status = call_key(&key, call->path, caller_size(call), call->type, NULL, err);
    if (status == CFX_OK) {
        const cfx_datum seen = cfxi_rt_named_get(order, key.data);
        call->index = seen.kind == CFX_DATUM_INT ? (size_t)seen.as.i : 0;
        status = cfxi_rt_named_set(order, key.data, cfx_datum_int((int64_t)call->index + 1), err);
    }
    cfx_buffer_free(&key);
    return status;
}
