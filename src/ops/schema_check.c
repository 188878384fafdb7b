/* schema_check.c - whether a schema that a user wrote is one.
 *
 *     schema := "(" [param {", " param}] ") -> " (type | "(" [type {", " type}] ")")
 *     param  := "*" | type " " name ["=" default]
 *     type   := word ["(" letter ["!"] ")"] {"?" | "[" [digit] "]"}
 *
 * schema.c reads the rows of the table, which are known to be well formed, where they stand. Here
 * the same is read once with every doubt; what passes can then be read like a row.
 */
#include "ops_impl.h"


enum { MOST_PARAMS = 28, MOST_RESULTS = 8 };

static const char *const types[] = {
    "Tensor", "int", "float", "bool", "Scalar", "str", "ScalarType", "MemoryFormat", "Layout",
    "Device", "Generator", "Any",
};

typedef struct checker {
    const char *at;
    const char *schema;
    bool written[128];  /* by letter: a parameter "(a!)" */
    bool letters[128];  /* a parameter "(a)" or "(a!)" */
    bool keywords;      /* past the "*" */
    bool defaults;      /* a parameter before had a default */
    cfx_error *err;
} checker;

#define COMPLAIN(c, ...) cfx_error_set((c)->err, CFX_E_SYNTAX, __VA_ARGS__)

static cfx_status expect(checker *c, const char *text, const char *where)
{
    const size_t size = strlen(text);
    if (strncmp(c->at, text, size) != 0)
        return COMPLAIN(c, "'%s' is missing %s, before '%.20s'", text, where, c->at);
    c->at += size;
    return CFX_OK;
}

static cfx_schema_text read_word(checker *c)
{
    cfx_schema_text word = {c->at, 0};
    while (cfxi_base_is_ident(*c->at))
        c->at++;
    word.size = (size_t)(c->at - word.text);
    return word;
}

/* "(a)", "(a!)" */
static cfx_status check_alias(checker *c, bool result)
{
    if (*c->at != '(')
        return CFX_OK;
    const unsigned char letter = (unsigned char)c->at[1];
    if (letter < 'a' || letter > 'z')
        return COMPLAIN(c, "'%.6s' is not an alias; write one letter, as in (a) or (a!)", c->at);
    c->at += 2;
    const bool writes = *c->at == '!';
    c->at += writes;
    CFX_TRY(expect(c, ")", "after the letter of an alias"));
    if (!result) {
        c->letters[letter] = true;
        c->written[letter] = c->written[letter] || writes;
        return CFX_OK;
    }
    if (!c->letters[letter])
        return COMPLAIN(c, "the result is (%c), but no parameter is (%c)", letter,
                        letter);
    if (writes && !c->written[letter])
        return COMPLAIN(c, "the result is (%c!), but no parameter is (%c!)", letter,
                        letter);
    return CFX_OK;
}

static bool is_known(cfx_schema_text word)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (cfxi_ops_text_is_word(word, types[i]))
            return true;
    return false;
}

static cfx_status check_type(checker *c, bool result)
{
    const cfx_schema_text word = read_word(c);
    if (!is_known(word))
        return COMPLAIN(c, word.size == 0 ? "a type is missing before '%.*s'"
                                          : "'%.*s' is not a type",
                        word.size ? (int)word.size : 20, word.text);
    CFX_TRY(check_alias(c, result));
    c->at += *c->at == '?';
    if (*c->at != '[')
        return CFX_OK;
    c->at++;
    if (*c->at >= '1' && *c->at <= '8')  /* as many as a tensor has dimensions */
        c->at++;
    CFX_TRY(expect(c, "]", "after a list (its length, if any, is 1 to 8)"));
    c->at += *c->at == '?';
    return CFX_OK;
}

/* Goes behind a default: up to a comma or parenthesis outside of brackets and quotes. */
static cfx_status skip_default(checker *c, cfx_schema_text name)
{
    const char *end = c->at;
    const cfx_schema_text value = cfxi_ops_schema_next(&end);
    c->at += value.size;
    const bool open = !*c->at || (value.size > 0 && c->at[-1] == ' ');
    if (value.size == 0 || value.text[0] == ' ' || open)
        return COMPLAIN(c, "the default of '%.*s' cannot be parsed", (int)name.size, name.text);
    return CFX_OK;
}

static cfx_status check_param(checker *c, size_t i)
{
    CFX_TRY(check_type(c, false));
    CFX_TRY(expect(c, " ", "after the type of a parameter"));
    const cfx_schema_text name = read_word(c);
    if (name.size == 0 || cfxi_base_is_digit(name.text[0]))
        return COMPLAIN(c, "a parameter has no name before '%.20s'", c->at);
    if (*c->at != '=' && *c->at != ',' && *c->at != ')')
        return COMPLAIN(c, "'%.20s' cannot follow the parameter '%.*s'; a default is written "
                        "without blanks: %.*s=1", c->at, (int)name.size, name.text,
                        (int)name.size, name.text);
    if (cfxi_ops_schema_find_param(c->schema, name.text, name.size) != i)
        return COMPLAIN(c, "two parameters are named '%.*s'", (int)name.size, name.text);
    if (*c->at != '=' && c->defaults && !c->keywords)
        return COMPLAIN(c, "'%.*s' needs a default, because a parameter before it has one",
                        (int)name.size, name.text);
    if (*c->at != '=')
        return CFX_OK;
    c->defaults = true;
    c->at++;
    return skip_default(c, name);
}

static cfx_status check_params(checker *c)
{
    size_t n = 0;
    CFX_TRY(expect(c, "(", "at the beginning"));
    for (bool first = true; *c->at != ')'; first = false) {
        if (!first)
            CFX_TRY(expect(c, ", ", "between two parameters"));
        if (*c->at == '*' && !c->keywords) {
            c->keywords = true;
            c->at++;
            if (*c->at != ',')
                return COMPLAIN(c, "'*' must be followed by ', ' and keyword-only parameters; "
                                "write a variable number of tensors as Tensor[]");
            continue;
        }
        if (n == MOST_PARAMS)
            return COMPLAIN(c, "it has more than %d parameters", MOST_PARAMS);
        CFX_TRY(check_param(c, n++));
    }
    CFX_TRY(expect(c, ") -> ", "after the parameters"));
    if (strstr(c->schema, ") -> ") + 5 != c->at)  /* in a text: schema.c would stop there */
        return COMPLAIN(c, "a default contains ') -> '");
    return CFX_OK;
}

static cfx_status check_results(checker *c)
{
    const bool many = *c->at == '(';
    c->at += many;
    for (size_t n = 0; !many || *c->at != ')'; n++) {
        if (n > 0)
            CFX_TRY(expect(c, ", ", "between two results"));
        if (n == MOST_RESULTS)
            return COMPLAIN(c, "it has more than %d results", MOST_RESULTS);
        CFX_TRY(check_type(c, true));
        if (!many)
            break;
        if (*c->at == ' ') {  /* a name, which nobody asks for */
            c->at++;
            read_word(c);
        }
    }
    if (many)
        CFX_TRY(expect(c, ")", "after the results"));
    return *c->at ? COMPLAIN(c, "unexpected '%.20s' at the end", c->at) : CFX_OK;
}

cfx_status cfxi_ops_schema_check(const char *schema, cfx_error *err)
{
    checker c = {.at = schema, .schema = schema, .err = err};
    CFX_TRY(check_params(&c));
    return check_results(&c);
}
