/* onednn.h - oneDNN, loaded while the program runs: what cfx uses of its C interface.
 *
 * cfx is built without oneDNN's headers, so the few types, numbers and functions are declared here,
 * under names of our own. They are those of version 3, whose releases keep them.
 */
#ifndef CFXI_ONEDNN_H
#define CFXI_ONEDNN_H

#include "backend_impl.h"

#include <sys/types.h>

enum {
    CFXI_DNN_MAJOR = 3,
    CFXI_DNN_DIMS = 12,          /* the longest list of sizes */
    CFXI_DNN_OPENMP = 2,         /* kind of threads */
    CFXI_DNN_CPU = 1,            /* kind of engine */
    CFXI_DNN_IN_ORDER = 1,       /* kind of stream */
    CFXI_DNN_BFLOAT16 = 2,
    CFXI_DNN_FLOAT32 = 3,
    CFXI_DNN_ANY = 1,            /* a layout that oneDNN chooses */
    CFXI_DNN_INFERENCE = 96,
    CFXI_DNN_CONVOLUTION = 1,    /* direct */
    CFXI_DNN_SCRATCH_BY_USER = 1,
    CFXI_DNN_ASK_NAME = 8,
    CFXI_DNN_ASK_WEIGHTS = 131,
    CFXI_DNN_ASK_SCRATCH = 136,
    CFXI_DNN_SRC = 1,            /* arguments of a run */
    CFXI_DNN_SRC_1 = 2,
    CFXI_DNN_DST = 17,
    CFXI_DNN_WEIGHTS = 33,
    CFXI_DNN_BIAS = 41,
    CFXI_DNN_SCRATCH = 80,
    CFXI_DNN_POST = 32768,       /* times (number of the post + 1), with SRC_1 */
    CFXI_DNN_TANH = 0x21,
    CFXI_DNN_HARDSIGMOID = 0x28,
    CFXI_DNN_LOGISTIC = 0x29,
    CFXI_DNN_GELU_TANH = 0x2b,
    CFXI_DNN_SWISH = 0x2c,
    CFXI_DNN_GELU_ERF = 0x31,
    CFXI_DNN_MISH = 0x33,
    CFXI_DNN_HARDSWISH = 0x34,
    CFXI_DNN_ADD = 0x1fff0,
    CFXI_DNN_MUL = 0x1fff1
};

typedef struct cfxi_dnn_engine cfxi_dnn_engine;
typedef struct cfxi_dnn_stream cfxi_dnn_stream;
typedef struct cfxi_dnn_layout cfxi_dnn_layout;        /* sizes, type and strides of a tensor */
typedef struct cfxi_dnn_memory cfxi_dnn_memory;        /* a layout and an address */
typedef struct cfxi_dnn_attr cfxi_dnn_attr;
typedef struct cfxi_dnn_posts cfxi_dnn_posts;
typedef struct cfxi_dnn_recipe cfxi_dnn_recipe;        /* how a primitive is made */
typedef struct cfxi_dnn_primitive cfxi_dnn_primitive;  /* compiled code */

typedef struct cfxi_dnn_version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_threads;  /* kind of threads */
    unsigned gpu_threads;
} cfxi_dnn_version;

typedef struct cfxi_dnn_arg {
    int which;
    cfxi_dnn_memory *memory;
} cfxi_dnn_arg;

