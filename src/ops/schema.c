/* schema.c - the schema language: parameters and results of an operator.
 *
 *     (Tensor(a!) self, Tensor[] rest, *, Scalar alpha=1, str mode='a, b') -> (Tensor(a!), int)
 *
 * Schemas are read where they stand each time they are asked for: a row is a hundred bytes.
 */
#include "ops_impl.h"

#include <stdint.h>

cfx_schema_text cfxi_ops_schema_next(const char **cursor)
{
    const char *at = *cursor;
    while (*at == ' ')
        at++;
    cfx_schema_text item = {at, 0};
    int depth = 0;
    char quote = '\0';
    for (; *at; at++) {
        if (quote)
            quote = *at == quote ? '\0' : quote;
        else if (*at == '\'')
            quote = *at;
        else if (*at == '(' || *at == '[')
            depth++;
        else if ((*at == ')' || *at == ']') && --depth < 0)
            break;
        else if (*at == ',' && depth == 0)
            break;
    }
    item.size = (size_t)(at - item.text);
    *cursor = *at == ',' ? at + 1 : at;
    return item;
}

/* The first `c` outside of brackets; `from_end` the last. `size` if there is none. */
static size_t find_outside(cfx_schema_text item, char c, bool from_end)
{
    size_t found = item.size;
    int depth = 0;
    for (size_t i = 0; i < item.size; i++) {
        char here = item.text[i];
        depth += (here == '(' || here == '[') - (here == ')' || here == ']');
        if (here == c && depth == 0) {
            found = i;
            if (!from_end)
                break;
        }
    }
    return found;
}

/* "Tensor(a -> *)[]" is a Tensor[] with the letter a. */
static void read_type(cfx_schema_text type, cfx_schema_param *param)
{
    size_t used = 0;
    bool inside = false;
    for (size_t i = 0; i < type.size; i++) {
        char c = type.text[i];
        if (c == '(') {
            inside = true;
            param->alias = i + 1 < type.size ? type.text[i + 1] : '\0';
        }
        param->writes = param->writes || (inside && c == '!');
        if (!inside && used + 1 < sizeof param->type)
            param->type[used++] = c;
        inside = inside && c != ')';
    }
    param->type[used] = '\0';
}

static void read_item(cfx_schema_text item, cfx_schema_param *param)
{
    *param = (cfx_schema_param){.variadic = item.text[0] == '*'};
    item.text += param->variadic;
    item.size -= param->variadic;
    size_t equals = find_outside(item, '=', false);
    if (equals < item.size)
        param->value = (cfx_schema_text){item.text + equals + 1, item.size - equals - 1};
    item.size = equals;
    size_t blank = find_outside(item, ' ', true);
    if (blank < item.size)
        param->name = (cfx_schema_text){item.text + blank + 1, item.size - blank - 1};
    item.size = blank;
    read_type(item, param);
}

/* Where in a list of parameters or results the reader is. */
typedef struct reader {
    const char *at;
    bool keyword_only;
} reader;

/* The text of the next parameter or result; empty at the end. */
static cfx_schema_text next_item(reader *r)
{
    cfx_schema_text item = cfxi_ops_schema_next(&r->at);
    if (!cfxi_ops_text_is(item, "*", 1))
        return item;
    r->keyword_only = true;
    return cfxi_ops_schema_next(&r->at);
}

static bool read_next(reader *r, cfx_schema_param *param)
{
    const cfx_schema_text item = next_item(r);
    if (item.size == 0)
        return false;
    read_item(item, param);
    param->keyword_only = r->keyword_only;
    return true;
}

static size_t count_items(const char *list)
{
    reader r = {.at = list};
    size_t n = 0;
    while (next_item(&r).size > 0)
        n++;
    return n;
}

/* Item `i` of a list; false if it has fewer. */
static bool read_list(const char *list, size_t i, cfx_schema_param *param)
{
    reader r = {.at = list};
    for (; i > 0; i--)
        if (next_item(&r).size == 0)
            return false;
    return read_next(&r, param);
}

static const char *params_of(const char *schema) { return schema ? schema + 1 : ""; }

