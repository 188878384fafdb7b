/* random_call.c - random tensors, numbers, lists and texts for the parameters of an operator. */
#include "random_call.h"

#include <cfx/embed/tensor.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PICK(r, array) ((array)[random_below(r, sizeof(array) / sizeof *(array))])

/* ---- elements ------------------------------------------------------------------------------ */

static const cfx_dtype dtypes[] = {
    CFX_DTYPE_BOOL,    CFX_DTYPE_UINT8,    CFX_DTYPE_INT8,    CFX_DTYPE_INT16,
    CFX_DTYPE_INT32,   CFX_DTYPE_INT64,    CFX_DTYPE_FLOAT16, CFX_DTYPE_BFLOAT16,
    CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT64,  CFX_DTYPE_COMPLEX64, CFX_DTYPE_COMPLEX128,
    CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT64,
    CFX_DTYPE_FLOAT32, CFX_DTYPE_INT64,
};

static const int64_t extreme_ints[] = {
    INT64_MIN, INT64_MAX, INT64_MIN + 1, INT64_MAX - 1, INT32_MIN, INT32_MAX, (int64_t)1 << 31,
    (int64_t)1 << 40, -((int64_t)1 << 40), (int64_t)1 << 62, 255, 256, 65536, -129, 1000,
};

static const double extreme_floats[] = {
    0.0,    -0.0,    1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0, 1e308,  -1e308, 5e-324,   1e-310, 1e30,
    -3e38,  65504.0, 1e-40,     2147483648.0, 9.3e18,  -9.3e18, 0.5,   -1e10,    1e-300, 127.5,
};

static double small_float(random_source *r)
{
    double f = (double)random_below(r, 4097) / 1024 - 2;
    return random_chance(r, 20) ? (double)(int64_t)f : f;
}

/* One element: a whole number below `indices` if that is not 0 (negative: likewise, whatever the
 * type). */
static void fill_element(random_call *c, cfx_dtype dtype, int64_t indices, char *at)
{
    random_source *r = &c->r;
    indices = indices < 0 ? -indices : indices;
    bool wild = !c->tame && random_chance(r, 25);
    cfx_datum d;
    if (dtype == CFX_DTYPE_BOOL)
        d = cfx_datum_bool(random_chance(r, 50));
    else if (indices > 0)
        d = cfx_datum_int((int64_t)random_below(r, (size_t)indices));
    else if (cfx_dtype_is_integer(dtype))
        d = cfx_datum_int(wild ? PICK(r, extreme_ints) : (int64_t)random_below(r, 10) - 4);
    else if (cfx_dtype_is_float(dtype))
        d = cfx_datum_float(wild ? PICK(r, extreme_floats) : small_float(r));
    else
        d = cfx_datum_complex(wild ? PICK(r, extreme_floats) : small_float(r), small_float(r));
    if (!cfx_datum_store(d, dtype, at))
        memset(at, 0, cfx_dtype_size(dtype));
}

/* ---- tensors ------------------------------------------------------------------------------- */

typedef enum layout { CONTIGUOUS, PERMUTED, STEPPED, EXPANDED, NEGATIVE, LAYOUTS } layout;

