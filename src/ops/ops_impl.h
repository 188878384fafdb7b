/* ops_impl.h - what the files of src/ops share: rows, and where a spelling stands in its row. */
#ifndef CFXI_OPS_IMPL_H
#define CFXI_OPS_IMPL_H

#include "../base/base_impl.h"

#include <cfx/ops.h>

/* A name's place in the table. `spelling` points into the row, at its first character; NULL if the
 * name is the row's id. It ends with a blank, the end of the string, or at '(': then its own
 * parameters follow. */
typedef struct cfxi_op_name {
    cfx_operator op;
    const char *spelling;
} cfxi_op_name;

/* By any spelling or id, full or short; op is NONE if there is no such name. (ops.c) */
cfxi_op_name cfxi_op_lookup(const char *name, size_t size);
cfxi_op_name cfxi_op_lookup_method(const char *name, size_t size);

/* Splits a list of the schema language at its commas: the next item from *cursor, without blanks
 * around it; an empty item at the end. (schema.c) */
cfx_schema_text cfxi_schema_next(const char **cursor);

/* The parameter that an argument of a call goes to: by its place, or by its keyword if that is not
 * NULL. SIZE_MAX if it is none of the row's. (node.c) */
size_t cfxi_node_param_of(const cfx_node *n, size_t place, const char *keyword);

static inline bool cfxi_text_is(cfx_schema_text a, const char *text, size_t size)
{
    return a.size == size && memcmp(a.text, text, size) == 0;
}

#endif
