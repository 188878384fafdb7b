/* backend_impl.h - fast kernels behind one interface.
 *
 *     cfxi_problem   what is to be computed: sizes, strides, which operand is constant, and what
 *                    happens to each element of the result before it is stored (posts)
 *     cfxi_backend   answers whether it can, at what cost and with how much memory (query), takes
 *                    the constants and packs them (prepare), and then runs any number of times
 *     cfxi_kernel    a problem that is prepared: immutable, used by any number of threads
 *
 * There is no second way to call a fast kernel: built-in ones and oneDNN's are back ends alike.
 */
#ifndef CFXI_BACKEND_IMPL_H
#define CFXI_BACKEND_IMPL_H

#include "chain.h"

#include "runtime/kernels/conv/conv_impl.h"
#include "runtime/kernels/linalg/attention_impl.h"
#include "runtime/kernels/quantize/byte_rows.h"
#include "runtime/kernels/tiles/bytes.h"
#include "runtime/kernels/tiles/dots.h"

enum {
    CFXI_MOST_POSTS = 6,
    CFXI_LEAST_DEPTHWISE = 4  /* channels of what is a problem of its own */
};

typedef enum cfxi_post_kind {
    CFXI_POST_ADD,    /* + an operand of the result's shape */
    CFXI_POST_MUL,    /* * an operand of the result's shape */
    CFXI_POST_CLAMP,  /* between two numbers; NaN stays */
    CFXI_POST_FN,     /* an element-wise function of one argument */
    CFXI_POST_CHAIN   /* several functions; the chain's input 0 is the element */
} cfxi_post_kind;

/* What happens to each element of the result, in order. */
typedef struct cfxi_post {
    cfxi_post_kind kind;
    size_t operand;     /* ADD, MUL: which of cfxi_run.operands */
    int64_t rows[3];    /* ADD, MUL: its strides in elements: of a product, row; of a convolution,
                           image, line and pixel. Columns or channels lie side by side */
    float low, high;    /* CLAMP */
    cfxi_fn fn;         /* FN */
    cfxi_scalars s;
    const cfxi_chain *chain;  /* CHAIN: lives as long as the kernel. Its other inputs have the
                                 result's shape, and lie as `rows` says */
    size_t operands[CFXI_CHAIN_INPUTS];  /* CHAIN: which of cfxi_run.operands; [0] is not used */
} cfxi_post;

typedef enum cfxi_problem_kind {
    CFXI_PRODUCT, CFXI_CONVOLUTION, CFXI_CHAIN, CFXI_ATTENTION, CFXI_LSTM, CFXI_WEIGHT_ONLY,
    CFXI_MATMUL, CFXI_DYNAMIC
} cfxi_problem_kind;

/* A product or convolution of 8-bit integers (bytes.h says what is computed): x and weights, or the
 * operands of a matmul, are uint8 or int8, the result is float32 or bytes. Posts follow floats
 * alone. */
typedef struct cfxi_integers {
    bool used;
    bool x_signed, w_signed;
    int32_t x_zero;      /* which padding has, too */
    cfxi_byte_end end;
    size_t other;        /* end.adds: which of cfxi_run.operands, */
    int64_t other_rows[3];  /* and its strides, as those of a post */
    int32_t w_zero;      /* MATMUL: of its second operand, */
    int64_t batches;     /* and how many products it is */
    bool each_run;       /* PRODUCT: zero point and scale of x are those of cfxi_run; x_zero is 1,
                            and factors are without the scale */
} cfxi_integers;

/* float32, but for `integers`. Strides are in elements.
 *   PRODUCT      out[m][n] = sum over k of x[m][k] * w[k][n] + bias[n]; k is contiguous in x, n in
 *                out
 *                Where `scaled`, x[m][k] becomes clamp(x[m][k] * factors[m / rows][k] + shifts[k],
 *                low, high) first
 *   CONVOLUTION  of images whose channels lie side by side (channels last), in out and, unless they
 *                are few, in x, with weights of any strides: `conv`, without the addresses
 *   CHAIN        element-wise functions of tensors of any strides, broadcast; m elements. Where
 *                `quantizes`, the results become 8-bit integers as quantize_per_tensor makes them
 *   ATTENTION    softmax(scale q k^T + mask) v of tensors whose rows lie side by side, batches
 *                broadcast: m queries of all batches, n keys; k is the size of a query and of a
 *                value together
 *   MATMUL       of integers: matrices of any strides in batches, which are broadcast. One factor
 *   LSTM         layers in one direction, steps first; all tensors are contiguous: `lstm`
 *   DYNAMIC      a PRODUCT of floats, computed with integers: `integers`. The scale and zero point
 *                of x are chosen in each run: `dynamic`
 *   WEIGHT_ONLY  a product whose w[k][n] = (code - zero point) * scale of the group that k is in:
 *                `weight_only`
 * With the precision BF16, products and convolutions round both operands to bfloat16; but not those
 * of each channel alone, which read memory for most of their time. */
