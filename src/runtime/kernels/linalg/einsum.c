/* einsum.c - sums of products by letters: "bhid,bhjd->bhij".
 *
 * Every dimension has a label: a letter, or a place in the ellipsis. Operands are multiplied from
 * left to right; each pair is one batch of matrix products: labels that both have and that are
 * still needed are the batch, those that only one has rows or columns, those that nobody needs
 * later are summed over. A label that stands twice in one operand is its diagonal.
 */
#include "product_impl.h"
#include "runtime/runtime_impl.h"

enum { LETTERS = 52, LABELS = LETTERS + CFX_MAX_DIMS };

typedef uint64_t set;  /* of labels */
#define IN(s, label) ((s) >> (label) & 1)

typedef struct labels {
    size_t n;
    uint8_t at[LABELS];
} labels;

/* A tensor with a label for each dimension. */
typedef struct operand {
    cfx_tensor t;
    uint8_t label[CFX_MAX_DIMS];
    cfx_tensor *owner;  /* of its memory, if it is ours; else NULL */
} operand;

typedef struct einsum {
    cfxi_call *c;
    const cfx_datum *tensors;
    size_t n;
    int64_t size[LABELS];   /* broadcast */
    labels out;
    uint8_t rank[LABELS];   /* the order: those of the result first */
    size_t num_ellipsis;    /* dimensions that "..." stands for */
    bool plans;             /* finds the strides of the result, and computes nothing */
} einsum;

/* ---- reading the equation ------------------------------------------------------------------ */

static int label_of(char letter)
{
    if (letter >= 'A' && letter <= 'Z')
        return letter - 'A';
    return letter >= 'a' && letter <= 'z' ? letter - 'a' + 26 : -1;
}

/* Labels of one term, up to a ',' or "->"; *text moves behind it. `dims` is what "..." stands for:
 * the last dimensions of the longest ellipsis. */
static cfx_status read_term(cfxi_call *c, const char **text, size_t dims, labels *out, bool *dots)
{
    const char *s = *text;
    out->n = 0;
    *dots = false;
    for (; *s && *s != ',' && *s != '-'; s++) {
        int label = label_of(*s);
        if (*s == ' ')
            continue;
        if (out->n + dims >= LABELS)
            return cfxi_fail(c, CFX_E_SHAPE, "einsum(): too many subscripts");
        if (s[0] == '.' && s[1] == '.' && s[2] == '.' && !*dots) {
            *dots = true;
            for (size_t d = 0; d < dims; d++)
                out->at[out->n++] = (uint8_t)(LETTERS + CFX_MAX_DIMS - dims + d);
            s += 2;
        } else if (label >= 0) {
            out->at[out->n++] = (uint8_t)label;
        } else {
            return cfxi_fail(c, CFX_E_SHAPE, "einsum(): invalid subscript given: '%c'", *s);
        }
    }
    *text = s;
    return CFX_OK;
}

static cfx_status term_mismatch(cfxi_call *c, size_t i, size_t letters, size_t ndim)
{
    return cfxi_fail(c, CFX_E_SHAPE, "einsum(): the number of subscripts in the equation (%zu) "
                     "does "
                     "not match the number of dimensions (%zu) for operand %zu", letters, ndim, i);
}

/* The dimensions that operand i's ellipsis stands for. */
static cfx_status ellipsis_of(einsum *e, const char **text, size_t i, size_t *dims)
{
    labels letters;
    bool dots;
    CFX_TRY(read_term(e->c, text, 0, &letters, &dots));
    size_t ndim = e->tensors[i].as.tensor->ndim;
    if (letters.n > ndim || (!dots && letters.n != ndim))
        return term_mismatch(e->c, i, letters.n, ndim);
    *dims = dots ? ndim - letters.n : 0;
    return CFX_OK;
}

static cfx_status next_term(einsum *e, const char **text, size_t i)
{
    bool last = i + 1 == e->n;
    if (**text == ',' && !last) {
        ++*text;
        return CFX_OK;
    }
    if (last && **text != ',')
        return CFX_OK;
    return cfxi_fail(e->c, CFX_E_SHAPE, "einsum(): %s operands were provided than specified in the "
                     "equation", last ? "fewer" : "more");
}