/* Strides in bytes; returns the bytes they span, *before of them before the first element. */
static size_t choose_strides(random_source *r, const int64_t *sizes, size_t ndim, int64_t itemsize,
                             int64_t *strides, int64_t *before)
{
    layout how = random_chance(r, 55) ? CONTIGUOUS : (layout)random_below(r, LAYOUTS);
    int64_t step = itemsize;
    int64_t after = itemsize;
    size_t order[CFX_MAX_DIMS];
    bool empty = false;
    *before = 0;
    for (size_t i = 0; i < ndim; i++)
        order[i] = i;
    for (size_t i = ndim; how == PERMUTED && i-- > 1;) {
        size_t k = random_below(r, i + 1);
        size_t kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
    for (size_t i = ndim; i-- > 0;) {
        size_t d = order[i];
        bool chosen = random_chance(r, 50);
        if (how == STEPPED && chosen)
            step *= 2;
        strides[d] = how == EXPANDED && chosen ? 0 : how == NEGATIVE && chosen ? -step : step;
        int64_t reach = (sizes[d] - 1) * strides[d];
        empty = empty || sizes[d] == 0;
        *(reach < 0 ? before : &after) += reach;
        if (strides[d] && sizes[d] > 1)
            step *= sizes[d];
    }
    *before = empty ? 0 : -*before;
    return empty ? 0 : (size_t)(*before + after);
}

static cfx_tensor *make_tensor(random_call *c, cfx_dtype dtype, const int64_t *sizes, size_t ndim,
                               int64_t indices)
{
    int64_t strides[CFX_MAX_DIMS];
    int64_t before;
    size_t itemsize = cfx_dtype_size(dtype);
    size_t size = choose_strides(&c->r, sizes, ndim, (int64_t)itemsize, strides, &before);
    char *memory = malloc(size);
    if (!memory || c->num_blocks == RANDOM_CALL_BLOCKS) {
        free(memory);
        return NULL;
    }
    for (size_t i = 0; i + itemsize <= size; i += itemsize)
        fill_element(c, dtype, indices, memory + i);
    cfx_tensor *t = cfx_tensor_from_memory(dtype, sizes, strides, ndim, memory + before,
                                           random_chance(&c->r, 10), free, memory, NULL, NULL);
    if (!t)
        free(memory);
    else
        c->blocks[c->num_blocks++] = (random_block){cfx_tensor_retain(t), memory, size, c->param};
    return t;
}

static size_t choose_shape(random_source *r, int64_t *sizes)
{
    size_t ndim = random_chance(r, 4) ? CFX_MAX_DIMS : random_below(r, 6);
    int64_t numel = 1;
    for (size_t i = 0; i < ndim; i++) {
        sizes[i] = random_chance(r, 3)    ? 0
                   : random_chance(r, 15) ? 1
                   : random_chance(r, 8)  ? 10 + (int64_t)random_below(r, 40)
                                          : 2 + (int64_t)random_below(r, 4);
        if (numel * sizes[i] > 2000)
            sizes[i] = 1;
        numel *= sizes[i] ? sizes[i] : 1;
    }
    return ndim;
}

/* The shape of the call, or one that is broadcast to it, or any. */
static size_t vary_shape(random_call *c, int64_t *sizes)
{
    random_source *r = &c->r;
    size_t kind = random_below(r, 20);
    size_t skip = kind == 12 && c->ndim ? random_below(r, c->ndim + 1) : 0;
    if (kind == 13)
        return 0;
    if (kind == 14)
        return choose_shape(r, sizes);
    for (size_t i = skip; i < c->ndim; i++) {
        sizes[i - skip] = c->size[i];
        if ((kind == 15 || kind == 16) && random_chance(r, 50))
            sizes[i - skip] = 1;
        if (kind == 17 && i + 1 == c->ndim)
            sizes[i - skip] = (int64_t)random_below(r, 4);
    }
    return c->ndim - skip;
}

static bool ends_with(cfx_schema_text name, const char *what)
{
    size_t n = strlen(what);
    return name.size >= n && memcmp(name.text + name.size - n, what, n) == 0;
}

static bool is_named(cfx_schema_text name, const char *what)
{
    return name.size == strlen(what) && memcmp(name.text, what, name.size) == 0;
}

static cfx_dtype choose_dtype(random_call *c, cfx_schema_text name, int64_t *indices)
{
    if (random_chance(&c->r, 6))
        return PICK(&c->r, dtypes);
    if (ends_with(name, "index") || ends_with(name, "indices") || is_named(name, "repeats") ||
        is_named(name, "sorter") || is_named(name, "offsets")) {
        *indices = *indices > 0 ? *indices : 2;
        return random_chance(&c->r, 85) ? CFX_DTYPE_INT64 : CFX_DTYPE_INT32;
    }
    if (ends_with(name, "mask") || is_named(name, "condition"))
        return CFX_DTYPE_BOOL;
    if (*indices > 0)
        return CFX_DTYPE_INT64;
    return c->dtype;
}

/* "A,B,i3" of the pattern, up to a space or ';'. */
static size_t pattern_shape(random_call *c, int64_t *sizes, int64_t *indices)
{
    size_t ndim = 0;
    const char *p = c->pattern;
    while (*p && *p != ' ' && *p != ';') {
        char mark = *p == 'i' || *p == 'u' ? *p++ : 0;
        int64_t size = random_shapes_size(c, &p);
        if (mark)
            *indices = mark == 'i' ? size : -size;
        else if (ndim < CFX_MAX_DIMS)
            sizes[ndim++] = size;
        p += *p == ',';
    }
    c->pattern = p;
    return ndim;
}

static cfx_datum random_tensor(random_call *c, cfx_schema_text name)
{
    int64_t sizes[CFX_MAX_DIMS] = {0};
    int64_t indices = 0;
    size_t ndim;
    if (c->pattern && *c->pattern && *c->pattern != ' ' && *c->pattern != '~') {
        ndim = pattern_shape(c, sizes, &indices);
        if (ndim && random_chance(&c->r, 4))
            sizes[random_below(&c->r, ndim)] = (int64_t)random_below(&c->r, 5);
        else if (ndim && random_chance(&c->r, 4))
            ndim--;
        else if (random_chance(&c->r, 4))
            ndim = vary_shape(c, sizes);
    } else {
        ndim = vary_shape(c, sizes);
    }
    cfx_dtype dtype = choose_dtype(c, name, &indices);
    return cfx_datum_tensor(make_tensor(c, dtype, sizes, ndim, indices));
}

/* ---- numbers and texts --------------------------------------------------------------------- */

static int64_t random_integer(random_call *c, cfx_schema_text name)
{
    random_source *r = &c->r;
    int64_t ndim = c->ndim ? (int64_t)c->ndim : 1;
    if (random_chance(r, 4))
        return PICK(r, extreme_ints);
    if (ends_with(name, "dim") || ends_with(name, "dims") || ends_with(name, "dim0") ||
        ends_with(name, "dim1") || ends_with(name, "dim2") || is_named(name, "dimension"))
        return (int64_t)random_below(r, (size_t)(2 * ndim)) - ndim;
    if (is_named(name, "reduction") || ends_with(name, "mode"))
        return (int64_t)random_below(r, 3);
    if (ends_with(name, "padding") || ends_with(name, "offset") || is_named(name, "index"))
        return (int64_t)random_below(r, 2);
    if (is_named(name, "kernel_size") || is_named(name, "stride") || is_named(name, "dilation") ||
        is_named(name, "step") || is_named(name, "steps") || is_named(name, "n") ||
        is_named(name, "k") || is_named(name, "chunks") || is_named(name, "groups") ||
        ends_with(name, "size"))
        return 1 + (int64_t)random_below(r, 3);
    return (int64_t)random_below(r, 9) - 2;
}

static double random_double(random_call *c)
{
    if (!c->tame && random_chance(&c->r, 15))
        return PICK(&c->r, extreme_floats);
    return random_chance(&c->r, 40) ? (double)random_below(&c->r, 4) : small_float(&c->r) / 2 + 0.5;
}

static cfx_datum random_text(random_call *c)
{
    static const char *const texts[] = {
        "mean", "sum", "none", "constant", "reflect", "replicate", "circular", "nearest", "linear",
        "bilinear", "bicubic", "trilinear", "nearest-exact", "area", "zeros", "border",
        "reflection", "tanh", "floor", "trunc", "L", "U", "fro", "nuc", "reduced", "complete", "r",
        "same", "valid", "left", "right", "ij", "xy", "prod", "amax", "amin", "multiply", "add",
        "lower", "higher", "midpoint", "", "\xff\xfe", "ij,jk->ik", "i,i->", "ii->i", "...i->...",
        "ij->ji", "i->ij", "->", "shape", "dtype", "ndim", "real", "T",
        "a string that is very long indeed, so that a message with it would not fit into the error "
        "if it were not cut",
    };
    const char *text = PICK(&c->r, texts);
    return cfx_datum_from_text(CFX_DATUM_STR, text, strlen(text), NULL, NULL);
}

static cfx_datum random_scalar(random_call *c, cfx_schema_text name)
{
    size_t kind = random_below(&c->r, 20);
    if (kind < 9)
        return cfx_datum_int(random_integer(c, name));
    if (kind == 18)
        return cfx_datum_bool(random_chance(&c->r, 50));
    if (kind == 19)
        return cfx_datum_complex(random_double(c), random_double(c));
    return cfx_datum_float(random_double(c));
}

static cfx_datum random_any(random_call *c, cfx_schema_text name, size_t nesting);

static cfx_datum random_items(random_call *c, cfx_datum_kind kind, cfx_schema_text name,
                              size_t nesting)
{
    cfx_datum items[4];
    size_t n = kind == CFX_DATUM_SLICE ? 3 : random_below(&c->r, 4);
    if (kind == CFX_DATUM_DICT)
        n = n / 2 * 2;
    for (size_t i = 0; i < n; i++) {
        bool number = kind == CFX_DATUM_SLICE || (kind == CFX_DATUM_DICT && i % 2 == 0);
        items[i] = number && random_chance(&c->r, 30) ? cfx_datum_none()
                   : number                           ? cfx_datum_int(random_integer(c, name))
                                                      : random_any(c, name, nesting + 1);
    }
    cfx_datum d = cfx_datum_seq(kind, items, n, NULL, NULL);
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(items[i]);
    return d;
}

static cfx_datum random_any(random_call *c, cfx_schema_text name, size_t nesting)
{
    random_source *r = &c->r;
    switch (random_below(r, nesting < 3 ? 17 : 11)) {
    case 0: return cfx_datum_none();
    case 1: return cfx_datum_bool(random_chance(r, 50));
    case 2:
    case 3: return cfx_datum_int(random_integer(c, name));
    case 4: return cfx_datum_float(random_double(c));
    case 5: return random_scalar(c, name);
    case 6: return random_text(c);
    case 7: return cfx_datum_dtype(random_chance(r, 90) ? PICK(r, dtypes)
                                                        : (cfx_dtype)random_below(r, 24));
    case 8: return cfx_datum_scalar(CFX_DATUM_ELLIPSIS, 0);
    case 9:
    case 10: return random_tensor(c, name);
    case 11: return random_items(c, CFX_DATUM_SLICE, name, nesting);
    case 12: return random_items(c, CFX_DATUM_DICT, name, nesting);
    case 13:
    case 14: return random_items(c, CFX_DATUM_LIST, name, nesting);
    default: return random_items(c, CFX_DATUM_TUPLE, name, nesting);
    }
}

/* ---- parameters ---------------------------------------------------------------------------- */

static bool begins(const char *type, const char *what)
{
    return strncmp(type, what, strlen(what)) == 0;
}

/* One of the type, without its list and '?'. */
static cfx_datum random_of_type(random_call *c, const cfx_schema_param *p)
{
    random_source *r = &c->r;
    if (begins(p->type, "Tensor"))
        return random_chance(r, 3) ? random_scalar(c, p->name) : random_tensor(c, p->name);
    if (begins(p->type, "int"))
        return cfx_datum_int(random_integer(c, p->name));
    if (begins(p->type, "float"))
        return cfx_datum_float(random_double(c));
    if (begins(p->type, "bool"))
        return cfx_datum_bool(random_chance(r, 50));
    if (begins(p->type, "ScalarType"))
        return cfx_datum_dtype(PICK(r, dtypes));
    if (begins(p->type, "Scalar"))
        return random_scalar(c, p->name);
    if (begins(p->type, "str"))
        return random_text(c);
    if (begins(p->type, "Device"))
        return cfx_datum_from_text(CFX_DATUM_DEVICE, random_chance(r, 80) ? "cpu" : "cuda:0",
                                   random_chance(r, 80) ? 3 : 0, NULL, NULL);
    if (begins(p->type, "MemoryFormat"))
        return cfx_datum_scalar(CFX_DATUM_MEMORY_FORMAT, (int64_t)random_below(r, 5));
    if (begins(p->type, "Layout"))
        return cfx_datum_scalar(CFX_DATUM_LAYOUT, (int64_t)random_below(r, 3));
    if (begins(p->type, "Generator"))
        return cfx_datum_none();
    return random_any(c, p->name, 0);
}

/* As many as the type says ("int[2]"), or as there are dimensions, or any number. */
static size_t list_length(random_call *c, const cfx_schema_param *p)
{
    const char *bracket = strchr(p->type, '[');
    if (random_chance(&c->r, 6))
        return random_below(&c->r, 11);
    if (ends_with(p->name, "dim") || ends_with(p->name, "dims"))
        return random_below(&c->r, c->ndim + 1);
    if (bracket && bracket[1] >= '1' && bracket[1] <= '9')
        return (size_t)(bracket[1] - '0');
    return random_chance(&c->r, 60) ? c->ndim : random_below(&c->r, 5);
}

/* Mostly the sizes that the tensors have, for shapes; else one by one. */
static cfx_datum random_list(random_call *c, const cfx_schema_param *p)
{
    cfx_datum items[16];
    size_t n = list_length(c, p);
    bool tensors = begins(p->type, "Tensor");
    bool sizes = ends_with(p->name, "size") || ends_with(p->name, "shape");
    bool pattern = tensors && c->pattern && *c->pattern && random_chance(&c->r, 95);
    size_t made = 0;
    for (; pattern ? made < 16 : made < n; made++) {
        if (sizes && made < c->ndim && random_chance(&c->r, 80))
            items[made] = cfx_datum_int(c->size[made]);
        else if (strstr(p->type, "?[") && random_chance(&c->r, 10))
            items[made] = cfx_datum_none();
        else
            items[made] = random_of_type(c, p);
        if (pattern && *c->pattern != ';') {
            made++;
            break;
        }
        c->pattern += pattern;
    }
    cfx_datum d = cfx_datum_seq(random_chance(&c->r, 80) ? CFX_DATUM_LIST : CFX_DATUM_TUPLE, items,
                                made, NULL, NULL);
    while (made-- > 0)
        cfx_datum_release(items[made]);
    return d;
}

/* "[2,H]", "1", "sum" of a pattern. */
static cfx_datum pattern_value(random_call *c, const cfx_schema_param *p, const char *at)
{
    cfx_datum items[CFX_MAX_DIMS];
    size_t n = 0;
    if (*at == '~')
        return cfx_datum_none();
    if (begins(p->type, "str"))
        return cfx_datum_from_text(CFX_DATUM_STR, at, strcspn(at, " "), NULL, NULL);
    if (begins(p->type, "bool"))
        return cfx_datum_bool(*at == '1');
    if (*at != '[')
        return cfx_datum_int(random_shapes_size(c, &at));
    while (*at && *at != ']' && n < CFX_MAX_DIMS) {
        at++;
        items[n++] = cfx_datum_int(random_shapes_size(c, &at));
    }
    return cfx_datum_seq(CFX_DATUM_LIST, items, n, NULL, NULL);
}

static bool takes_tensors(const cfx_schema_param *p) { return begins(p->type, "Tensor"); }

static cfx_datum random_argument(random_call *c, const cfx_schema_param *p, const char *pattern)
{
    random_source *r = &c->r;
    const char *given = pattern ? random_shapes_value(pattern, p->name) : NULL;
    if (given && random_chance(r, 85))
        return pattern_value(c, p, given);
    if (random_chance(r, 2))
        return random_any(c, p->name, 0);
    if (random_chance(r, 2) || (c->pattern && *c->pattern == '~' && random_chance(r, 90)))
        return cfx_datum_none();
    if ((p->value.text && random_chance(r, takes_tensors(p) ? 30 : 50)) || random_chance(r, 1))
        return cfx_datum_scalar(CFX_DATUM_INVALID, 0);
    if (strchr(p->type, '?') && !strstr(p->type, "?[") && random_chance(r, 20))
        return cfx_datum_none();
    bool one = strchr(p->type, '[') && random_chance(r, 10);
    return strchr(p->type, '[') && !one ? random_list(c, p) : random_of_type(c, p);
}

/* Moves the pattern to the next word, for the next tensor; NULL when they are over. */
static const char *next_word(const char *word)
{
    const char *space = word ? strchr(word, ' ') : NULL;
    const char *next = space ? space + 1 : NULL;
    return next && strchr(next, '=') && strchr(next, '=') < next + strcspn(next, " ") ? NULL : next;
}

/* ---- calls --------------------------------------------------------------------------------- */

bool random_call_possible(cfx_operator op)
{
    return cfx_operator_has_kernel(op) && cfx_operator_regions(op) == 0 &&
           cfx_operator_num_params(op) <= RANDOM_CALL_PARAMS;
}

static void begin(random_call *c, uint64_t seed, cfx_operator op)
{
    memset(c, 0, sizeof *c);
    c->op = op;
    c->r.state = seed * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < 4; i++)
        random_next(&c->r);
    c->tame = random_chance(&c->r, 60);
    c->dtype = PICK(&c->r, dtypes);
    c->ndim = choose_shape(&c->r, c->size);
    for (size_t i = 0; i < RANDOM_CALL_LETTERS; i++)
        c->letters[i] = random_chance(&c->r, 3)   ? 0
                        : random_chance(&c->r, 5) ? 12 + (int64_t)random_below(&c->r, 12)
                                                  : 1 + (int64_t)random_below(&c->r, 4);
    c->letters['K' - 'A'] = 1 + (int64_t)random_below(&c->r, 3);
    c->letters['L' - 'A'] = 1 + (int64_t)random_below(&c->r, 3);
}

