/* nn_impl.h - what the files of nn share: a module of torch.nn in the making.
 *
 *     nn.c        arguments: bound, converted, kept as attributes   nn_init.c  weights
 *     nn_layers.c linear, embeddings, convolution                   nn_norm.c  normalisation
 *     nn_plain.c  classes without weights, losses                   nn_rnn.c   recurrent
 *     nn_attention.c   attention, layers of transformers
 *
 * Makers are written like users' programs: what fails makes the scope fail, with the user's line,
 * and what comes after it does nothing.
 */
#ifndef CFXI_NN_IMPL_H
#define CFXI_NN_IMPL_H

#include "capture/capture_impl.h"

enum { CFXI_MOST_NN_PARAMS = 16 };

typedef struct cfxi_making {
    cfx_at at;
    cfx_nn nn;
    cfx_module *m;
    cfx_dtype dtype;                       /* of its weights */
    size_t n;
    cfx_datum args[CFXI_MOST_NN_PARAMS];   /* by the constructor's parameters, none INVALID */
} cfxi_making;

/* Adds what a class has beside its arguments. */
typedef void cfxi_maker(cfxi_making *k);
#define CFX_NN(name, function, schema, make) cfxi_maker cfxi_nn_make_##make;
#include <cfx/nn.def>
#undef CFX_NN

/* ---- arguments (nn.c) ---------------------------------------------------------------------- */

/* The argument of this name, borrowed; INVALID if the class has no such parameter. */
cfx_datum cfxi_nn_arg(const cfxi_making *k, const char *name);
int64_t cfxi_nn_int(const cfxi_making *k, const char *name);       /* 0 if it is none */
bool cfxi_nn_flag(const cfxi_making *k, const char *name);         /* false if it is none */
double cfxi_nn_float(const cfxi_making *k, const char *name);      /* 0 if it is none */
const char *cfxi_nn_text(const cfxi_making *k, const char *name);  /* "" if it is none */
bool cfxi_nn_is_none(const cfxi_making *k, const char *name);
/* The numbers of a tuple; at most `most` of them. Returns how many. */
size_t cfxi_nn_ints(const cfxi_making *k, const char *name, int64_t *out, size_t most);

/* Makes the scope fail: "model.c:3: torch.nn.Linear: " and the message. */
void cfxi_nn_fail(const cfxi_making *k, const char *format, ...) CFX_PRINTF(2, 3);
/* Fails unless the argument, or each of its items, is at least `least`. */
void cfxi_nn_at_least(const cfxi_making *k, const char *name, int64_t least);
/* Fails unless the text is one of `words`, NULL at the end. */
void cfxi_nn_one_of(const cfxi_making *k, const char *name, const char *const *words);
void cfxi_nn_probability(const cfxi_making *k, const char *name);

/* Sets an attribute. The datum is taken over; INVALID is what failed to be made for want of memory.
 */
void cfxi_nn_set(cfxi_making *k, const char *name, cfx_datum d);
void cfxi_nn_set_text(cfxi_making *k, const char *name, const char *text);
/* A tuple of numbers. */
cfx_datum cfxi_nn_tuple(const cfxi_making *k, const int64_t *items, size_t n);

/* Makes a part of another class and adds it. */
cfx_module *cfxi_nn_part(cfxi_making *k, const char *name, cfx_nn nn, const cfx_var *args,
                         size_t n);
/* An empty module of a class, which the scope does not own yet; NULL, and the scope fails. */
cfx_module *cfxi_nn_new(cfx_at at, cfx_nn nn);

/* ---- weights (nn_init.c) ------------------------------------------------------------------- */

typedef struct cfxi_init {
    enum { CFXI_INIT_FILL, CFXI_INIT_UNIFORM, CFXI_INIT_NORMAL } kind;
    double value;  /* to fill with; uniform between -value and value; the standard deviation */
} cfxi_init;

static inline cfxi_init cfxi_nn_init_fill(double value)
{
    return (cfxi_init){CFXI_INIT_FILL, value};
}
static inline cfxi_init cfxi_nn_uniform(double bound)
{
    return (cfxi_init){CFXI_INIT_UNIFORM, bound};
}
static inline cfxi_init cfxi_nn_normal(double std) { return (cfxi_init){CFXI_INIT_NORMAL, std}; }
/* Between -1/sqrt(n) and 1/sqrt(n); all zero if n is. */
cfxi_init cfxi_nn_uniform_of(double n);
/* As Xavier Glorot proposed, for a weight of these sizes. */
cfxi_init cfxi_nn_xavier_uniform(const int64_t *sizes, size_t ndim);
cfxi_init cfxi_nn_xavier_normal(const int64_t *sizes, size_t ndim);
/* How many inputs an output of such a weight has. */
double cfxi_nn_fan_in(const int64_t *sizes, size_t ndim);

/* Writes over the elements of `t`. */
void cfxi_nn_fill(cfx_at at, cfx_tensor *t, cfxi_init init);
/* Adds a parameter or a buffer of the module's type. */
void cfxi_nn_parameter(cfxi_making *k, const char *name, const int64_t *sizes, size_t ndim,
                       cfxi_init init);
void cfxi_nn_buffer(cfxi_making *k, const char *name, const int64_t *sizes, size_t ndim,
                    cfxi_init init);
/* Adds one that is None. */
void cfxi_nn_no_parameter(cfxi_making *k, const char *name);
void cfxi_nn_no_buffer(cfxi_making *k, const char *name);

#endif