/* Sizes of labels, as operand i has them. */
static cfx_status note_sizes(einsum *e, size_t i, const labels *term, size_t *count)
{
    const cfx_tensor *t = e->tensors[i].as.tensor;
    for (size_t d = 0; d < term->n; d++) {
        uint8_t label = term->at[d];
        int64_t *size = &e->size[label];
        const int64_t before = *size;
        if (count[label]++ == 0)
            *size = t->size[d];
        else if (!cfxi_rt_join_sizes(e->c, size, t->size[d]))
            return cfxi_fail(e->c, CFX_E_SHAPE, "einsum(): operands do not broadcast: one "
                             "subscript has the sizes %lld and %lld", (long long)before,
                             (long long)t->size[d]);
    }
    return CFX_OK;
}

/* After "->", or all labels that stand once, in alphabetical order. */
static cfx_status read_output(einsum *e, const char *text, const size_t *count)
{
    bool dots;
    if (text[0] == '-' && text[1] == '>') {
        text += 2;
        CFX_TRY(read_term(e->c, &text, e->num_ellipsis, &e->out, &dots));
        if (*text)
            return cfxi_fail(e->c, CFX_E_SHAPE, "einsum(): invalid subscript given after the "
                             "arrow: '%c'", *text);
        set seen = 0;
        for (size_t d = 0; d < e->out.n; d++) {
            uint8_t label = e->out.at[d];
            if (IN(seen, label) || (label < LETTERS && count[label] == 0))
                return cfxi_fail(e->c, CFX_E_SHAPE, "einsum(): an output subscript appears more "
                                 "than once, or not in any operand");
            seen |= (set)1 << label;
        }
        return CFX_OK;
    }
    if (*text)
        return cfxi_fail(e->c, CFX_E_SHAPE, "einsum(): invalid subscript given: '%c'", *text);
    for (size_t d = LABELS - e->num_ellipsis; d < LABELS; d++)
        e->out.at[e->out.n++] = (uint8_t)d;
    for (uint8_t label = 0; label < LETTERS; label++)
        if (count[label] == 1)
            e->out.at[e->out.n++] = label;
    return CFX_OK;
}

static cfx_status read_equation(einsum *e, cfxi_call *c, labels *terms)
{
    size_t count[LABELS] = {0};
    size_t dims[CFXI_MOST_PARAMS];
    const char *text = cfxi_rt_str(c, 0);
    bool dots;
    *e = (einsum){.c = c};
    e->tensors = cfxi_rt_list(c, 1, &e->n);
    if (e->n == 0 || e->n > CFXI_MOST_PARAMS)
        return cfxi_fail(c, CFX_E_VALUE, "einsum(): expected 1 to %d operands, got %zu",
                         CFXI_MOST_PARAMS, e->n);
    for (size_t i = 0; i < e->n; i++) {
        CFX_TRY(ellipsis_of(e, &text, i, &dims[i]));
        e->num_ellipsis = dims[i] > e->num_ellipsis ? dims[i] : e->num_ellipsis;
        CFX_TRY(next_term(e, &text, i));
    }
    text = cfxi_rt_str(c, 0);
    for (size_t i = 0; i < e->n; i++) {
        CFX_TRY(read_term(c, &text, dims[i], &terms[i], &dots));
        CFX_TRY(note_sizes(e, i, &terms[i], count));
        CFX_TRY(next_term(e, &text, i));
    }
    CFX_TRY(read_output(e, text, count));
    if (e->out.n > CFX_MAX_DIMS)
        return cfxi_fail(c, CFX_E_SHAPE, "einsum(): the result would have more than %d dimensions",
                         CFX_MAX_DIMS);
    memset(e->rank, UINT8_MAX, sizeof e->rank);
    for (size_t d = 0; d < e->out.n; d++)
        e->rank[e->out.at[d]] = (uint8_t)d;
    for (uint8_t label = 0, next = (uint8_t)e->out.n; label < LABELS; label++)
        if (e->rank[label] == UINT8_MAX)
            e->rank[label] = next++;
    return CFX_OK;
}

/* ---- operands ------------------------------------------------------------------------------ */