typedef struct cfxi_onednn cfxi_onednn;
typedef struct cfxi_lstm {
    int64_t steps, batch, input, hidden, layers;
} cfxi_lstm;
typedef struct cfxi_weight_only_form {
    int bits;       /* of a code: 8 or 4 */
    int64_t group;  /* elements of k with one scale; the last group may have fewer */
    bool zeros;     /* there are zero points */
    bool positive;  /* codes of 8 bits are uint8 */
} cfxi_weight_only_form;
typedef struct cfxi_quantizing {
    bool used;
    cfxi_integer_quantizing by;
} cfxi_quantizing;
typedef struct cfxi_problem {
    cfxi_problem_kind kind;
    cfx_isa isa;
    cfx_precision precision;  /* BF16: x and weights are rounded first */
    cfxi_bf16 bf16;           /* what there is for that, */
    cfxi_int8 int8;           /* and for integers */
    unsigned threads;
    cfxi_onednn *onednn;  /* the library, where it is loaded; else NULL. Borrowed; a kernel that
                             uses it keeps it */
    int64_t m, n, k;
    int64_t x_row, out_row;
    int64_t w_k, w_n;
    struct {
        bool scaled;
        bool known;      /* factors and shifts are constants, the same for all rows */
        size_t operand;  /* else: which of cfxi_run.operands: k factors side by side; no shifts */
        int64_t rows;    /* of x, that have the same factors, */
        int64_t step;    /* and from these to the next ones */
        float low, high; /* NaN stays */
    } factors;
    cfxi_conv conv;
    cfxi_integers integers;
    const cfxi_chain *chain;  /* CHAIN: not needed after it is prepared */
    cfxi_quantizing quantizes;
    double scale;             /* ATTENTION */
    bool causal;
    cfxi_lstm lstm;
    cfxi_weight_only_form weight_only;
    struct {
        int64_t low, high;  /* integers that x becomes */
        float eps;          /* the least scale */
    } dynamic;
    bool has_bias;
    size_t num_posts;
    cfxi_post posts[CFXI_MOST_POSTS];
} cfxi_problem;

/* Whether it is a convolution of each channel alone, of which there are some. */
static inline bool cfxi_backend_is_depthwise(const cfxi_problem *p)
{
    const cfxi_conv *c = &p->conv;
    return p->kind == CFXI_CONVOLUTION && c->groups >= CFXI_LEAST_DEPTHWISE &&
           c->in_channels == 1 && c->out_channels == 1;
}

/* Whether its operands are rounded to bfloat16. */
static inline bool cfxi_backend_rounds(const cfxi_problem *p)
{
    return p->precision == CFX_PRECISION_BF16 && !cfxi_backend_is_depthwise(p) &&
           (p->kind == CFXI_PRODUCT || p->kind == CFXI_CONVOLUTION);
}

/* The constants of a problem; `scale` (one for each column or output channel, or NULL) multiplies
 * the weights: a norm that follows. Of integers, `w` are bytes, `scale` are the factors of sums,
 * and the bias is in units of the result. */
typedef struct cfxi_constants {
    const float *w;
    const int32_t *w_zero;  /* of integers: one for each column, or NULL */
    const float *bias;  /* or NULL */
    const float *scale;
    struct cfxi_packs *packs;  /* weights that were packed before, and those packed now; or NULL */
    cfx_runtime *rt;  /* whose threads pack; NULL: this one alone */
    const float *factors, *shifts;  /* of x; k of each */
    /* ATTENTION: the mask, if it does not change. LSTM: h and c, if they do not change, and of each
     * layer the weights of input and state and their biases. WEIGHT_ONLY: the codes, bytes [n, k]
     * or two in a byte [n, (k + 1) / 2]; scales, float32, and zero points: one, [n] or
     * [n, groups]. What is not there is NULL. */
    cfx_tensor *const *tensors;
} cfxi_constants;

/* Operands of one run; where the problem has bytes, these are some. */
typedef struct cfxi_run {
    cfx_runtime *rt;
    const float *x;
    float *out;
    const float *operands[CFXI_MOST_OPERANDS];    /* of posts */
    /* Of a CHAIN or MATMUL: its inputs. Of an ATTENTION: q, k, v, and the mask if it is not
     * constant. Of an LSTM: where h and c go, then h and c, of those that are not constant. */
    cfx_tensor *tensors[CFXI_CHAIN_INPUTS];
    cfx_tensor *out_tensor;  /* of all but products and convolutions */
    double x_scale;          /* of integers.each_run */
    int32_t x_zero;
} cfxi_run;

