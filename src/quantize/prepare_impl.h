/* prepare_impl.h - what fusing, preparing and converting share: rows, and facts about nodes. */
#ifndef CFXI_QUANTIZE_PREPARE_IMPL_H
#define CFXI_QUANTIZE_PREPARE_IMPL_H

#include "analysis/analysis_impl.h"
#include "ops/ops_impl.h"
#include "quantize_impl.h"

#include <cfx/quantize.h>

#include <stdio.h>

enum { CFXI_QUANTIZE_MAX_PATH = 1000 };

/* A row of quantize.def. */
typedef enum cfxi_quantize_role {
    CFXI_QUANTIZE_NONE,
    CFXI_QUANTIZE_OWN,
    CFXI_QUANTIZE_SHARE,
    CFXI_QUANTIZE_COUNT,
    CFXI_QUANTIZE_FIXED,
    CFXI_QUANTIZE_TAKE  /* only of backends: the inputs are observed, and the result is not */
} cfxi_quantize_role;
enum {
    CFXI_QUANTIZE_STATIC = 1,
    CFXI_QUANTIZE_DYNAMIC = 2,
    CFXI_QUANTIZE_LAYER = 4,
    CFXI_QUANTIZE_RECURRENT = 8,
    CFXI_QUANTIZE_WEIGHTS = CFXI_QUANTIZE_LAYER | CFXI_QUANTIZE_RECURRENT
};

typedef struct cfxi_quantize_row {
    const char *spellings;
    uint8_t role;
    uint8_t modes;
} cfxi_quantize_row;

/* What is known of a node. */
typedef struct cfxi_quantize_facts {
    const cfxi_quantize_row *row;   /* NULL: it is not quantized */
    const cfx_qconfig *config;      /* NULL: it stays float */
    cfx_node *tail;                 /* the call that counts as one with it, or NULL */
    cfx_node *norm;                 /* in training: the batch-norm that becomes part of it */
    cfx_operator op;                /* never the in-place one */
    bool is_tail;                   /* another node's tail or norm */
    bool number;                    /* its value is not a tensor */
    bool whole;                     /* it is of integers or truth values: a tensor, or a number */
    size_t kind;                    /* the number of what it calls, in the backend */
    const struct cfxi_quantize_pattern *pattern;  /* of the backend, or NULL */
    cfx_node *head;                 /* of a tail: the first call */
    bool product;                   /* with a matrix of the model: becomes a linear layer */
} cfxi_quantize_facts;

/* An observer that was inserted, or an input that is quantized already. */
typedef struct cfxi_observed {
    cfx_node *next;    /* another observer of the same value */
    const cfx_quantize_spec *weight;  /* what it was made for, if that is a weight; or NULL */
    cfx_dtype dtype;
    bool each_run;
} cfxi_observed;

typedef struct cfxi_prepare {
    cfx_graph *g;                    /* the graph or region at hand */
    const cfx_module_tree *modules;
    const cfx_quantize_host *host;
    const cfx_qrules *rules;
    const cfx_prepare_options *opts;
    const cfx_allocator *allocator;
    cfxi_hash_map facts;             /* cfx_node * -> cfxi_quantize_facts */
    cfxi_hash_map observed;          /* cfx_node * -> cfxi_observed */
    cfxi_pointers first;             /* a value's node -> the first observer of it */
    cfxi_hash_map calls;             /* identity of a module -> size_t: how many nodes call it */
    cfxi_quantize_order order;       /* of the calls of the graph at hand */
    cfxi_pointers numbers;           /* inputs of regions that are not tensors: themselves */
    cfxi_pointers wholes;            /* inputs that are tensors of integers: themselves */
    size_t next;                     /* the number of the next observer */
    cfx_error *err;                  /* never NULL */
} cfxi_prepare;

/* ---- which nodes (patterns.c) --------------------------------------------------------------- */