static int find(const operand *o, uint8_t label)
{
    for (int d = 0; d < o->t.ndim; d++)
        if (o->label[d] == label)
            return d;
    return -1;
}

/* Diagonals of labels that stand twice. */
static cfx_status operand_of(const einsum *e, size_t i, const labels *term, operand *o)
{
    const cfx_tensor *t = e->tensors[i].as.tensor;
    *o = (operand){.t = cfxi_linalg_shown(t)};
    o->t.ndim = 0;
    for (size_t d = 0; d < term->n; d++) {
        int at = find(o, term->at[d]);
        if (at >= 0) {
            if (o->t.size[at] != t->size[d])
                return cfxi_fail(e->c, CFX_E_SHAPE, "einsum(): a subscript is repeated for operand "
                                 "%zu but the sizes don't match, %lld != %lld", i,
                                 (long long)t->size[d], (long long)o->t.size[at]);
            o->t.stride[at] += t->stride[d];
            continue;
        }
        o->label[o->t.ndim] = term->at[d];
        o->t.size[o->t.ndim] = t->size[d];
        o->t.stride[o->t.ndim++] = t->stride[d];
    }
    return CFX_OK;
}

static set labels_of(const operand *o, bool long_only)
{
    set s = 0;
    for (size_t d = 0; d < o->t.ndim; d++)
        if (!long_only || o->t.size[d] != 1)
            s |= (set)1 << o->label[d];
    return s;
}

/* `o`'s dimensions with these labels, in the order of ranks, appended to `t`. Those it does not
 * have are of size 1. */
static void append_labels(const einsum *e, const operand *o, set wanted, cfx_tensor *t)
{
    for (unsigned rank = 0; rank < LABELS; rank++)
        for (uint8_t label = 0; label < LABELS; label++) {
            if (e->rank[label] != rank || !IN(wanted, label) || t->ndim == CFX_MAX_DIMS)
                continue;
            int d = find(o, label);
            t->size[t->ndim] = d < 0 ? 1 : o->t.size[d];
            t->stride[t->ndim++] = d < 0 ? 0 : o->t.stride[d];
        }
}

/* Merges dimensions [first, ndim) of t into one; false if their strides do not allow it. */
static bool merge(cfx_tensor *t, size_t first)
{
    int64_t size = 1;
    int64_t stride = 0;
    for (size_t d = t->ndim; d-- > first;) {
        if (t->size[d] == 1)
            continue;
        if (size > 1 && t->stride[d] != stride * size)
            return false;
        if (size == 1)
            stride = t->stride[d];
        size *= t->size[d];
    }
    t->size[first] = size;
    t->stride[first] = stride;
    t->ndim = (uint8_t)(first + 1);
    return true;
}

/* [batch..., first, second] of an operand, each of the last two one dimension: a view, or a copy,
 * which *made owns. */
static cfx_status as_matrices(const einsum *e, const operand *o, set batch, set first, set second,
                              cfx_tensor *t, cfx_tensor **made)
{
    cfx_tensor all = cfxi_linalg_shown(&o->t);
    all.ndim = 0;
    append_labels(e, o, batch, &all);
    size_t start = all.ndim;
    append_labels(e, o, first, &all);
    cfx_tensor one = cfxi_linalg_shown(&all);
    cfx_tensor two = cfxi_linalg_shown(&o->t);
    two.ndim = 0;
    append_labels(e, o, second, &two);
    if (start + 2 > CFX_MAX_DIMS || (size_t)all.ndim + two.ndim > CFX_MAX_DIMS)
        return cfxi_fail(e->c, CFX_E_SHAPE, "einsum(): an intermediate result would have more than "
                         "%d dimensions",
                         CFX_MAX_DIMS);
    *t = cfxi_linalg_shown(&one);
    if (merge(t, start) && merge(&two, 0)) {
        t->size[t->ndim] = two.size[0];
        t->stride[t->ndim++] = two.stride[0];
        return CFX_OK;
    }
    two.ndim = 0;
    append_labels(e, o, second, &two);
    for (size_t d = 0; d < two.ndim; d++) {
        all.size[all.ndim] = two.size[d];
        all.stride[all.ndim++] = two.stride[d];
    }
    *made = cfx_tensor_new((cfx_dtype)all.dtype, all.size, all.ndim, e->c->rt->allocator,
                           e->c->err);
    if (!*made)
        return e->c->err->status;
    CFX_TRY(cfxi_rt_copy(e->c->rt, *made, &all, e->c->err));
    *t = cfxi_linalg_shown(*made);
    int64_t sizes[2] = {1, 1};
    for (size_t d = start; d < all.ndim; d++)
        sizes[d >= one.ndim] *= all.size[d];
    t->ndim = (uint8_t)(start + 2);
    t->size[start] = sizes[0], t->size[start + 1] = sizes[1];
    t->stride[start + 1] = (int64_t)cfxi_tensor_itemsize(t);
    t->stride[start] = t->stride[start + 1] * sizes[1];
    return CFX_OK;
}

