/* nn_table.c - the table of the classes of torch.nn: nn.def, read. */
#include "ops_impl.h"

typedef struct class_row {
    const char *name;
    const char *function;
    const char *schema;
} class_row;

static const class_row rows[CFX_NN_COUNT] = {
#define CFX_NN(name, function, schema, make) [CFX_NN_##name] = {#name, #function, schema},
#include <cfx/nn.def>
#undef CFX_NN
};

static const class_row *row_of(cfx_nn nn)
{
    return nn > CFX_NN_NONE && nn < CFX_NN_COUNT ? &rows[nn] : NULL;
}

cfx_nn cfxi_ops_nn_find(const char *name)
{
    static const char home[] = "torch.nn.";
    if (strncmp(name, home, sizeof home - 1) == 0)
        name += sizeof home - 1;
    for (int i = CFX_NN_NONE + 1; i < CFX_NN_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return (cfx_nn)i;
    return CFX_NN_NONE;
}

const char *cfxi_ops_nn_name(cfx_nn nn)
{
    const class_row *row = row_of(nn);
    return row ? row->name : NULL;
}

const char *cfxi_ops_nn_function(cfx_nn nn)
{
    const class_row *row = row_of(nn);
    return row ? row->function : NULL;
}

const char *cfxi_ops_nn_schema(cfx_nn nn)
{
    const class_row *row = row_of(nn);
    return row ? row->schema : NULL;
}

bool cfxi_ops_nn_param(cfx_nn nn, size_t i, cfx_schema_param *param)
{
    const class_row *row = row_of(nn);
    return row && cfxi_ops_schema_param(row->schema, i, param);
}