typedef struct cfxi_kernel cfxi_kernel;

typedef struct cfxi_backend {
    const char *name;
    /* Whether it solves the problem; *cost becomes an estimate of the time in nanoseconds. */
    bool (*query)(const cfxi_problem *p, double *cost);
    /* Packs the constants, which are not needed afterwards. NULL with *err set. The kernel may be
     * that of another back end, which suits these constants better: k->backend runs it. */
    cfxi_kernel *(*prepare)(const cfxi_problem *p, const cfxi_constants *c,
                            const cfx_allocator *allocator, cfx_error *err);
    cfx_status (*run)(const cfxi_kernel *k, const cfxi_run *r, cfx_error *err);
    void (*release)(cfxi_kernel *k);
    /* "conv 3x3, tiles of 7x64" */
    void (*print)(const cfxi_kernel *k, cfxi_out *out);
} cfxi_backend;

/* What each prepared kernel begins with. */
struct cfxi_kernel {
    const cfxi_backend *backend;
    const cfx_allocator *allocator;
    cfxi_problem problem;
    size_t bytes;                /* of the kernel */
    struct cfxi_packed *packed;  /* its weights; NULL if they are a part of it */
};

extern const cfxi_backend cfxi_backend_product, cfxi_backend_convolution, cfxi_backend_depthwise,
    cfxi_backend_winograd, cfxi_backend_bf16, cfxi_backend_bytes, cfxi_backend_chain,
    cfxi_backend_attention, cfxi_backend_lstm, cfxi_backend_matmul_bytes,
    cfxi_backend_depthwise_bytes, cfxi_backend_weight_only, cfxi_backend_dynamic;

/* ---- oneDNN (onednn.h) --------------------------------------------------------------------- */

/* Solves problems that have `onednn`. */
extern const cfxi_backend cfxi_backend_onednn;

/* Loads libdnnl.so, version 3, built for OpenMP. NULL if it is not there, is broken or another:
 * *err says why, and the caller goes on without. The library itself stays in the process. */
cfxi_onednn *cfxi_backend_onednn_open(const char *path, const cfx_allocator *allocator,
                                      cfx_error *err);
cfxi_onednn *cfxi_backend_onednn_retain(cfxi_onednn *d);
void cfxi_backend_onednn_release(cfxi_onednn *d);  /* NULL is allowed */
const char *cfxi_backend_onednn_version(const cfxi_onednn *d);  /* "3.2.0" */

/* ---- choosing (choose.c, tune.c) ----------------------------------------------------------- */

typedef enum cfxi_allowed { CFXI_ALLOW_BUILT_IN = 1, CFXI_ALLOW_ONEDNN = 2 } cfxi_allowed;

/* Measures back ends, and keeps what it has found. */
typedef struct cfxi_tuner cfxi_tuner;

typedef struct cfxi_choosing {
    unsigned allowed;   /* bits of cfxi_allowed; 0: all */
    cfxi_tuner *tuner;  /* NULL: the costs that back ends estimate decide */
    cfx_runtime *rt;    /* for a tuner */
} cfxi_choosing;

/* The fastest of the allowed back ends that solve the problem; NULL if none does, or with *err set
 * if the run was interrupted while they were measured. Where measuring fails, for want of memory,
 * the estimates decide. */
const cfxi_backend *cfxi_backend_choose(const cfxi_problem *p, const cfxi_choosing *how,
                                        cfx_error *err);

/* The candidates, in order; NULL after the last. Their names differ, and are those of files. */
typedef struct cfxi_candidate {
    const char *name;
    const cfxi_backend *backend;
    cfxi_allowed which;
    bool integers;  /* it solves problems of integers, and no others */
} cfxi_candidate;
const cfxi_candidate *cfxi_backend_candidate(size_t i);

/* Everything about a problem that its speed depends on, on one line. */
void cfxi_backend_print_problem(const cfxi_problem *p, cfxi_out *out);

/* `folder` holds the file tune.txt: measurements of earlier processes, to which those of this one
 * are added. NULL: nothing is kept. A file that is damaged, of another CPU or another version is
 * not used, and a folder that cannot be written is not an error. Any number of threads may share a
 * tuner. NULL with *err set if memory is out. */
cfxi_tuner *cfxi_backend_tuner_new(const char *folder, const cfx_allocator *allocator,
                                   cfx_error *err);