/* ---- products ------------------------------------------------------------------------------ */

/* A new tensor with these labels, groups one after the other, each by rank; sizes as given by the
 * operands. */
static cfx_status result_of(const einsum *e, const operand *a, const operand *b, const set *groups,
                            size_t n, operand *out)
{
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim = 0;
    for (size_t g = 0; g < n; g++)
        for (unsigned rank = 0; rank < LABELS; rank++)
            for (uint8_t label = 0; label < LABELS; label++) {
                if (e->rank[label] != rank || !IN(groups[g], label))
                    continue;
                if (ndim == CFX_MAX_DIMS)
                    return cfxi_fail(e->c, CFX_E_SHAPE, "einsum(): an intermediate result would "
                                     "have more than %d dimensions", CFX_MAX_DIMS);
                int da = find(a, label);
                int db = b ? find(b, label) : -1;
                int64_t size = da < 0 ? 1 : a->t.size[da];
                out->label[ndim] = label;
                sizes[ndim++] = db >= 0 && size == 1 ? b->t.size[db] : size;
            }
    const cfx_allocator *allocator = e->c->rt->allocator;
    const cfx_dtype dtype = (cfx_dtype)a->t.dtype;
    out->owner = e->plans ? cfxi_tensor_header(dtype, sizes, ndim, allocator, e->c->err)
                          : cfx_tensor_new(dtype, sizes, ndim, allocator, e->c->err);
    if (!out->owner)
        return e->c->err->status;
    out->t = cfxi_linalg_shown(out->owner);
    return CFX_OK;
}

static const cfxi_factors plain_product = {.alpha = {1, 0}};

/* `o` summed over these labels: a product with ones. */
static cfx_status multiply_ones(const einsum *e, const operand *o, set kept, set gone,
                                const operand *out)
{
    const double number[2] = {1, 0};
    double one_memory[2];
    cfx_tensor rows, *made = NULL;
    cfx_status status = as_matrices(e, o, 0, kept, gone, &rows, &made);
    if (status == CFX_OK) {
        cfx_tensor one = cfxi_linalg_shown(&rows);
        cfxi_tensor_store_complex((cfx_dtype)one.dtype, one_memory, number);
        one.data = (char *)one_memory;
        one.size[0] = rows.size[1], one.size[1] = 1;
        one.stride[0] = one.stride[1] = 0;
        cfx_tensor sums = cfxi_linalg_shown(out->owner);
        merge(&sums, 0);
        sums.size[1] = 1, sums.stride[1] = (int64_t)cfxi_tensor_itemsize(&sums);
        sums.ndim = 2;
        status = cfxi_linalg_product(e->c, &sums, &rows, &one, &plain_product);
    }
    cfx_tensor_release(made);
    return status;
}

/* Sums `o` over these labels. */
static cfx_status sum_out(const einsum *e, operand *o, set gone)
{
    const set kept = labels_of(o, false) & ~gone;
    operand out = {.owner = NULL};
    CFX_TRY(result_of(e, o, NULL, &kept, 1, &out));
    const cfx_status status = e->plans ? CFX_OK : multiply_ones(e, o, kept, gone, &out);
    if (status != CFX_OK) {
        cfx_tensor_release(out.owner);
        return status;
    }
    cfx_tensor_release(o->owner);
    *o = out;
    return CFX_OK;
}

