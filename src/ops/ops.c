/* ops.c - the operator table: names, and what a node calls. */
#include "../ir/graph_impl.h"

#include <cfx/ops.h>

typedef struct operator_row {
    const char *name;
    size_t regions;
} operator_row;

static const operator_row rows[CFX_OPERATOR_COUNT] = {
    [CFX_OPID_NONE] = {NULL, 0},
#define CFX_OPERATOR(id, name, regions) [CFX_OPID_##id] = {name, regions},
#include <cfx/ops.def>
#undef CFX_OPERATOR
};

static const operator_row *row_of(cfx_operator op)
{
    return &rows[(unsigned)op < CFX_OPERATOR_COUNT ? op : CFX_OPID_NONE];
}

const char *cfx_operator_name(cfx_operator op) { return row_of(op)->name; }
size_t cfx_operator_regions(cfx_operator op) { return row_of(op)->regions; }

cfx_operator cfx_operator_parse(const char *name)
{
    return (cfx_operator)cfxi_operator_row(name, strlen(name));
}

cfx_operator cfx_node_operator(const cfx_node *n) { return (cfx_operator)cfxi_node_operator(n); }
