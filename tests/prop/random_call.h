/* random_call.h - seeded random arguments for an operator, from its schema.
 *
 * A good share of the calls is valid: tensors of one call mostly have one type and shapes that fit
 * (by the patterns of random_shapes.c where the schema does not tell), numbers are small and by the
 * names of their parameters. The rest is wrong in every way a caller can be wrong. The same seed
 * gives the same call, so that it can be made anew for every runtime that computes it.
 */
#ifndef CFX_TESTS_RANDOM_CALL_H
#define CFX_TESTS_RANDOM_CALL_H

#include "random_graph.h"

#include <cfx/embed/ops.h>
#include <cfx/runtime.h>

enum { RANDOM_CALL_PARAMS = 28, RANDOM_CALL_BLOCKS = 96, RANDOM_CALL_LETTERS = 26 };

/* Memory of a tensor that was made for the arguments, which is kept: it need not be one of them. */
typedef struct random_block {
    cfx_tensor *tensor;
    char *data;
    size_t size;
    size_t param;
} random_block;

typedef struct random_call {
    cfx_operator op;
    cfx_datum args[RANDOM_CALL_PARAMS];
    size_t n;
    bool tame;  /* finite small numbers: results can be compared */
    random_block blocks[RANDOM_CALL_BLOCKS];
    size_t num_blocks;

    /* what the arguments have in common, while they are made */
    random_source r;
    cfx_dtype dtype;
    int64_t size[CFX_MAX_DIMS];
    size_t ndim;
    int64_t letters[RANDOM_CALL_LETTERS];
    const char *pattern;  /* of random_shapes.c; what is left of it */
    size_t param;
} random_call;

/* False if the row takes what cannot be made up: a region. */
bool random_call_possible(cfx_operator op);
void random_call_new(random_call *c, uint64_t seed, cfx_operator op);
void random_call_free(random_call *c);
void random_call_print(const random_call *c);

/* The shapes that fit a row: see random_shapes.c. NULL if it has no pattern. */
const char *random_shapes_of(cfx_operator op);
/* A size of a pattern ("4H", "12", "C"), which it moves past. */
int64_t random_shapes_size(const random_call *c, const char **at);
/* What the pattern says that the parameter is ("groups=1"), or NULL. */
const char *random_shapes_value(const char *pattern, cfx_schema_text name);

#endif