/* A tensor of its own over an operand, with a dimension for each of these labels, by rank. INVALID
 * with an error set. */
static cfx_datum view_of(const einsum *e, const operand *o, set wanted)
{
    cfx_tensor t = cfxi_linalg_shown(&o->t);
    t.ndim = 0;
    append_labels(e, o, wanted, &t);
    cfx_tensor *made = cfxi_tensor_header((cfx_dtype)t.dtype, t.size, t.ndim,
                                          e->c->rt->allocator, e->c->err);
    if (!made)
        return cfx_datum_invalid();
    memcpy(made->stride, t.stride, sizeof t.stride);
    if (cfxi_tensor_share(made, &o->t, 0, e->c->err) == CFX_OK)
        return cfx_datum_tensor(made);
    cfx_tensor_release(made);
    return cfx_datum_invalid();
}

/* The product of operands, element by element: a tensor with these labels, by rank. */
static cfx_tensor *product_of(const einsum *e, const operand *a, const operand *b, set all)
{
    const cfx_datum args[2] = {view_of(e, a, all), view_of(e, b, all)};
    cfx_tensor *product = NULL;
    if (args[0].kind != CFX_DATUM_INVALID && args[1].kind != CFX_DATUM_INVALID)
        product = cfxi_rt_sub_tensor(e->c, CFX_OPID_mul, args, 2);
    cfx_datum_release(args[0]);
    cfx_datum_release(args[1]);
    return product;
}

/* Its header alone. */
static cfx_tensor *describe_product(const einsum *e, const operand *a, const operand *b, set all)
{
    cfxi_call c = {.rt = e->c->rt, .err = e->c->err};
    cfx_tensor shown[2];
    const cfx_tensor *const tensors[] = {&shown[0], &shown[1]};
    for (size_t i = 0; i < 2; i++) {
        shown[i] = cfxi_linalg_shown(e->tensors[0].as.tensor);  /* has memory: strides count */
        shown[i].ndim = 0;
        append_labels(e, i ? b : a, all, &shown[i]);
    }
    const cfx_status status =
        cfxi_rt_result_broadcast(&c, 0, (cfx_dtype)a->t.dtype, tensors, 2);
    return status == CFX_OK ? cfxi_rt_result_at(&c, 0) : NULL;
}

/* Nothing to sum: the product element by element, in the order of ranks. */
static cfx_status multiply_elements(const einsum *e, const operand *a, const operand *b,
                                    operand *out)
{
    const set all = labels_of(a, false) | labels_of(b, false);
    out->owner = e->plans ? describe_product(e, a, b, all) : product_of(e, a, b, all);
    if (!out->owner)
        return e->c->err->status;
    out->t = cfxi_linalg_shown(out->owner);
    size_t n = 0;
    for (unsigned rank = 0; rank < LABELS; rank++)
        for (uint8_t label = 0; label < LABELS; label++)
            if (e->rank[label] == rank && IN(all, label) && n < CFX_MAX_DIMS)
                out->label[n++] = label;
    return CFX_OK;
}

/* Batches of matrices; *a becomes the product, *b is done with. */
static cfx_status multiply_matrices(const einsum *e, const operand *a, const operand *b, set batch,
                                    set rows, set columns, set inner, operand *out)
{
    const set groups[] = {batch, rows, columns};
    cfx_tensor left, right, *made[2] = {NULL, NULL};
    CFX_TRY(result_of(e, a, b, groups, 3, out));
    if (e->plans)
        return CFX_OK;
    cfx_status status = as_matrices(e, a, batch, rows, inner, &left, &made[0]);
    if (status == CFX_OK)
        status = as_matrices(e, b, batch, inner, columns, &right, &made[1]);
    if (status == CFX_OK) {
        cfx_tensor whole = cfxi_linalg_shown(out->owner);
        size_t n = (size_t)left.ndim;
        whole.ndim = left.ndim;
        whole.size[n - 2] = left.size[n - 2], whole.size[n - 1] = right.size[n - 1];
        whole.stride[n - 1] = (int64_t)cfxi_tensor_itemsize(&whole);
        whole.stride[n - 2] = whole.stride[n - 1] * whole.size[n - 1];
        status = cfxi_linalg_product(e->c, &whole, &left, &right, &plain_product);
    }
    cfx_tensor_release(made[0]);
    cfx_tensor_release(made[1]);
    return status;
}

