/* c_name.c - what rows and parameters are called in C: as in the tables, unless that name has
 * another use. Which do, tools/c_api.py knows, which writes operators.h by the same list. */
#include "ops_impl.h"

#include <stdio.h>

typedef struct row_name {
    cfx_operator op;
    const char *name;
} row_name;

#define CFXI_C_WORD(word)
#define CFXI_C_ROW(id, name) {CFX_OPID_##id, name},
static const row_name rows[] = {
#include "c_names.inc"
};
#undef CFXI_C_ROW
#undef CFXI_C_WORD

#define CFXI_C_ROW(id, name)
#define CFXI_C_WORD(word) word,
static const char *const words[] = {
#include "c_names.inc"
};
#undef CFXI_C_ROW
#undef CFXI_C_WORD

bool cfxi_ops_c_name_is_taken(const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(words[i], name, size) == 0 && words[i][size] == '\0')
            return true;
    return false;
}

const char *cfxi_ops_c_name(cfx_operator op, char out[CFX_SPELLING_SIZE])
{
    const char *name = cfx_operator_name(op);
    if (!name)
        return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op) {
            snprintf(out, CFX_SPELLING_SIZE, "%s", rows[i].name);
            return out;
        }
    snprintf(out, CFX_SPELLING_SIZE, "cfx_%s", name);
    return out;
}

const char *cfxi_ops_param_c_name(const cfx_schema_param *param, char out[CFX_SPELLING_SIZE])
{
    const cfx_schema_text name = param->name;
    snprintf(out, CFX_SPELLING_SIZE, "%.*s%s", (int)name.size, name.text,
             cfxi_ops_c_name_is_taken(name.text, name.size) ? "_" : "");
    return out;
}