void random_call_new(random_call *c, uint64_t seed, cfx_operator op)
{
    cfx_schema_param p;
    begin(c, seed, op);
    const char *pattern = random_chance(&c->r, 85) ? random_shapes_of(op) : NULL;
    const char *word = pattern && !(strchr(pattern, '=') && strchr(pattern, '=') < strchr(pattern,
                       ' ')) ? pattern : NULL;
    for (size_t i = 0; cfx_operator_param(op, i, &p); i++) {
        c->param = i;
        c->pattern = takes_tensors(&p) ? word : NULL;
        cfx_datum *d = &c->args[c->n++];
        if (i > 0 && takes_tensors(&p) && !strchr(p.type, '[') && random_chance(&c->r, 4) &&
            c->args[0].kind == CFX_DATUM_TENSOR)
            *d = cfx_datum_retain(c->args[0]);
        else
            *d = random_argument(c, &p, pattern);
        if (takes_tensors(&p))
            word = next_word(word);
    }
    if (random_chance(&c->r, 2) && c->n)
        cfx_datum_release(c->args[--c->n]);
}

void random_call_free(random_call *c)
{
    for (size_t i = 0; i < c->n; i++)
        cfx_datum_release(c->args[i]);
    for (size_t i = 0; i < c->num_blocks; i++)
        cfx_tensor_release(c->blocks[i].tensor);
}

void random_call_print(const random_call *c)
{
    cfx_buffer text;
    cfx_schema_param p;
    cfx_buffer_init(&text, NULL);
    for (size_t i = 0; i < c->n; i++) {
        cfx_operator_param(c->op, i, &p);
        if (c->args[i].kind == CFX_DATUM_INVALID)
            continue;
        printf("    %.*s = ", (int)p.name.size, p.name.text);
        text.size = 0;
        cfx_datum_print(c->args[i], NULL, cfx_buffer_sink(&text), NULL);
        printf("%.*s", (int)text.size, text.data);
        if (c->args[i].kind == CFX_DATUM_TENSOR && cfx_tensor_ndim(c->args[i].as.tensor)) {
            const cfx_tensor *t = c->args[i].as.tensor;
            printf(" strides");
            for (size_t k = 0; k < cfx_tensor_ndim(t); k++)
                printf(" %lld", (long long)cfx_tensor_strides(t)[k]);
            printf(cfx_tensor_is_read_only(t) ? " read-only" : "");
        }
        printf("\n");
    }
    cfx_buffer_free(&text);
}
