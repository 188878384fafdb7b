/* pieces.h - how convolutions are cut into pieces of work, and what the windows of a piece see;
 * what kernels share that copy it. A product is a convolution of one line.
 */
#ifndef CFXI_PIECES_H
#define CFXI_PIECES_H

#include "backend_impl.h"

/* A product as a convolution: its rows are the pixels of a line, its window has one. */
cfxi_conv cfxi_backend_conv_of(const cfxi_problem *p);
/* Strides of an operand beside the result: image, line, pixel. `own` are those of a post. */
void cfxi_backend_rows_of(const cfxi_problem *p, const int64_t own[3], int64_t rows[3]);

/* A piece has a part of some lines, and the panels of a chunk. */
typedef struct cfxi_pieces {
    int64_t part;    /* pixels of the result */
    int64_t lines;
    int64_t chunk;   /* panels */
    int64_t panels;  /* of a group */
    int64_t parts, bands, chunks;  /* pieces of a line, an image, and a group */
} cfxi_pieces;
/* Of one group of an image: lines [y, last) of the result, pixels [x, end), and panels [first,
 * stop). */
typedef struct cfxi_piece {
    int64_t image, group, y, last, x, end, first, stop;
} cfxi_piece;

static inline int64_t cfxi_backend_count_pieces(const cfxi_pieces *k, const cfxi_conv *c)
{
    return k->parts * k->bands * c->batch * c->groups * k->chunks;
}
/* Pieces that need the same weights follow each other. */
cfxi_piece cfxi_backend_piece_of(const cfxi_pieces *k, const cfxi_conv *c, int64_t i);

/* What the windows of a piece see of a line of the image, where only pixels that are seen count:
 * `width` of them, `step` apart in the image; [left, right) are inside of it, and the first of
 * these is pixel `first`. */
typedef struct cfxi_seen {
    int64_t width, left, right;
    int64_t first, step;
} cfxi_seen;
cfxi_seen cfxi_backend_seen(const cfxi_conv *c, const cfxi_piece *at, int64_t y);
/* From window to window, in pixels that are seen, and in lines. */
static inline int64_t cfxi_backend_across(const cfxi_conv *c)
{
    return c->kernel[2] == 1 ? 1 : c->stride[2];
}
static inline int64_t cfxi_backend_down(const cfxi_conv *c)
{
    return c->kernel[1] == 1 ? 1 : c->stride[1];
}
/* Calls copy(ctx, at, image line, line number) for each line that the windows of a piece see. */
typedef void cfxi_copy_line(const void *ctx, const cfxi_piece *at, int64_t y, int64_t line);
void cfxi_backend_copy_lines(const cfxi_conv *c, const cfxi_piece *at, cfxi_copy_line *copy,
                             const void *ctx);

/* "convolution 3x3, avx512_vnni tiles of 14 x 32"; `what` is put before. */
void cfxi_backend_print_tiles(const cfxi_problem *p, const char *what, const char *name,
                              cfxi_tiling tiling, cfxi_out *out);

/* ---- lines of depthwise convolutions ------------------------------------------------------- */

/* Calls line(kernel, r, image, y) for each line of the result; threads share them. */
typedef void cfxi_run_line(const cfxi_kernel *k, const cfxi_run *r, int64_t image, int64_t y);
void cfxi_backend_each_line(const cfxi_kernel *k, const cfxi_run *r, cfxi_run_line *line);
/* The lines of the windows of line y of the result that lie inside of the image: [first, last). */
typedef struct cfxi_span {
    int64_t first, last;
} cfxi_span;
cfxi_span cfxi_backend_lines_inside(const cfxi_conv *c, int64_t y);
/* The posts from number `first` on, on a line of the result. */
void cfxi_backend_finish_line(const cfxi_problem *p, const cfxi_run *r, size_t first,
                              int64_t image, int64_t y, float *line);

#endif
