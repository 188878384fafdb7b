/* plan_print.c - a plan for people: a line for each step.
 *
 *     plan of 52 nodes: 28 steps, 3.1 MB of memory, 44.6 MB of packed weights
 *       %relu                 conv 7x7, tiles of 7 x 64       float32[1, 64, 112, 112]   net.py:12
 *
 * A step has the name of the last node that it computes.
 */
#include "plan_impl.h"

#include <stdio.h>

enum { NODE = 28, KERNEL = 34 };  /* columns */

/* "3.1 MB" */
static void print_bytes(cfxi_out *out, size_t bytes)
{
    if (bytes < 1000)
        cfxi_base_out_printf(out, "%zu bytes", bytes);
    else if (bytes < 1000000)
        cfxi_base_out_printf(out, "%.1f kB", (double)bytes / 1e3);
    else
        cfxi_base_out_printf(out, "%.1f MB", (double)bytes / 1e6);
}

typedef struct room {
    char *text;
    size_t size;
    size_t used;
} room;

static cfx_status write_room(void *ctx, const char *data, size_t size)
{
    room *r = ctx;
    const size_t left = r->size - 1 - r->used;
    const size_t some = size < left ? size : left;
    memcpy(r->text + r->used, data, some);
    r->used += some;
    r->text[r->used] = '\0';
    return CFX_OK;
}

void cfxi_plan_kernel_text(const cfxi_step *step, char *text, size_t size)
{
    room r = {text, size, 0};
    cfxi_out out;
    text[0] = '\0';
    cfxi_base_out_begin(&out, (cfx_sink){write_room, &r});
    if (step->kernel)
        step->kernel->backend->print(step->kernel, &out);
    else
        cfxi_base_out_str(&out, cfx_operator_name(step->op));
    cfxi_base_out_end(&out, NULL);
}

static void print_column(cfxi_out *out, const char *text, int width)
{
    cfxi_base_out_printf(out, "%-*s ", width, text);
}

static void print_step(const cfxi_step *step, cfxi_out *out)
{
    char text[120];
    snprintf(text, sizeof text, "  %%%s", step->node);
    print_column(out, text, NODE);
    cfxi_plan_kernel_text(step, text, sizeof text);
    print_column(out, text, KERNEL);
    if (step->results[0].kind == CFX_DATUM_TENSOR)
        cfx_datum_print(step->results[0], NULL, cfxi_base_out_sink(out), NULL);
    if (step->file) {
        const char *name = strrchr(step->file, '/');
        cfxi_base_out_printf(out, "  %s:%u", name ? name + 1 : step->file, step->line);
    }
    cfxi_base_out_char(out, '\n');
}

size_t cfxi_plan_weights(const cfxi_step *step)
{
    const cfxi_kernel *k = step->kernel;
    if (!k || k->problem.kind == CFXI_CHAIN || k->problem.kind == CFXI_ATTENTION)
        return 0;
    return k->packed ? k->packed->bytes : k->bytes;
}

void cfxi_plan_print(const cfxi_plan *plan, cfxi_out *out)
{
    size_t packed = 0;
    size_t steps = 0;
    for (size_t i = 0; i < plan->steps.size; i++) {
        const cfxi_step *step = cfxi_plan_step(plan, i);
        steps += !step->removed;
        packed += cfxi_plan_weights(step);
    }
    cfxi_base_out_printf(out, "plan of %u nodes: %zu steps, ", plan->end - plan->first, steps);
    print_bytes(out, plan->arena);
    cfxi_base_out_str(out, " of memory, ");
    print_bytes(out, packed);
    cfxi_base_out_str(out, " of packed weights\n");
    for (size_t i = 0; i < plan->steps.size; i++)
        if (!cfxi_plan_step(plan, i)->removed)
            print_step(cfxi_plan_step(plan, i), out);
}
