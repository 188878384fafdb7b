/* policy.c - the rows of policy.def, by name. */
#include "evaluate_impl.h"

/* Whether a row is for a function: "math.*" for all of math. */
static bool is_for(const char *row, const char *name)
{
    const size_t n = strlen(row);
    if (row[n - 1] != '*')
        return strcmp(row, name) == 0;
    return strncmp(row, name, n - 1) == 0 && !strchr(name + n - 1, '.');
}

cfx_script_rule cfx_script_rule_of(const char *name)
{
    static const struct {
        const char *name;
        cfx_script_rule rule;
    } rows[] = {
#define CFX_RECORD(name, rule) {name, CFX_RULE_##rule},
#include <cfx/embed/policy.def>
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_for(rows[i].name, name))
            return rows[i].rule;
    return CFX_RULE_NEVER;
}

bool cfx_script_is_fact(const char *name)
{
    static const char *const names[] = {
#define CFX_FACT(name) name,
#include <cfx/embed/policy.def>
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}
