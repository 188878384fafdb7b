/* pieces.c - convolutions in pieces: pieces.h. */
#include "pieces.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

cfxi_conv cfxi_backend_conv_of(const cfxi_problem *p)
{
    if (p->kind == CFXI_CONVOLUTION)
        return p->conv;
    return (cfxi_conv){.batch = 1, .groups = 1, .in_channels = p->k, .out_channels = p->n,
                       .in = {1, 1, p->m}, .out = {1, 1, p->m}, .kernel = {1, 1, 1},
                       .stride = {1, 1, 1}, .dilation = {1, 1, 1},
                       .xs = {0, 1, 0, 0, p->x_row}, .ys = {0, 1, 0, 0, p->out_row},
                       .ws = {p->w_n, p->w_k}};
}

void cfxi_backend_rows_of(const cfxi_problem *p, const int64_t own[3], int64_t rows[3])
{
    for (int d = 0; d < 3; d++)
        rows[d] = p->kind == CFXI_CONVOLUTION ? own[d] : d == 2 ? own[0] : 0;
}

cfxi_piece cfxi_backend_piece_of(const cfxi_pieces *k, const cfxi_conv *c, int64_t i)
{
    cfxi_piece at = {.x = i % k->parts * k->part};
    at.end = smaller(c->out[2], at.x + k->part);
    i /= k->parts;
    at.y = i % k->bands * k->lines;
    at.last = smaller(c->out[1], at.y + k->lines);
    i /= k->bands;
    at.image = i % c->batch;
    i /= c->batch;
    at.first = i % k->chunks * k->chunk;
    at.stop = smaller(k->panels, at.first + k->chunk);
    at.group = i / k->chunks;
    return at;
}

cfxi_seen cfxi_backend_seen(const cfxi_conv *c, const cfxi_piece *at, int64_t y)
{
    const int64_t from = at->x * c->stride[2] - c->before[2];
    cfxi_seen s = {.width = (at->end - at->x - 1) * cfxi_backend_across(c) +
                            (c->kernel[2] - 1) * c->dilation[2] + 1,
                   .step = c->kernel[2] == 1 ? c->stride[2] : 1};
    if (from < 0)
        s.left = smaller(s.width, divide_up(-from, s.step));
    s.right = s.left;
    if (y >= 0 && y < c->in[1] && from < c->in[2])
        s.right = larger(s.left, smaller(s.width, (c->in[2] - 1 - from) / s.step + 1));
    s.first = from + s.left * s.step;
    return s;
}

void cfxi_backend_copy_lines(const cfxi_conv *c, const cfxi_piece *at, cfxi_copy_line *copy,
                             const void *ctx)
{
    const int64_t window = (c->kernel[1] - 1) * c->dilation[1] + 1;
    const int64_t lines = (at->last - at->y - 1) * cfxi_backend_down(c) + window;
    const int64_t step = c->kernel[1] == 1 ? c->stride[1] : 1;
    const int64_t first = at->y * c->stride[1] - c->before[1];
    for (int64_t i = 0; i < lines; i++)
        copy(ctx, at, first + i * step, i);
}

void cfxi_backend_print_tiles(const cfxi_problem *p, const char *what, const char *name,
                              cfxi_tiling tiling, cfxi_out *out)
{
    cfxi_base_out_str(out, what);
    if (p->kind == CFXI_CONVOLUTION)
        cfxi_base_out_printf(out, "convolution %lldx%lld", (long long)p->conv.kernel[1],
                             (long long)p->conv.kernel[2]);
    else
        cfxi_base_out_str(out, p->kind == CFXI_MATMUL ? "matmul" : "product");
    cfxi_base_out_printf(out, ", %s tiles of %d x %d", name, tiling.rows,
                         tiling.panels * CFXI_PANEL);
}

/* ---- lines of depthwise convolutions ------------------------------------------------------- */

typedef struct running {
    const cfxi_kernel *k;
    const cfxi_run *r;
    cfxi_run_line *line;
} running;

static void run_lines(void *ctx, int64_t begin, int64_t end)
{
    const running *w = ctx;
    const int64_t lines = w->k->problem.conv.out[1];
    for (int64_t i = begin; i < end; i++)
        w->line(w->k, w->r, i / lines, i % lines);
}

void cfxi_backend_each_line(const cfxi_kernel *k, const cfxi_run *r, cfxi_run_line *line)
{
    const cfxi_conv *c = &k->problem.conv;
    running w = {k, r, line};
    const int64_t work = c->out[2] * c->groups * c->in_channels * c->out_channels * c->kernel[1] *
                         c->kernel[2];
    const int64_t grain = (1 << 16) / (work > 0 ? work : 1) + 1;  /* worth waking a thread */
    cfxi_rt_parallel(r->rt, c->batch * c->out[1], grain, run_lines, &w);
}

cfxi_span cfxi_backend_lines_inside(const cfxi_conv *c, int64_t y)
{
    const int64_t from = y * c->stride[1] - c->before[1];
    const int64_t gap = c->dilation[1];
    cfxi_span s = {from < 0 ? (-from + gap - 1) / gap : 0, c->kernel[1]};
    if (from + (s.last - 1) * gap >= c->in[1])
        s.last = from >= c->in[1] ? 0 : (c->in[1] - 1 - from) / gap + 1;
    if (s.first > s.last)
        s.first = s.last;
    return s;
}

void cfxi_backend_finish_line(const cfxi_problem *p, const cfxi_run *r, size_t first,
                              int64_t image, int64_t y, float *line)
{
    int64_t offset[CFXI_MOST_POSTS];
    if (first >= p->num_posts)
        return;
    for (size_t s = first; s < p->num_posts; s++)
        offset[s] = image * p->posts[s].rows[0] + y * p->posts[s].rows[1];
    cfxi_backend_finish_rows(p, r, first, line, p->conv.out[2], p->conv.ys[4],
                             p->conv.groups * p->conv.out_channels, 2, offset);
}
