/* capture_c.c - what capturing a program in C costs, per node.
 *
 * `capture_c` prints a line for each program: its name, its nodes, and nanoseconds of processor
 * time per node, the median of several captures. bench/capture_c.py has the same programs in
 * Python, captured by cfx and by torch.fx, and prints all of it as a table.
 */
#define CFX_NO_MAIN
#include "../examples/c/resnet18.c"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 9, OPERATIONS = 40000 };

static double now(void) /* of this process: what others do counts less */
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- many small operations ----------------------------------------------------------------- */

static cfx_var many_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    for (int i = 0; i < OPERATIONS / 2; i++)
        x = cfx_add(s, cfx_relu(s, x), 1);
    return x;
}

static const cfx_class many_class = {.name = "Many", .forward = many_forward};

static cfx_module *many(cfx_scope *s) { return cfx_module_new(s, &many_class); }

/* ---- measuring ----------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first capture is not counted. `times` is how often a small one is made in one run. */
static void measure(const char *name, cfx_module *(*make)(cfx_scope *s), int times,
                    const char *shapes)
{
    double took[RUNS];
    size_t nodes = 1;
    for (int i = -1; i < RUNS; i++) {
        cfx_scope *s = cfx_scope_new(&(cfx_scope_options){.threads = 1}, NULL);
        cfx_module *m = make(s);
        const double start = now();
        for (int k = 0; k < times; k++) {
            cfx_module *t = cfx_trace(s, m, .shapes = shapes);
            nodes = t ? cfx_graph_size(cfx_module_graph(t)) : 1;
        }
        if (i >= 0)
            took[i] = (now() - start) / times;
        if (!cfx_scope_ok(s)) {
            fprintf(stderr, "%s\n", cfx_scope_error(s)->message);
            exit(1);
        }
        cfx_scope_free(s);
    }
    qsort(took, RUNS, sizeof *took, by_size);
    printf("%-28s %8zu %10.1f\n", name, nodes, took[RUNS / 2] * 1e9 / (double)nodes);
}

int main(void)
{
    measure("40,000 operations", many, 1, NULL);
    measure("ResNet-18", cfx_model, 100, NULL);
    measure("40,000 operations, shapes", many, 1, "x=float32[N, 8]");
    measure("ResNet-18, shapes", cfx_model, 1, "x=float32[N, 3, 224, 224]");
    return 0;
}