/* "-> Tensor" is a list of one; "-> (Tensor, Tensor)" stands in parentheses. */
static const char *results_of(const char *schema)
{
    const char *arrow = schema ? strstr(schema, ") -> ") : NULL;
    if (!arrow)
        return "";
    return arrow + 5 + (arrow[5] == '(');
}

bool cfxi_ops_schema_param(const char *schema, size_t i, cfx_schema_param *param)
{
    return i < SIZE_MAX && read_list(params_of(schema), i, param);
}

bool cfxi_ops_schema_result(const char *schema, size_t i, cfx_schema_param *result)
{
    return i < SIZE_MAX && read_list(results_of(schema), i, result);
}

size_t cfxi_ops_schema_find_param(const char *schema, const char *name, size_t size)
{
    cfx_schema_param param;
    reader r = {.at = params_of(schema)};
    for (size_t i = 0; read_next(&r, &param); i++)
        if (cfxi_ops_text_is(param.name, name, size))
            return i;
    return SIZE_MAX;
}

bool cfxi_ops_schema_writes(const char *schema)
{
    cfx_schema_param param;
    reader r = {.at = params_of(schema)};
    if (!schema || !strchr(schema, '!'))  /* nearly all */
        return false;
    while (read_next(&r, &param))
        if (param.writes)
            return true;
    return false;
}

size_t cfx_operator_num_params(cfx_operator op)
{
    return count_items(params_of(cfx_operator_schema(op)));
}

size_t cfx_operator_num_results(cfx_operator op)
{
    return count_items(results_of(cfx_operator_schema(op)));
}

bool cfx_operator_param(cfx_operator op, size_t i, cfx_schema_param *param)
{
    return cfxi_ops_schema_param(cfx_operator_schema(op), i, param);
}

bool cfx_operator_result(cfx_operator op, size_t i, cfx_schema_param *result)
{
    return cfxi_ops_schema_result(cfx_operator_schema(op), i, result);
}

size_t cfx_operator_find_param(cfx_operator op, const char *name)
{
    return cfxi_ops_schema_find_param(cfx_operator_schema(op), name, strlen(name));
}

size_t cfx_operator_regions(cfx_operator op)
{
    size_t count = 0;
    const char *schema = cfx_operator_schema(op);
    if (!schema || !strstr(schema, "Graph "))  /* nearly all */
        return 0;
    cfx_schema_param param;
    for (size_t i = 0; cfx_operator_param(op, i, &param); i++)
        count += strcmp(param.type, "Graph") == 0;
    return count;
}

/* ---- pairs --------------------------------------------------------------------------------- */

static bool same_params(cfx_operator a, cfx_operator b)
{
    cfx_schema_param p, q;
    for (size_t i = 0;; i++) {
        bool more = cfx_operator_param(a, i, &p);
        if (more != cfx_operator_param(b, i, &q))
            return false;
        if (!more)
            return true;
        /* dropout's first parameter is called `input`, dropout_'s `self` */
        if (i > 0 && !(p.name.size == q.name.size &&
                       memcmp(p.name.text, q.name.text, p.name.size) == 0))
            return false;
    }
}

static cfx_operator by_id(const char *id, size_t size, cfx_operator twin)
{
    cfxi_op_name found = cfxi_ops_op_lookup(id, size);
    return found.op && !found.spelling && same_params(found.op, twin) ? found.op : CFX_OPID_NONE;
}

cfx_operator cfx_operator_in_place(cfx_operator op)
{
    char id[CFX_SPELLING_SIZE];
    const char *name = cfx_operator_name(op);
    size_t size = name ? strlen(name) : 0;
    if (size == 0 || size + 1 >= sizeof id || name[size - 1] == '_')
        return CFX_OPID_NONE;
    memcpy(id, name, size);
    id[size] = '_';
    return by_id(id, size + 1, op);
}

cfx_operator cfx_operator_functional(cfx_operator op)
{
    const char *name = cfx_operator_name(op);
    size_t size = name ? strlen(name) : 0;
    return size > 1 && name[size - 1] == '_' ? by_id(name, size - 1, op) : CFX_OPID_NONE;
}
