/* lower_library.c - calls of operators of a library: the target stays, the arguments are bound by
 * the schema.
 *
 *     %y = call_function[target=mylib.swish](beta=2.0, x=%x)
 *         =>
 *     %y = call_function[target=mylib.swish](%x, 2.0)
 *
 * A lowered call has all arguments by position, so those behind a '*' are taken so, too: lowering
 * it again changes nothing.
 */
#include "lower_impl.h"

#include <stdio.h>

static bool misfit(cfxi_lowered *c, const char *format, const char *text, size_t size)
{
    snprintf(c->why, sizeof c->why, format, (int)(size < 60 ? size : 60), text);
    return false;
}

static bool bind(const cfx_node *n, cfxi_lowered *c)
{
    const size_t args = cfx_node_num_args(n);
    if (args > c->n) {
        snprintf(c->why, sizeof c->why, "too many arguments: expected at most %zu, got %zu",
                 c->n, args);
        return false;
    }
    for (size_t i = 0; i < args; i++)
        c->args[i] = n->args->items[i];
    for (uint32_t i = 0; n->kwargs && i + 1 < n->kwargs->size; i += 2) {
        const cfx_str *key = n->kwargs->items[i].as.str;
        const size_t at = cfxi_ops_schema_find_param(c->custom->schema, key->data, key->size);
        if (at >= c->n)
            return misfit(c, "it has no parameter '%.*s'", key->data, key->size);
        if (c->args[at].kind != CFX_KIND_INVALID)
            return misfit(c, "argument given twice: '%.*s'", key->data, key->size);
        c->args[at] = n->kwargs->items[i + 1];
    }
    return true;
}

static bool fit(const cfxi_lower *l, cfxi_lowered *c)
{
    cfx_schema_param param;
    for (size_t i = 0; i < c->n && cfxi_ops_schema_param(c->custom->schema, i, &param); i++) {
        const bool optional = param.type[strlen(param.type) - 1] == '?';
        if (c->args[i].kind == CFX_KIND_INVALID) {
            if (!c->defaults[i].text && !optional)
                return misfit(c, "missing argument '%.*s'", param.name.text, param.name.size);
        } else if (!cfxi_lower_fits(l, param.type, c->args[i], false)) {
            misfit(c, "invalid argument for '%.*s', which must be ",
                   param.name.text, param.name.size);
            strncat(c->why, param.type, sizeof c->why - strlen(c->why) - 1);
            return false;
        }
    }
    return true;
}

cfx_status cfxi_lower_custom(cfxi_lower *l, cfx_node *n, const cfx_custom_operator *f)
{
    cfxi_lowered c;
    cfx_schema_param param;
    cfxi_lower_lowered_begin(&c, CFX_OPID_NONE);
    c.custom = f;
    for (; c.n < CFXI_MOST_PARAMS && cfxi_ops_schema_param(f->schema, c.n, &param); c.n++) {
        c.args[c.n] = cfx_value_invalid();
        c.defaults[c.n] = param.value;
    }
    if (!bind(n, &c) || !fit(l, &c))
        return cfxi_lower_refuse(l, n, "%s", c.why);
    if (!f->kernel)
        CFX_TRY(cfxi_lower_refuse(l, n, "the operator '%.100s' has no kernel", f->name));
    return cfxi_lower_set_call(l, n, &c);
}
