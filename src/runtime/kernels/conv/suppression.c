/* suppression.c - non_max_suppression: of boxes that overlap, the one with the best score.
 *
 * For each image and class, boxes are taken from the best score on. One that overlaps a box that
 * was taken by more than the limit is left out. Work is O(boxes log boxes + boxes * taken).
 */
#include "runtime/runtime_impl.h"

#include <math.h>
#include <stdlib.h>

enum { BOXES, SCORES, MOST, OVERLAP, LEAST_SCORE, CENTER };

typedef struct candidate {
    double score;
    int64_t box;
} candidate;

typedef struct suppression {
    const double *boxes;     /* of one image: n boxes, four numbers each */
    int64_t n;
    int64_t most;            /* boxes for a class */
    double overlap;
    bool center;             /* boxes are (x, y, width, height) and not two corners */
    candidate *candidates;   /* room for n */
    int64_t *taken;          /* room for n */
} suppression;

cfx_status cfxi_rule_non_max_suppression(cfxi_call *c)
{
    const cfx_tensor *boxes = cfxi_rt_tensor(c, BOXES);
    const cfx_tensor *scores = cfxi_rt_tensor(c, SCORES);
    if (boxes->ndim != 3 || scores->ndim != 3 || !cfxi_rt_same_size(c, boxes->size[2], 4) ||
        !cfxi_rt_same_size(c, boxes->size[0], scores->size[0]) ||
        !cfxi_rt_same_size(c, boxes->size[1], scores->size[2]))
        return cfxi_fail(c, CFX_E_SHAPE, "boxes must be [images, boxes, 4] and scores [images, "
                         "classes, boxes]");
    if (!cfx_dtype_is_float((cfx_dtype)boxes->dtype) || boxes->dtype != scores->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "boxes and scores must be floats of one type");
    const int64_t sizes[] = {cfxi_rt_fresh(c), 3};
    return cfxi_rt_result(c, 0, CFX_DTYPE_INT64, sizes, 2);
}

/* Best scores first; of equal ones the first box. */
static int by_score(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->box < y->box ? -1 : x->box > y->box;
}

/* The sides of a box: top, left, bottom, right. */
static void sides_of(const suppression *s, int64_t i, double out[4])
{
    const double *box = s->boxes + 4 * i;
    if (s->center) {
        out[0] = box[1] - box[3] / 2, out[2] = box[1] + box[3] / 2;
        out[1] = box[0] - box[2] / 2, out[3] = box[0] + box[2] / 2;
        return;
    }
    for (size_t k = 0; k < 2; k++) {  /* corners in either order */
        out[k] = fmin(box[k], box[k + 2]);
        out[k + 2] = fmax(box[k], box[k + 2]);
    }
}

/* What two boxes have in common, as a part of what they cover together. */
static double overlap_of(const suppression *s, int64_t i, int64_t k)
{
    double a[4], b[4];
    sides_of(s, i, a);
    sides_of(s, k, b);
    double height = fmin(a[2], b[2]) - fmax(a[0], b[0]);
    double width = fmin(a[3], b[3]) - fmax(a[1], b[1]);
    double common = height > 0 && width > 0 ? height * width : 0;
    double both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common;
    return both > 0 ? common / both : 0;
}

/* The boxes of one class, to s->taken; how many. */
static int64_t take(const suppression *s, const double *scores, double least)
{
    int64_t n = 0;
    int64_t taken = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (scores[i] > least)
            s->candidates[n++] = (candidate){scores[i], i};
    qsort(s->candidates, (size_t)n, sizeof *s->candidates, by_score);
    for (int64_t i = 0; i < n && taken < s->most; i++) {
        int64_t k = 0;
        while (k < taken && !(overlap_of(s, s->candidates[i].box, s->taken[k]) > s->overlap))
            k++;
        if (k == taken)
            s->taken[taken++] = s->candidates[i].box;
    }
    return taken;
}

/* All classes of all images. Rows (image, class, box) go to the buffer. */
static cfx_status take_all(cfxi_call *c, suppression *s, const cfx_tensor *boxes,
                           const cfx_tensor *scores, cfx_buffer *rows)
{
    double least = cfxi_rt_is_none(c, LEAST_SCORE) ? -INFINITY : cfxi_rt_float(c, LEAST_SCORE);
    for (int64_t image = 0; image < scores->size[0]; image++) {
        s->boxes = (const double *)boxes->data + image * s->n * 4;
        for (int64_t class = 0; class < scores->size[1]; class++) {
            CFX_TRY(cfxi_rt_go_on(c->rt, c->err));
            int64_t n = take(s, (const double *)scores->data +
                             (image * scores->size[1] + class) * s->n, least);
            for (int64_t i = 0; i < n; i++) {
                const int64_t row[] = {image, class, s->taken[i]};
                if (cfx_buffer_append(rows, (const char *)row, sizeof row) != CFX_OK)
                    return cfxi_base_nomem(c->err);
            }
        }
    }
    return CFX_OK;
}

static cfx_status run(cfxi_call *c, const cfx_tensor *boxes, const cfx_tensor *scores)
{
    suppression s = {.n = boxes->size[1], .most = cfxi_rt_int(c, MOST),
                     .overlap = cfxi_rt_float(c, OVERLAP), .center = cfxi_rt_bool(c, CENTER)};
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfx_buffer rows;
    size_t bytes;
    if (!cfxi_base_mul_size((size_t)s.n, sizeof *s.candidates + sizeof *s.taken, 8, &bytes) ||
        !(s.candidates = cfxi_rt_scratch(c->rt, bytes)))
        return cfxi_base_nomem(c->err);
    s.taken = (int64_t *)(s.candidates + s.n);
    cfx_buffer_init(&rows, c->rt->allocator);
    cfx_status status = take_all(c, &s, boxes, scores, &rows);
    if (status == CFX_OK) {
        y->size[0] = (int64_t)(rows.size / (3 * sizeof(int64_t)));
        status = cfxi_rt_result_allocate(c, 0);
    }
    if (status == CFX_OK && rows.size > 0)
        memcpy(y->data, rows.data, rows.size);
    cfx_buffer_free(&rows);
    cfxi_rt_scratch_free(c->rt, s.candidates);
    return status;
}

cfx_status cfxi_kernel_non_max_suppression(cfxi_call *c)
{
    cfx_tensor *boxes = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, BOXES), CFX_DTYPE_FLOAT64);
    cfx_tensor *scores = boxes ? cfxi_rt_contiguous(c, cfxi_rt_tensor(c, SCORES),
                                                    CFX_DTYPE_FLOAT64) : NULL;
    cfx_status status = scores ? run(c, boxes, scores) : c->err->status;
    cfx_tensor_release(scores);
    cfx_tensor_release(boxes);
    return status;
}
