/* custom_allocator.c - memory of your own: counted, and no more than you allow.
 *
 *     cc custom_allocator.c $(pkg-config --cflags --libs cfx) -o custom_allocator
 *
 * Everything that cfx makes is made with an allocator that you can pass, and nothing is made
 * elsewhere. What is out of memory fails with CFX_E_NOMEM, and leaves nothing behind.
 */
#include <cfx/cfx.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the allocator ------------------------------------------------------------------------- */

/* A runtime's threads may allocate at the same time. */
typedef struct budget {
    size_t limit;
    atomic_size_t used;
} budget;

static void *budget_alloc(void *ctx, size_t size)
{
    budget *b = ctx;
    if (atomic_fetch_add(&b->used, size) + size > b->limit) {
        atomic_fetch_sub(&b->used, size);
        return NULL;
    }
    void *block = malloc(size);
    if (!block)
        atomic_fetch_sub(&b->used, size);
    return block;
}

/* The size is what was asked for: there is no need to remember it. */
static void budget_free(void *ctx, void *block, size_t size)
{
    budget *b = ctx;
    if (block)
        atomic_fetch_sub(&b->used, size);
    free(block);
}

/* ---- something to run ---------------------------------------------------------------------- */

static const char text[] = "graph():\n"
                           "  %x = placeholder[target=x]()\n"
                           "  %y = call_function[target=torch.matmul](%x, %x)  @ model.py:3\n"
                           "  output(%y)\n";

/* x @ x, for x of n rows and columns, with everything in the allocator's memory. */
static cfx_status run(const cfx_allocator *allocator, int64_t n, cfx_error *err)
{
    const cfx_runtime_options runtime_options = {.allocator = allocator, .threads = 1};
    const cfx_program_options program_options = {.allocator = allocator};
    const int64_t sizes[] = {n, n};
    cfx_program *program = NULL;
    cfx_graph *g = cfx_graph_parse(text, strlen(text), allocator, NULL, err);
    if (g && cfx_graph_lower(g, NULL, NULL, err) == CFX_OK)
        program = cfx_program_new(g, NULL, &program_options, err);
    cfx_graph_release(g);
    cfx_runtime *rt = program ? cfx_runtime_new(&runtime_options, err) : NULL;
    cfx_tensor *t = rt ? cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 2, allocator, err) : NULL;
    if (t)
        memset(cfx_tensor_data(t), 0, (size_t)(n * n) * sizeof(float));
    cfx_datum x = cfx_datum_tensor(t);
    cfx_datum y = cfx_program_run(program, rt, &x, 1, err); /* fails if something above has */
    cfx_datum_release(y);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
    cfx_program_free(program);
    return err->status;
}

int main(void)
{
    budget b = {.limit = 8 << 20};
    const cfx_allocator memory = {budget_alloc, budget_free, &b};
    static const int64_t sizes[] = {10, 100, 2000};
    for (int i = 0; i < 3; i++) {
        cfx_error err = {.status = CFX_OK};
        const cfx_status status = run(&memory, sizes[i], &err);
        printf("%4d x %-4d in 8 MiB: %s; %zu bytes left behind\n", (int)sizes[i], (int)sizes[i],
               status == CFX_OK ? "done" : err.message, (size_t)b.used);
    }
    return b.used != 0;
}