/* The row of an operator, in place or not; NULL if there is none. */
const cfxi_quantize_row *cfxi_quantize_find_row(cfx_operator op);
/* Whether a call is spelled by one of the words. */
cfx_status cfxi_quantize_is_spelled(const cfx_node *n, const cfx_module_tree *modules,
                                    const char *words, bool *is, cfx_error *err);
/* Fills in p->facts for the nodes of p->g. */
cfx_status cfxi_quantize_look(cfxi_prepare *p);
/* Why a node with this row and configuration stays float; NULL if it does not. `quietly`: nobody
 * expects otherwise. */
const char *cfxi_quantize_refusal(const cfxi_prepare *p, const cfxi_quantize_facts *f,
                                  bool *quietly);
static inline cfxi_quantize_facts *cfxi_quantize_facts_of(const cfxi_prepare *p, const cfx_node *n)
{
    return cfxi_base_map_find(&p->facts, n, sizeof(cfxi_quantize_facts));
}

/* ---- what is not a tensor of floats (whole_values.c) ---------------------------------------- */

/* Whether the value is certainly not a tensor: a size, a number, a tuple of them. */
bool cfxi_quantize_is_number(const cfxi_prepare *p, const cfx_node *n, cfx_operator op);
/* Whether the value, which is a number or not, is certainly of integers or truth values. */
bool cfxi_quantize_is_whole(const cfxi_prepare *p, const cfx_node *n, cfx_operator op, bool number);

/* Fails if the weight at `path` is not float32. (prepare.c) */
cfx_status cfxi_quantize_check_dtype(const cfxi_prepare *p, const char *path);
/* Makes observers for the matrices of a recurrent module. (reference_recurrent.c) */
cfx_status cfxi_quantize_observe_recurrent(cfxi_prepare *p, const cfx_node *n,
                                           const cfx_qconfig *config);

/* ---- products with matrices of the model (matrices.c) -------------------------------------- */

/* Whether a node of p->g computes x @ w, or b + x @ w, of parameters w and b. */
bool cfxi_quantize_is_layer(const cfxi_prepare *p, const cfx_node *n, cfx_operator op);
/* Makes a call of F.linear of such a node. */
cfx_status cfxi_quantize_make_layer(cfxi_prepare *p, cfx_node *n);
/* The get_attr whose matrix a node transposes; NULL if it does something else. */
cfx_node *cfxi_quantize_transposed(const cfx_node *n);

/* ---- parts of a call ------------------------------------------------------------------------ */

static inline const char *cfxi_quantize_path(const cfx_node *n)
{
    return n->callee->ref->name->data;
}
/* The path of a member: "fc.weight_scale"; false if it is too long. */
static inline bool cfxi_quantize_join(char out[CFXI_QUANTIZE_MAX_PATH], const char *base,
                                      const char *between, const char *name)
{
    int n = snprintf(out, CFXI_QUANTIZE_MAX_PATH, "%s%s%s", base, between, name);
    return n > 0 && n < CFXI_QUANTIZE_MAX_PATH;
}
static inline bool cfxi_quantize_is_half(const cfx_quantize_spec *spec)
{
    return spec->dtype == CFX_DTYPE_FLOAT16 && spec->observer != CFX_OBSERVE_NOTHING;
}
/* Whether ranges are chosen in each run, or values rounded to float16 there. */
static inline bool cfxi_quantize_each_run(const cfx_quantize_spec *spec)
{
    return spec->observer == CFX_OBSERVE_EACH_RUN;
}
/* Makes a node a call of the function with these arguments, which are given away, and no others.
 * (reference_layers.c) */
cfx_status cfxi_quantize_set_call(cfx_node *n, const char *function, const cfx_value *args,
                                  size_t count, cfx_error *err);
/* Whether `n` calls an observer, and what that gives; fails as the host does. (reference.c) */
cfx_status cfxi_quantize_observer(const cfx_quantize_host *host, const cfx_node *n, bool *is,
                                  cfx_quantize_spec *spec, cfx_error *err);
/* Whether a node calls quantize or dequantize of any kind, or an integer operator. */
bool cfxi_quantize_is_quantized(cfx_operator op);

#endif
