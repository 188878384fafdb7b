/* start.c - loads a .cfx file and runs it, for bench/start.py, which adds when the process started:
 *
 *     start MODEL.cfx INPUTS.npz THREADS
 *         {"begun": ..., "ended": ..., "memory": ..., "nodes": ..., "plan": ..., "packing": ...}
 *
 * The times of the first run are those of CLOCK_MONOTONIC; memory is what the process has gained
 * after that run; plans took so many seconds, and packing weights for them.
 */
#include "process.h"

#include <cfx/executable.h>
#include <cfx/weights.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 16 };

typedef struct planning {
    unsigned nodes;
    double plan, packing;  /* seconds */
} planning;

static void note(void *ctx, const cfx_step *step)
{
    planning *p = ctx;
    unsigned nodes;
    const double took = 1e-9 * (double)(step->end - step->begin);
    if (sscanf(step->kernel, "plan of %u nodes", &nodes) == 1) {
        p->nodes += nodes;
        p->plan += took;
    } else if (strcmp(step->kernel, "packing") == 0) {
        p->packing += took;
    }
}

/* How many there are; they are borrowed. */
static size_t inputs_of(const cfx_state *state, cfx_datum *inputs)
{
    cfx_tensor *t;
    size_t n = 0;
    while (n < MOST_INPUTS && cfx_state_entry(state, n, &t))
        inputs[n++] = cfx_datum_tensor(t);
    return n;
}

static bool report(const char *model, const cfx_state *state, unsigned threads, cfx_error *err)
{
    cfx_datum inputs[MOST_INPUTS];
    planning took = {0};
    const cfx_runtime_options options = {.threads = threads, .step = note, .step_ctx = &took};
    const size_t n = inputs_of(state, inputs);
    const double before = resident();
    cfx_executable *e = cfx_executable_load(model, NULL, err);
    cfx_runtime *rt = e ? cfx_runtime_new(&options, err) : NULL;
    cfx_session *s = rt ? cfx_executable_session(e, err) : NULL;
    const double begun = now();
    const cfx_datum y = s ? cfx_executable_run(e, s, rt, inputs, n, NULL, err)
                          : cfx_datum_invalid();
    const double ended = now();
    const bool good = y.kind != CFX_DATUM_INVALID;
    if (good)
        printf("{\"begun\": %.9f, \"ended\": %.9f, \"memory\": %.0f, \"nodes\": %u, "
               "\"plan\": %g, \"packing\": %g}\n", begun, ended, resident() - before, took.nodes,
               took.plan, took.packing);
    cfx_datum_release(y);
    cfx_session_free(s);
    cfx_runtime_free(rt);
    cfx_executable_free(e);
    return good;
}

int main(int argc, char **argv)
{
    cfx_error err = {.status = CFX_OK};
    if (argc != 4) {
        puts("usage: start MODEL.cfx INPUTS.npz THREADS (bench/start.py runs it)");
        return argc != 1;
    }
    cfx_state *state = cfx_state_load(argv[2], NULL, &err);
    const bool good = state && report(argv[1], state, (unsigned)strtoul(argv[3], NULL, 10), &err);
    cfx_state_free(state);
    if (!good)
        fprintf(stderr, "%s\n", err.message);
    return !good;
}
