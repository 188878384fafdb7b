/* datum.c - run-time values: counted strings and containers around tensors and numbers. */
#include "tensor_impl.h"

#include <cfx/embed/graph.h>

cfx_datum cfx_datum_from_text(cfx_datum_kind kind, const char *text, size_t size,
                              const cfx_allocator *allocator, cfx_error *err)
{
    size_t block;
    allocator = cfxi_base_allocator(allocator);
    cfx_text *t = NULL;
    if (cfxi_base_mul_size(size, 1, sizeof *t + 1, &block))
        t = cfxi_base_alloc(allocator, block);
    if (!t) {
        cfxi_base_nomem(err);
        return cfx_datum_invalid();
    }
    atomic_init(&t->refs, 1);
    t->size = size;
    t->allocator = allocator;
    if (size)
        memcpy(t->data, text, size);
    t->data[size] = '\0';
    cfx_datum d = cfx_datum_scalar(kind, 0);
    d.as.text = t;
    return d;
}

/* Lists and dicts count as at least this deep: items may be assigned later. */
enum { ROOM = 64 };

static bool is_mutable(cfx_datum_kind kind)
{
    return kind == CFX_DATUM_LIST || kind == CFX_DATUM_DICT;
}

/* Containers are walked recursively, and a loop can put its state into a list at every turn: their
 * depth is checked where they are made. */
static cfx_status check_items(cfx_datum_kind kind, const cfx_datum *items, size_t n,
                              uint32_t *depth, bool *fixed, cfx_error *err)
{
    *fixed = !is_mutable(kind);
    *depth = *fixed ? 1 : ROOM;
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind == CFX_DATUM_INVALID)
            return cfxi_base_expect(NULL, "list item", err);
        if (cfxi_tensor_is_seq(items[i]) && items[i].as.seq->depth >= *depth)
            *depth = items[i].as.seq->depth + 1;
        *fixed = *fixed && (!cfxi_tensor_is_seq(items[i]) || items[i].as.seq->fixed);
    }
    if (*depth >= CFX_MAX_DEPTH + ROOM)
        return cfx_error_set(err, CFX_E_LIMIT, "lists and tuples nest more than %d deep",
                             CFX_MAX_DEPTH);
    if (kind == CFX_DATUM_DICT ? n % 2 != 0 : kind == CFX_DATUM_SLICE && n != 3)
        return cfx_error_set(err, CFX_E_VALUE, "a %s cannot be made from %zu items",
                             cfx_datum_kind_name(kind), n);
    return CFX_OK;
}

cfx_datum cfx_datum_seq(cfx_datum_kind kind, const cfx_datum *items, size_t n,
                        const cfx_allocator *allocator, cfx_error *err)
{
    cfx_datum d = cfx_datum_invalid();
    uint32_t depth;
    bool fixed;
    if (check_items(kind, items, n, &depth, &fixed, err) != CFX_OK)
        return d;
    size_t block;
    allocator = cfxi_base_allocator(allocator);
    cfx_data *s = cfxi_base_mul_size(n, sizeof *items, sizeof *s, &block)
                      ? cfxi_base_alloc(allocator, block)
                      : NULL;
    if (!s) {
        cfxi_base_nomem(err);
        return d;
    }
    atomic_init(&s->refs, 1);
    s->op = 0;
    s->depth = depth;
    s->fixed = fixed;
    s->changes = 0;
    s->size = n;
    s->capacity = n;
    s->allocator = allocator;
    s->items = s->own;
    s->room = n;
    for (size_t i = 0; i < n; i++)
        s->items[i] = cfx_datum_retain(items[i]);
    d.kind = (uint32_t)kind;
    d.as.seq = s;
    return d;
}

cfx_datum *cfx_datum_items(cfx_datum d, size_t *n)
{
    *n = cfxi_tensor_is_seq(d) ? d.as.seq->size : 0;
    return cfxi_tensor_is_seq(d) ? d.as.seq->items : NULL;
}

uint32_t cfx_datum_changes(cfx_datum d) { return cfxi_tensor_is_seq(d) ? d.as.seq->changes : 0; }