/* X(result, name, parameters): what the library must have. A status is 0 for success. */
#define CFXI_DNN_FUNCTIONS(X)                                                                      \
    X(int, engine_create, (cfxi_dnn_engine * *made, int kind, size_t index))                       \
    X(int, engine_destroy, (cfxi_dnn_engine * engine))                                             \
    X(int, stream_create, (cfxi_dnn_stream * *made, cfxi_dnn_engine * engine, unsigned flags))     \
    X(int, stream_wait, (cfxi_dnn_stream * stream))                                                \
    X(int, stream_destroy, (cfxi_dnn_stream * stream))                                             \
    X(int, memory_desc_create_with_strides, (cfxi_dnn_layout * *made, int ndim,                    \
      const int64_t *sizes, int dtype, const int64_t *strides))                                    \
    X(int, memory_desc_create_with_tag, (cfxi_dnn_layout * *made, int ndim, const int64_t *sizes,  \
      int dtype, int tag))                                                                         \
    X(int, memory_desc_destroy, (cfxi_dnn_layout * layout))                                        \
    X(size_t, memory_desc_get_size, (const cfxi_dnn_layout *layout))                               \
    X(int, memory_create, (cfxi_dnn_memory * *made, const cfxi_dnn_layout *layout,                 \
      cfxi_dnn_engine *engine, void *address))                                                     \
    X(int, memory_set_data_handle, (cfxi_dnn_memory * memory, void *address))                      \
    X(int, memory_destroy, (cfxi_dnn_memory * memory))                                             \
    X(int, primitive_attr_create, (cfxi_dnn_attr * *made))                                         \
    X(int, primitive_attr_destroy, (cfxi_dnn_attr * attr))                                         \
    X(int, primitive_attr_set_scratchpad_mode, (cfxi_dnn_attr * attr, int mode))                   \
    X(int, primitive_attr_set_post_ops, (cfxi_dnn_attr * attr, const cfxi_dnn_posts *posts))       \
    X(int, post_ops_create, (cfxi_dnn_posts * *made))                                              \
    X(int, post_ops_destroy, (cfxi_dnn_posts * posts))                                             \
    X(int, post_ops_append_eltwise, (cfxi_dnn_posts * posts, int kind, float alpha, float beta))   \
    X(int, post_ops_append_binary, (cfxi_dnn_posts * posts, int kind,                              \
      const cfxi_dnn_layout *other))                                                               \
    X(int, matmul_primitive_desc_create, (cfxi_dnn_recipe * *made, cfxi_dnn_engine * engine,       \
      const cfxi_dnn_layout *x, const cfxi_dnn_layout *w, const cfxi_dnn_layout *bias,             \
      const cfxi_dnn_layout *out, const cfxi_dnn_attr *attr))                                      \
    X(int, convolution_forward_primitive_desc_create, (cfxi_dnn_recipe * *made,                    \
      cfxi_dnn_engine * engine, int kind, int algorithm, const cfxi_dnn_layout *x,                 \
      const cfxi_dnn_layout *w, const cfxi_dnn_layout *bias, const cfxi_dnn_layout *out,           \
      const int64_t *strides, const int64_t *gaps, const int64_t *before, const int64_t *after,    \
      const cfxi_dnn_attr *attr))                                                                  \
    X(int, reorder_primitive_desc_create, (cfxi_dnn_recipe * *made, const cfxi_dnn_layout *from,   \
      cfxi_dnn_engine *from_engine, const cfxi_dnn_layout *to, cfxi_dnn_engine *to_engine,         \
      const cfxi_dnn_attr *attr))                                                                  \
    X(int, primitive_desc_query, (const cfxi_dnn_recipe *recipe, int what, int index,              \
      void *answer))                                                                               \
    X(const cfxi_dnn_layout *, primitive_desc_query_md, (const cfxi_dnn_recipe *recipe, int what,  \
      int index))                                                                                  \
    X(int, primitive_desc_destroy, (cfxi_dnn_recipe * recipe))                                     \
    X(int, primitive_create, (cfxi_dnn_primitive * *made, const cfxi_dnn_recipe *recipe))          \
    X(int, primitive_execute, (const cfxi_dnn_primitive *primitive, cfxi_dnn_stream *stream,       \
      int count, const cfxi_dnn_arg *args))                                                        \
    X(int, primitive_destroy, (cfxi_dnn_primitive * primitive))

/* The same of the OpenMP library that oneDNN uses. */
#define CFXI_DNN_THREADS(X)                                                                        \
    X(void, omp_set_num_threads, (int n))                                                          \
    X(int, omp_get_max_threads, (void))                                                            \
    X(int, omp_get_num_threads, (void))                                                            \
    X(int, omp_get_thread_num, (void))                                                             \
    X(void, GOMP_parallel, (void (*fn)(void *), void *ctx, unsigned threads, unsigned flags))

struct cfxi_onednn {
    atomic_int owners;
    const cfx_allocator *allocator;
    cfxi_dnn_engine *engine;
    pid_t process;     /* that it was loaded in */
    char version[40];  /* "3.2.0" */
#define X(result, name, parameters) result(*name) parameters;
    CFXI_DNN_FUNCTIONS(X)
    CFXI_DNN_THREADS(X)
#undef X
};

/* OpenMP's number of threads is that of the calling thread: sets it and returns what it was, to be
 * set again afterwards. A primitive must run with as many as it was made for. (onednn_load.c) */
int cfxi_backend_onednn_threads(const cfxi_onednn *d, int threads);

/* Whether this process is a child that was forked since: OpenMP would wait there for threads that
 * do not exist. */
bool cfxi_backend_onednn_is_lost(const cfxi_onednn *d);

/* ---- how a problem is put (onednn_recipe.c) ------------------------------------------------ */

/* Layouts of the operands of a problem. */
typedef struct cfxi_dnn_shape {
    int ndim;
    int type;                                       /* of x and w; where that is bfloat16, x is a
                                                       rounded copy, without gaps */
    int64_t x[CFXI_DNN_DIMS], x_stride[CFXI_DNN_DIMS];
    int64_t out[CFXI_DNN_DIMS], out_stride[CFXI_DNN_DIMS];
    int w_ndim;
    int64_t w[CFXI_DNN_DIMS];                       /* sizes of dense weights */
    int64_t columns;                                /* of the bias */
} cfxi_dnn_shape;
cfxi_dnn_shape cfxi_backend_onednn_shape(const cfxi_problem *p);

/* The layout of the operand of a post; NULL if it has none or memory is out. */
cfxi_dnn_layout *cfxi_backend_onednn_operand(const cfxi_onednn *d, const cfxi_problem *p,
                                             const cfxi_post *post);

/* How oneDNN would solve the problem, with as many of the first posts as it takes (*fused); NULL if
 * it would not, or only with plain loops. The caller destroys it. */
cfxi_dnn_recipe *cfxi_backend_onednn_recipe(const cfxi_onednn *d, const cfxi_problem *p,
                                            size_t *fused);
/* "brgconv:avx512_core" */
const char *cfxi_backend_onednn_name(const cfxi_onednn *d, const cfxi_dnn_recipe *recipe);

#endif