void cfxi_backend_tuner_free(cfxi_tuner *t);
size_t cfxi_backend_tuner_measured(const cfxi_tuner *t);  /* problems, by this one */
/* Which of the candidates (a bit for each) is fastest, from the file or by measuring; -1 if it
 * cannot be measured, or with *err set if the run was interrupted. */
int cfxi_backend_tune(cfxi_tuner *t, const cfxi_problem *p, unsigned candidates, cfx_runtime *rt,
                      cfx_error *err);

/* ---- packed weights (packs.c) --------------------------------------------------------------- */

/* Weights as a kernel has packed them. Kernels for other sizes of the input, in other plans, have
 * them in common. */
typedef struct cfxi_packed {
    atomic_int refs;
    const cfx_allocator *allocator;
    size_t block;
    size_t bytes;
    float *data;  /* aligned */
} cfxi_packed;

/* All that was packed of weights which live as long as it. One thread at a time. */
typedef struct cfxi_packs {
    cfxi_vec items;
    cfxi_pointers by_weight;  /* where they begin -> 1 + the number of the latest item */
} cfxi_packs;
void cfxi_backend_packs_free(cfxi_packs *packs, const cfx_allocator *allocator);

/* The weights of a kernel in the making, which `backend` packs in the order that `sizes` describe
 * (the rest are 0). *fresh: `floats` floats that the caller has to fill. false with *err set. The
 * kernel's release gives them back. */
bool cfxi_backend_take_packed(cfxi_kernel *k, const cfxi_constants *c, const int64_t sizes[8],
                              size_t columns, size_t floats, bool *fresh, cfx_error *err);
/* Takes back what was fresh, which is not to be used after all. */
void cfxi_backend_forget_packed(cfxi_packs *packs, const cfx_allocator *allocator);
void cfxi_backend_packed_release(cfxi_packed *p);  /* NULL is allowed */

/* ---- what built-in kernels share (packing.c) ----------------------------------------------- */

/* Weights in panels (tiles.h): `n` columns, `count` blocks of `k` lines. at(ctx, q, p) is where the
 * line p of block q begins in w, its columns `step` apart; `scale` may be NULL. `to` has
 * cfxi_tiles_panels(n) * count * k * CFXI_PANEL floats. The threads of `rt` share the panels; NULL:
 * this thread alone. */
typedef int64_t cfxi_line_at(const void *ctx, int64_t q, int64_t p);
void cfxi_backend_pack(cfx_runtime *rt, float *to, int64_t n, int64_t count, int64_t k,
                       const float *w, int64_t step, const float *scale, cfxi_line_at *at,
                       const void *ctx);
/* Calls fn(ctx, begin, end) for parts of `panels`, of `floats` floats each: the threads of `rt`
 * share them; NULL: this thread alone. */
void cfxi_backend_each_panel(cfx_runtime *rt, int64_t panels, int64_t floats,
                             cfxi_range_fn *fn, void *ctx);
/* Nanoseconds that a kernel waits for this many weights, beside its arithmetic: more than a cache
 * holds come from memory in each run. */
double cfxi_backend_weight_cost(int64_t floats);
/* The bias, padded with zeros to whole panels. */
void cfxi_backend_pack_bias(float *to, int64_t n, const float *bias);

/* At most `most` of `all` lines for a piece of work, so that no thread has many more of them than
 * others; `times` is how often all lines are computed. Each piece costs something beside its lines.
 */
int64_t cfxi_backend_even_lines(unsigned threads, int64_t all, int64_t most, int64_t times);

/* Posts that tiles do themselves: at most one ADD, then at most one CLAMP. */
typedef struct cfxi_fused_posts {
    bool adds;    /* post 0 is an ADD */
    float low, high;
    size_t rest;  /* the number of the first of the others */
} cfxi_fused_posts;
cfxi_fused_posts cfxi_backend_fuse_posts(const cfxi_problem *p);
/* Applies the posts from number `first` on to n elements side by side, of which element 0 is at
 * offset[i] in the operand of post i. */
void cfxi_backend_apply_posts(const cfxi_problem *p, const cfxi_run *r, size_t first, float *x,
                              int64_t n, const int64_t offset[CFXI_MOST_POSTS]);
/* The same for `rows` rows of n elements, `step` apart, at once where they lie without gaps.
 * `dim` is which of a post's `rows` leads from one row to the next. */
void cfxi_backend_finish_rows(const cfxi_problem *p, const cfxi_run *r, size_t first, float *x,
                              int64_t rows, int64_t step, int64_t n, int dim,
                              const int64_t offset[CFXI_MOST_POSTS]);

#endif