/* Whether all of these labels come before all of those. */
static bool is_before(const einsum *e, set these, set those)
{
    int last = -1;
    int first = UINT8_MAX;
    for (uint8_t label = 0; label < LABELS; label++) {
        const int rank = e->rank[label];
        if (IN(these, label) && rank > last)
            last = rank;
        if (IN(those, label) && rank < first)
            first = rank;
    }
    return last < first;
}

/* a = a b, summed over what `needed` does not have. */
static cfx_status multiply_pair(const einsum *e, operand *a, operand *b, set needed)
{
    operand out = {.owner = NULL};
    const set all = labels_of(a, false) | labels_of(b, false);
    set in_a = labels_of(a, true);
    set in_b = labels_of(b, true);
    if (in_a & ~in_b & ~needed)
        CFX_TRY(sum_out(e, a, in_a & ~in_b & ~needed));
    if (in_b & ~in_a & ~needed)
        CFX_TRY(sum_out(e, b, in_b & ~in_a & ~needed));
    in_a = labels_of(a, true);
    in_b = labels_of(b, true);
    const set inner = in_a & in_b & ~needed;
    const set rows = in_a & ~in_b;
    /* What is of size 1 in both torch takes for the second's, what it has summed included: views
     * of the result depend on its strides, so they are those of torch's product. (ab)' = b'a' */
    const set columns = (all & ~in_a & ~in_b & needed) | (in_b & ~in_a);
    const bool turned = is_before(e, columns | (all & ~needed & ~inner), rows);
    cfx_status status =
        inner ? multiply_matrices(e, turned ? b : a, turned ? a : b, in_a & in_b & needed,
                                  turned ? columns : rows, turned ? rows : columns, inner, &out)
              : multiply_elements(e, a, b, &out);
    if (status != CFX_OK) {
        cfx_tensor_release(out.owner);
        return status;
    }
    cfx_tensor_release(a->owner);
    *a = out;
    return CFX_OK;
}

/* All operands multiplied; `a` becomes the product, and is the caller's also if that fails. */
static cfx_status multiply_all(const einsum *e, const labels *terms, operand *a)
{
    operand b;
    set wanted = 0;
    for (size_t d = 0; d < e->out.n; d++)
        wanted |= (set)1 << e->out.at[d];
    CFX_TRY(operand_of(e, 0, &terms[0], a));
    if (e->n == 1 && labels_of(a, false) & ~wanted)  /* of size 1, too: no view then */
        return sum_out(e, a, labels_of(a, false) & ~wanted);
    cfx_status status = CFX_OK;
    for (size_t i = 1; status == CFX_OK && i < e->n; i++) {
        set needed = wanted;
        for (size_t later = i + 1; later < e->n; later++)
            for (size_t d = 0; d < terms[later].n; d++)
                needed |= (set)1 << terms[later].at[d];
        status = operand_of(e, i, &terms[i], &b);
        if (status == CFX_OK)
            status = multiply_pair(e, a, &b, needed);
        cfx_tensor_release(b.owner);
    }
    return status;
}

/* The result is `o` with its dimensions in the order of the output. */
static cfx_status deliver(const einsum *e, const operand *o)
{
    cfxi_call *c = e->c;
    int64_t strides[CFX_MAX_DIMS];
    cfx_tensor *out = cfxi_rt_result_at(c, 0);
    for (size_t d = 0; d < e->out.n; d++) {
        int at = find(o, e->out.at[d]);
        strides[d] = at < 0 || o->t.size[at] == 1 ? 0 : o->t.stride[at];
        if (at >= 0 && out->size[d] == 1)
            strides[d] = o->t.stride[at];
    }
    return cfxi_rt_result_view(c, 0, o->owner ? o->owner : e->tensors[0].as.tensor, strides, 0);
}

static cfx_status compute(const einsum *e, const labels *terms)
{
    operand product = {.owner = NULL};
    cfx_status status = multiply_all(e, terms, &product);
    if (status == CFX_OK)
        status = deliver(e, &product);
    cfx_tensor_release(product.owner);
    return status;
}