uint32_t cfx_datum_row(cfx_datum d) { return d.kind == CFX_DATUM_TUPLE ? d.as.seq->op : 0; }

void cfx_datum_set_row(cfx_datum d, uint32_t row)
{
    if (d.kind == CFX_DATUM_TUPLE)
        d.as.seq->op = row;
}

const char *cfx_datum_text(cfx_datum d, size_t *size)
{
    if (size)
        *size = cfxi_tensor_is_text(d) ? d.as.text->size : 0;
    return cfxi_tensor_is_text(d) ? d.as.text->data : NULL;
}

cfx_datum cfx_datum_retain(cfx_datum d)
{
    if (d.kind == CFX_DATUM_TENSOR)
        cfx_tensor_retain(d.as.tensor);
    else if (cfxi_tensor_is_seq(d))
        atomic_fetch_add_explicit(&d.as.seq->refs, 1, memory_order_relaxed);
    else if (cfxi_tensor_is_text(d))
        atomic_fetch_add_explicit(&d.as.text->refs, 1, memory_order_relaxed);
    return d;
}

/* Recursive: containers nest up to CFX_MAX_DEPTH. */
void cfx_datum_release(cfx_datum d)
{
    if (d.kind == CFX_DATUM_TENSOR) {
        cfx_tensor_release(d.as.tensor);
    } else if (cfxi_tensor_is_text(d)) {
        if (atomic_fetch_sub_explicit(&d.as.text->refs, 1, memory_order_acq_rel) == 1)
            cfxi_base_free(d.as.text->allocator, d.as.text, sizeof(cfx_text) + d.as.text->size + 1);
    } else if (cfxi_tensor_is_seq(d)) {
        cfx_data *s = d.as.seq;
        if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
            return;
        for (size_t i = 0; i < s->size; i++)
            cfx_datum_release(s->items[i]);
        if (s->items != s->own)
            cfxi_base_free(s->allocator, s->items, s->capacity * sizeof s->items[0]);
        cfxi_base_free(s->allocator, s, sizeof *s + s->room * sizeof s->own[0]);
    }
}

const char *cfx_datum_kind_name(cfx_datum_kind kind)
{
    switch (kind) {
    case CFX_DATUM_INVALID: return "nothing";
    case CFX_DATUM_NONE: return "None";
    case CFX_DATUM_ELLIPSIS: return "ellipsis";
    case CFX_DATUM_BOOL: return "bool";
    case CFX_DATUM_INT: return "int";
    case CFX_DATUM_FLOAT: return "float";
    case CFX_DATUM_COMPLEX: return "complex";
    case CFX_DATUM_DTYPE: return "dtype";
    case CFX_DATUM_LAYOUT: return "layout";
    case CFX_DATUM_MEMORY_FORMAT: return "memory_format";
    case CFX_DATUM_STR: return "str";
    case CFX_DATUM_DEVICE: return "device";
    case CFX_DATUM_TENSOR: return "tensor";
    case CFX_DATUM_LIST: return "list";
    case CFX_DATUM_TUPLE: return "tuple";
    case CFX_DATUM_DICT: return "dict";
    case CFX_DATUM_SLICE: return "slice";
    case CFX_DATUM_REGION: return "region";
    }
    return "nothing";
}

/* ---- printing ------------------------------------------------------------------------------ */

static void print_int(cfxi_out *out, int64_t i, const cfx_dims *dims)
{
    char digits[CFXI_NUMBER_SIZE];
    if (cfx_dim_is_symbol(i) && dims)
        cfx_dims_print(dims, i, cfxi_base_out_sink(out), NULL);
    else if (i == CFX_DIM_UNKNOWN)
        cfxi_base_out_char(out, '?');
    else
        cfxi_base_out_write(out, digits, cfxi_base_format_int(i, digits));
}

