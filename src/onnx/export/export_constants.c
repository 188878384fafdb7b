/* export_constants.c - numbers, lists and weights as initializers of the outermost graph.
 *
 * Constants that are equal are written once, and so are tied weights: by the tensor that they are.
 */
#include "export_impl.h"

/* ---- small constants ----------------------------------------------------------------------- */

/* What tells two constants apart. */
typedef struct constant {
    cfx_dtype dtype;
    int rank;
    size_t size;           /* bytes of the elements */
    const void *elements;
    cfxi_ev *value;
} constant;

static uint32_t hash_of(const void *item)
{
    const constant *k = item;
    const uint64_t head = cfxi_base_hash_mix((uint64_t)k->dtype, (uint64_t)(k->rank + 1));
    return (uint32_t)cfxi_base_hash_mix(head, cfxi_base_hash_bytes(k->elements, k->size));
}

static bool same_constant(const void *item, const void *key, size_t size)
{
    const constant *a = item;
    const constant *b = key;
    return a->dtype == b->dtype && a->rank == b->rank && a->size == size &&
           memcmp(a->elements, b->elements, size) == 0;
}

static cfxi_onnx_tensor *add_initializer(cfxi_exporter *x, const char *name, cfx_dtype dtype,
                                         const int64_t *sizes, size_t rank)
{
    int64_t *copy = cfxi_export_room(x, rank, sizeof *copy);
    cfxi_vec *all = &x->initializers;
    if (!copy || !cfxi_base_vec_reserve(all, 1, sizeof(cfxi_onnx_tensor), x->allocator)) {
        cfxi_export_fail(x);
        return NULL;
    }
    if (rank > 0)
        memcpy(copy, sizes, rank * sizeof *copy);
    cfxi_onnx_tensor *t = (cfxi_onnx_tensor *)all->data + all->size++;
    *t = (cfxi_onnx_tensor){.name = {name, strlen(name)}, .dtype = cfxi_onnx_dtype_number(dtype)};
    t->sizes.items = copy;
    t->sizes.n = rank;
    t->has |= 1u << CFXI_ONNX_ROW_tensor_raw;  /* also without elements */
    return t;
}

static cfxi_ev *new_initializer(cfxi_exporter *x, const char *name, cfx_dtype dtype,
                                const int64_t *sizes, int rank)
{
    cfxi_ev *v = cfxi_export_room(x, 1, sizeof *v);
    int64_t *copy = cfxi_export_room(x, (size_t)rank, sizeof *copy);
    if (!v || !copy)
        return &x->broken;
    for (int i = 0; i < rank; i++)
        copy[i] = sizes[i];
    *v = (cfxi_ev){.name = name, .dtype = dtype, .rank = rank, .sizes = copy};
    v->datum = cfx_datum_invalid();
    return v;
}

cfxi_ev *cfxi_export_constant(cfxi_exporter *x, cfx_dtype dtype, const void *elements, size_t n,
                              int rank)
{
    const size_t size = n * cfx_dtype_size(dtype);
    if (size == 0)
        elements = "";  /* a list without items */
    const int64_t sizes[] = {(int64_t)n};
    const constant key = {dtype, rank, size, elements, NULL};
    const constant *known =
        cfxi_base_set_find(&x->constants, hash_of(&key), same_constant, &key, size);
    if (known)
        return known->value;
    constant *k = cfxi_export_room(x, 1, sizeof *k);
    void *copy = cfxi_export_room(x, size, 1);
    if (!k || !copy || !cfxi_base_set_reserve(&x->constants, hash_of, x->allocator))
        return cfxi_export_fail(x);
    memcpy(copy, elements, size);
    const char *name =
        cfxi_export_unique(x, cfxi_export_text(x, "constant_%zu", x->constants.size));
    cfxi_onnx_tensor *t = add_initializer(x, name, dtype, sizes, (size_t)rank);
    if (!t)
        return &x->broken;
    t->raw = (cfxi_onnx_elements){copy, size, NULL};
    *k = (constant){dtype, rank, size, copy, new_initializer(x, name, dtype, sizes, rank)};
    cfxi_base_set_insert(&x->constants, hash_of(k), k);
    return k->value;
}

cfxi_ev *cfxi_export_const_int(cfxi_exporter *x, int64_t i)
{
    return cfxi_export_constant(x, CFX_DTYPE_INT64, &i, 1, 0);
}

cfxi_ev *cfxi_export_const_ints(cfxi_exporter *x, const int64_t *ints, size_t n)
{
    return cfxi_export_constant(x, CFX_DTYPE_INT64, ints, n, 1);
}

cfxi_ev *cfxi_export_number(cfxi_exporter *x, cfx_dtype dtype, cfx_datum number)
{
    char element[16] = {0};
    if (!cfx_datum_store(number, dtype, element))
        return &x->broken;
    return cfxi_export_constant(x, dtype, element, 1, 0);
}

cfxi_ev *cfxi_export_like(cfxi_exporter *x, const cfxi_ev *like, double value)
{
    return cfxi_export_number(x, cfxi_export_dtype(like), cfx_datum_float(value));
}

/* ---- weights ------------------------------------------------------------------------------- */

cfxi_ev *cfxi_export_weight(cfxi_exporter *x, const char *name, cfx_tensor *t)
{
    cfxi_ev *known = cfxi_base_pointers_get(&x->weights, t);
    if (known)
        return known;
    const char *own = cfxi_export_unique(x, name);
    const int rank = (int)cfx_tensor_ndim(t);
    const cfx_dtype dtype = cfx_tensor_dtype(t);
    cfxi_onnx_tensor *message = add_initializer(x, own, dtype, cfx_tensor_sizes(t), (size_t)rank);
    cfxi_ev *v = message ? new_initializer(x, own, dtype, cfx_tensor_sizes(t), rank) : &x->broken;
    if (x->failed || !cfxi_base_pointers_set(&x->weights, t, v, x->allocator))
        return cfxi_export_fail(x);
    message->raw.from = t;
    v->datum = cfxi_export_own(x, cfx_datum_tensor(cfx_tensor_retain(t)));
    return v;
}

cfxi_ev *cfxi_export_packed(cfxi_exporter *x, const char *name, int64_t type, cfx_dtype dtype,
                            const void *bytes, size_t size, const cfx_tensor *like)
{
    const char *own = cfxi_export_unique(x, name ? name : "constant");
    cfxi_onnx_tensor *t = add_initializer(x, own, dtype, like->size, like->ndim);
    if (!t)
        return &x->broken;
    t->dtype = type;
    t->raw = (cfxi_onnx_elements){bytes, size, NULL};
    return new_initializer(x, own, dtype, like->size, like->ndim);
}