/* ---- rule ---------------------------------------------------------------------------------- */

/* Whether something is summed over that is no product's: a label that only one operand has. Such
 * sums of integers are int64, as sum()'s are; those inside matrix products keep the type. */
static bool sums_alone(const einsum *e, const labels *terms)
{
    uint8_t have[LABELS] = {0};
    for (size_t i = 0; i < e->n; i++) {
        set seen = 0;
        for (size_t d = 0; d < terms[i].n; d++) {
            const uint8_t label = terms[i].at[d];
            const bool counts = e->n == 1 || e->tensors[i].as.tensor->size[d] != 1;
            have[label] = (uint8_t)(have[label] + (counts && !IN(seen, label)));
            seen |= (set)1 << label;
        }
    }
    for (size_t d = 0; d < e->out.n; d++)
        have[e->out.at[d]] = 0;
    for (size_t label = 0; label < LABELS; label++)
        if (have[label] == 1)
            return true;
    return false;
}

cfx_status cfxi_rule_einsum(cfxi_call *c)
{
    einsum e;
    labels terms[CFXI_MOST_PARAMS];
    int64_t sizes[CFX_MAX_DIMS];
    CFX_TRY(read_equation(&e, c, terms));
    cfx_dtype dtype = (cfx_dtype)e.tensors[0].as.tensor->dtype;
    for (size_t i = 1; i < e.n; i++)
        if (e.tensors[i].as.tensor->dtype != dtype)
            return cfxi_fail(c, CFX_E_SHAPE, "expected m1 and m2 to have the same dtype, but got: "
                             "%s != %s", cfx_dtype_name(dtype),
                             cfx_dtype_name((cfx_dtype)e.tensors[i].as.tensor->dtype));
    for (size_t d = 0; d < e.out.n; d++)
        sizes[d] = e.size[e.out.at[d]];
    if ((cfx_dtype_is_integer(dtype) || dtype == CFX_DTYPE_BOOL) && sums_alone(&e, terms))
        dtype = CFX_DTYPE_INT64;
    CFX_TRY(cfxi_rt_result(c, 0, dtype, sizes, e.out.n));
    e.plans = c->planner != NULL;
    return e.plans && dtype == (cfx_dtype)e.tensors[0].as.tensor->dtype ? compute(&e, terms)
                                                                         : CFX_OK;
}

/* ---- kernel -------------------------------------------------------------------------------- */

/* The same of operands in the result's type. */
static cfx_status run_converted(cfxi_call *c, const cfx_datum *tensors, size_t n, cfx_dtype dtype)
{
    cfx_datum items[CFXI_MOST_PARAMS];
    cfx_datum args[2] = {c->args[0], cfx_datum_none()};
    cfx_tensor *result = NULL;
    size_t made = 0;
    for (cfx_tensor *t; made < n; items[made++] = cfx_datum_tensor(t))
        if (!(t = cfxi_rt_contiguous(c, tensors[made].as.tensor, dtype)))
            break;
    if (made == n)
        args[1] = cfx_datum_seq(CFX_DATUM_LIST, items, n, c->rt->allocator, c->err);
    for (size_t i = 0; i < made; i++)
        cfx_datum_release(items[i]);
    if (args[1].kind == CFX_DATUM_LIST)
        result = cfxi_rt_sub_tensor(c, CFX_OPID_einsum, args, 2);
    cfx_datum_release(args[1]);
    if (!result)
        return c->err->status;
    cfxi_rt_result_datum(c, 0, cfx_datum_tensor(result));
    return CFX_OK;
}

cfx_status cfxi_kernel_einsum(cfxi_call *c)
{
    einsum e;
    labels terms[CFXI_MOST_PARAMS];
    CFX_TRY(read_equation(&e, c, terms));
    if (cfxi_rt_result_at(c, 0)->dtype != e.tensors[0].as.tensor->dtype)
        return run_converted(c, e.tensors, e.n, (cfx_dtype)cfxi_rt_result_at(c, 0)->dtype);
    return compute(&e, terms);
}
