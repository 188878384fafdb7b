/* export_values.c - values of the graph as ONNX values: types, sizes, numbers.
 *
 * A number that is known is a constant. A size that is not is taken from the shape of its tensor
 * when someone needs it: most sizes of a graph are never asked for.
 */
#include "dim/dim_impl.h"
#include "export_impl.h"

bool cfxi_export_is_number(const cfxi_ev *v) { return cfxi_rt_is_number(v->datum); }

bool cfxi_export_is_known(const cfxi_ev *v)
{
    return cfxi_rt_is_number(v->datum) && !v->datum.symbolic;
}

bool cfxi_export_is_none(const cfxi_ev *v) { return v->datum.kind == CFX_DATUM_NONE; }

cfx_dtype cfxi_export_dtype(const cfxi_ev *v)
{
    return cfxi_rt_is_number(v->datum) ? cfxi_rt_scalar_dtype(v->datum) : v->dtype;
}

bool cfxi_export_is_visible(const cfxi_exporter *x, const cfxi_export_scope *s)
{
    const cfxi_export_scope *at = x->scope;
    while (s && at && at != s)
        at = at->outer;
    return !s || at == s;
}

/* ---- sizes --------------------------------------------------------------------------------- */

int64_t cfxi_export_known_size(const cfxi_exporter *x, const cfxi_ev *v, int64_t dim)
{
    dim = dim < 0 ? dim + v->rank : dim;
    if (!v->sizes || dim < 0 || dim >= v->rank)
        return -1;
    const int64_t size = cfxi_dim_resolve(x->dims, v->sizes[dim], x->err);
    return size < 0 ? -1 : size;
}

/* Shape of a tensor: of one whose elements may have changed, too. */
static cfxi_ev *new_shape(cfxi_exporter *x, cfxi_ev *v)
{
    cfxi_ev *root = cfxi_export_root(v);
    const bool stale = root->stale;
    root->stale = false;
    cfxi_ev *made = cfxi_export_node(x, "Shape", &v, 1);
    root->stale = stale;
    return made;
}

cfxi_ev *cfxi_export_shape(cfxi_exporter *x, cfxi_ev *v)
{
    int64_t sizes[CFX_MAX_DIMS];
    bool known = v->rank >= 0;
    v = cfxi_export_fresh(x, v);
    for (int i = 0; i < v->rank; i++)
        known = (sizes[i] = cfxi_export_known_size(x, v, i)) >= 0 && known;
    if (known)
        return cfxi_export_const_ints(x, sizes, (size_t)v->rank);
    if (!v->shape || !cfxi_export_is_visible(x, v->shape->scope))
        v->shape = new_shape(x, v);
    return v->shape;
}

cfxi_ev *cfxi_export_size(cfxi_exporter *x, cfxi_ev *v, int64_t dim)
{
    if (v->broken || v->rank < 0)
        return &x->broken;
    dim = dim < 0 ? dim + v->rank : dim;
    const int64_t known = cfxi_export_known_size(x, v, dim);
    if (v->dims[dim] && cfxi_export_is_known(v->dims[dim]) == (known >= 0))
        return v->dims[dim];  /* else it was known on some way, and is not here */
    cfxi_ev *size = cfxi_export_room(x, 1, sizeof *size);
    if (!size)
        return &x->broken;
    *size = (cfxi_ev){.rank = 0, .of = v, .dim = dim};
    size->datum = cfx_datum_int(known >= 0 ? known : v->sizes[dim]);
    size->datum.symbolic = known < 0;
    return v->dims[dim] = size;
}

/* Shape and Gather. */
static const char *make_size(cfxi_exporter *x, cfxi_ev *v)
{
    cfxi_ev *inputs[] = {cfxi_export_shape(x, v->of), cfxi_export_const_int(x, v->dim)};
    cfxi_ev *made = cfxi_export_node(x, "Gather", inputs, 2);
    cfxi_export_set_int(x, "axis", 0);
    if (!made->name)
        return "";
    v->scope = made->scope;
    return v->name = made->name;
}

static const char *refuse_stale(cfxi_exporter *x, cfxi_ev *root)
{
    cfxi_export_call c = {.x = x, .node = x->at};
    root->broken = true;  /* told once */
    cfxi_export_refuse(&c, "it reads a tensor that was changed only if a branch or a loop has "
                       "returned that very tensor; return a copy from there");
    return "";
}

const char *cfxi_export_name(cfxi_exporter *x, cfxi_ev *v)
{
    if (v->broken || x->failed)
        return "";
    v = cfxi_export_fresh(x, v);
    if (cfxi_export_root(v)->stale)
        return refuse_stale(x, cfxi_export_root(v));
    if (v->name && cfxi_export_is_visible(x, v->scope))
        return v->name;
    if (cfxi_export_is_known(v)) {
        cfxi_ev *made = cfxi_export_number(x, cfxi_export_dtype(v), v->datum);
        return made->name ? made->name : "";
    }
    if (v->of)
        return make_size(x, v);
    if (v->datum.kind == CFX_DATUM_TENSOR && !cfx_tensor_is_abstract(v->datum.as.tensor)) {
        cfxi_ev *made = cfxi_export_weight(x, v->path ? v->path : "constant",
                                           v->datum.as.tensor);
        v->name = made->name;
        return v->name ? v->name : "";
    }
    cfxi_export_call c = {.x = x, .node = x->at};
    cfxi_export_refuse(&c, "it needs a tensor or a number, and gets a %s",
                       cfx_datum_kind_name((cfx_datum_kind)v->datum.kind));
    return "";
}

