/* tables.c - the rows of ops.def and nn.def, and the parameters of their schemas. */
#include "generate.h"

#include <string.h>

const operator_row rows[] = {
#define ROW(id, schema, spellings, host_only)                                                      \
    {__FILE__, __LINE__, #id, schema, spellings, host_only},
#define CFX_OPERATOR(id, schema, spellings, flags, rule) ROW(id, schema, spellings, false)
#define CFX_HOST_ONLY(id, schema, spellings, flags) ROW(id, schema, spellings, true)
#include <cfx/ops.def>
#undef CFX_OPERATOR
#undef ROW
};
const size_t row_count = sizeof rows / sizeof *rows;

const class_row classes[] = {
#define CFX_NN(name, function, schema, make) {#name, #function, schema},
#include <cfx/nn.def>
#undef CFX_NN
};
const size_t class_count = sizeof classes / sizeof *classes;

static const char *const reserved[] = {
#define CFXI_C_WORD(word) word,
#include "ops/c_words.def"
#undef CFXI_C_WORD
};
enum { RESERVED = sizeof reserved / sizeof *reserved };

/* ---- parameters of a schema ---------------------------------------------------------------- */

static bool is_reserved(const char *name)
{
    for (size_t i = 0; i < RESERVED; i++)
        if (strcmp(name, reserved[i]) == 0)
            return true;
    return false;
}

/* Adds "Tensor(a!) self", or "Scalar alpha=1"; "*" is not a parameter. */
static void add_param(params *p, const char *item, size_t size)
{
    const char *equals = memchr(item, '=', size);
    const char *last = equals ? equals : item + size;
    const char *name = last;
    while (name > item && in_word(name[-1]))
        name--;
    if (name == last)
        return;
    if (p->count == MOST_PARAMS)
        fail("a schema has more than %d parameters; raise MOST_PARAMS in tools/generate/generate.h",
             MOST_PARAMS);
    char *out = p->at[p->count].name;
    snprintf(out, sizeof p->at->name - 1, "%.*s", (int)(last - name), name);
    if (is_reserved(out))
        strcat(out, "_");
    p->at[p->count++].optional = equals != NULL;
    p->optional += equals != NULL;
}

/* Splits "(Tensor self, int[2] x=1, str mode='a, b') -> Tensor" at its commas. */
params read_params(const char *schema)
{
    params p = {.count = 0, .optional = 0};
    const char *item = schema + 1;
    int depth = 0;
    bool quoted = false;
    for (const char *at = item; *at && depth >= 0; at++) {
        quoted ^= *at == '\'';
        if (quoted)
            continue;
        depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
        if (depth < 0 || (depth == 0 && *at == ',')) {
            add_param(&p, item, (size_t)(at - item));
            item = at + 1;
        }
    }
    return p;
}