static void print_tensor(cfxi_out *out, const cfx_tensor *t, const cfx_dims *dims)
{
    cfxi_base_out_str(out, cfx_dtype_name((cfx_dtype)t->dtype));
    cfxi_base_out_char(out, '[');
    for (size_t i = 0; i < t->ndim; i++) {
        cfxi_base_out_str(out, i ? ", " : "");
        print_int(out, t->size[i], dims);
    }
    cfxi_base_out_char(out, ']');
}

static void print_datum(cfxi_out *out, cfx_datum d, const cfx_dims *dims);

static void print_seq(cfxi_out *out, cfx_datum d, const cfx_dims *dims)
{
    static const char *const brackets[] = {"[]", "()", "{}"};
    const char *pair = d.kind == CFX_DATUM_SLICE ? "()" : brackets[d.kind - CFX_DATUM_LIST];
    size_t n;
    cfx_datum *items = cfx_datum_items(d, &n);
    cfxi_base_out_str(out, d.kind == CFX_DATUM_SLICE ? "slice" : "");
    cfxi_base_out_char(out, pair[0]);
    for (size_t i = 0; i < n && out->status == CFX_OK; i++) {
        if (i)
            cfxi_base_out_str(out, d.kind == CFX_DATUM_DICT && i % 2 ? ": " : ", ");
        print_datum(out, items[i], dims);
    }
    if (d.kind == CFX_DATUM_TUPLE && n == 1)
        cfxi_base_out_char(out, ',');
    cfxi_base_out_char(out, pair[1]);
}

static void print_float(cfxi_out *out, double f)
{
    char digits[CFXI_NUMBER_SIZE];
    cfxi_base_out_write(out, digits, cfxi_base_format_float(f, digits));
}

static void print_datum(cfxi_out *out, cfx_datum d, const cfx_dims *dims)
{
    if (d.symbolic && d.kind != CFX_DATUM_INT) {  /* a bool or float that nobody knows */
        cfxi_base_out_char(out, '?');
        return;
    }
    switch ((cfx_datum_kind)d.kind) {
    case CFX_DATUM_BOOL: cfxi_base_out_str(out, d.as.b ? "True" : "False"); break;
    case CFX_DATUM_INT:
        if (d.symbolic)
            print_int(out, d.as.i, dims);
        else
            cfxi_base_out_printf(out, "%lld", (long long)d.as.i);
        break;
    case CFX_DATUM_FLOAT: print_float(out, d.as.f); break;
    case CFX_DATUM_COMPLEX:
        cfxi_base_out_char(out, '(');
        print_float(out, d.as.c[0]);
        cfxi_base_out_str(out, d.as.c[1] < 0 ? "" : "+");
        print_float(out, d.as.c[1]);
        cfxi_base_out_str(out, "j)");
        break;
    case CFX_DATUM_DTYPE: cfxi_base_out_str(out, cfx_dtype_name((cfx_dtype)d.as.i)); break;
    case CFX_DATUM_LAYOUT: cfxi_base_out_str(out, cfx_layout_name((cfx_layout)d.as.i)); break;
    case CFX_DATUM_MEMORY_FORMAT:
        cfxi_base_out_str(out, cfx_memory_format_name((cfx_memory_format)d.as.i));
        break;
    case CFX_DATUM_STR:
    case CFX_DATUM_DEVICE: cfxi_base_out_repr_str(out, d.as.text->data, d.as.text->size); break;
    case CFX_DATUM_TENSOR: print_tensor(out, d.as.tensor, dims); break;
    case CFX_DATUM_LIST:
    case CFX_DATUM_TUPLE:
    case CFX_DATUM_DICT:
    case CFX_DATUM_SLICE: print_seq(out, d, dims); break;
    case CFX_DATUM_INVALID:
    case CFX_DATUM_NONE:
    case CFX_DATUM_ELLIPSIS:
    case CFX_DATUM_REGION:
        cfxi_base_out_str(out, cfx_datum_kind_name((cfx_datum_kind)d.kind));
        break;
    }
}

cfx_status cfx_datum_print(cfx_datum d, const cfx_dims *dims, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    cfxi_base_out_begin(&out, sink);
    print_datum(&out, d, dims);
    return cfxi_base_out_end(&out, err);
}