cfxi_ev *cfxi_export_one(cfxi_exporter *x, cfxi_ev *v)
{
    const int64_t one[] = {1};
    if (cfxi_export_is_known(v) && v->datum.kind == CFX_DATUM_INT)
        return cfxi_export_const_ints(x, &v->datum.as.i, 1);
    v = cfxi_export_cast(x, v, CFX_DTYPE_INT64);
    cfxi_ev *inputs[] = {v, cfxi_export_const_ints(x, one, 1)};
    return cfxi_export_node(x, "Reshape", inputs, 2);
}

/* Known numbers that follow one another become one constant. */
cfxi_ev *cfxi_export_shape_of(cfxi_exporter *x, cfxi_ev *const *items, size_t n)
{
    cfxi_ev **parts = cfxi_export_room(x, n + 1, sizeof *parts);
    int64_t *known = cfxi_export_room(x, n + 1, sizeof *known);
    size_t num_parts = 0;
    size_t run = 0;
    for (size_t i = 0; parts && known && i <= n; i++) {
        if (i < n && cfxi_export_is_known(items[i])) {
            known[run++] = items[i]->datum.as.i;
            continue;
        }
        if (run > 0)
            parts[num_parts++] = cfxi_export_const_ints(x, known, run);
        run = 0;
        if (i < n)
            parts[num_parts++] = cfxi_export_one(x, items[i]);
    }
    if (x->failed)
        return &x->broken;
    if (num_parts == 0)
        return cfxi_export_const_ints(x, NULL, 0);
    if (num_parts == 1)
        return parts[0];
    cfxi_ev *all = cfxi_export_node(x, "Concat", parts, num_parts);
    cfxi_export_set_int(x, "axis", 0);
    return all;
}

/* ---- types --------------------------------------------------------------------------------- */

cfxi_ev *cfxi_export_cast(cfxi_exporter *x, cfxi_ev *v, cfx_dtype dtype)
{
    if (v->broken || cfxi_export_dtype(v) == dtype)
        return v;
    if (cfxi_export_is_known(v))
        return cfxi_export_number(x, dtype, v->datum);
    if (cfx_dtype_is_complex(dtype) || cfx_dtype_is_complex(cfxi_export_dtype(v))) {
        cfxi_export_call c = {.x = x, .node = x->at};
        return cfxi_export_refuse(&c, "ONNX does not convert complex numbers; keep real and "
                                  "imaginary parts as tensors");
    }
    cfxi_ev *made = cfxi_export_node(x, "Cast", &v, 1);
    cfxi_export_set_int(x, "to", cfxi_onnx_dtype_number(dtype));
    if (!made->broken) {
        made->dtype = dtype;
        made->rank = v->rank;
        made->sizes = v->sizes;
    }
    return made;
}

/* ---- values of the graph ------------------------------------------------------------------- */

static void describe_tensor(cfxi_exporter *x, cfxi_ev *v, const cfx_tensor *t)
{
    const size_t n = cfx_tensor_ndim(t);
    int64_t *sizes = cfxi_export_room(x, n, sizeof *sizes);
    if (!sizes)
        return;
    if (n > 0)
        memcpy(sizes, cfx_tensor_sizes(t), n * sizeof *sizes);
    v->dtype = cfx_tensor_dtype(t);
    v->rank = (int)n;
    v->sizes = sizes;
}

cfxi_ev *cfxi_export_of_datum(cfxi_exporter *x, cfx_datum d)
{
    size_t n;
    cfxi_ev *v = cfxi_export_room(x, 1, sizeof *v);
    if (!v)
        return &x->broken;
    *v = (cfxi_ev){.datum = d, .rank = -1};
    if (d.kind == CFX_DATUM_INT && d.symbolic) {
        const int64_t known = cfxi_dim_resolve(x->dims, d.as.i, x->err);
        if (known > CFX_DIM_UNKNOWN)
            v->datum = cfx_datum_int(known);
    }
    if (d.kind == CFX_DATUM_TENSOR)
        describe_tensor(x, v, d.as.tensor);
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (!items || n == 0)
        return v;
    v->items = cfxi_export_room(x, n, sizeof *v->items);
    v->n = v->items ? n : 0;
    for (size_t i = 0; i < v->n; i++)
        v->items[i] = cfxi_export_of_datum(x, items[i]);
    return v;
}

cfxi_ev *cfxi_export_made(cfxi_exporter *x, const cfxi_ev *made, cfx_dtype dtype,
                          const int64_t *sizes, int rank)
{
    cfx_tensor *t = cfx_tensor_new_abstract(dtype, sizes, (size_t)rank, x->allocator, x->err);
    if (!t)
        return cfxi_export_fail(x);
    cfxi_ev *v = cfxi_export_of_datum(x, cfxi_export_own(x, cfx_datum_tensor(t)));
    if (v->broken || made->broken)
        return &x->broken;
    v->name = made->name;
    v->scope = made->scope;
    return v;
}

cfxi_ev *cfxi_export_list(cfxi_exporter *x, cfxi_ev *const *items, size_t n)
{
    cfxi_ev *v = cfxi_export_room(x, 1, sizeof *v);
    cfxi_ev **copy = cfxi_export_room(x, n, sizeof *copy);
    if (!v || !copy)
        return &x->broken;
    if (n > 0)
        memcpy(copy, items, n * sizeof *copy);
    *v = (cfxi_ev){.items = copy, .n = n, .rank = -1};
    v->datum = cfx_datum_scalar(CFX_DATUM_TUPLE, 0);
    v->datum.kind = CFX_DATUM_INVALID;  /* the walk fills in what is known of it */
    return v;
}
