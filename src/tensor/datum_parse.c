/* datum_parse.c - descriptions of values as text: float32[N, 3, 224, 224]. */
#include "tensor_impl.h"

typedef struct span {
    const char *text;
    size_t size;
} span;

static span trim(span s)
{
    while (s.size && (s.text[0] == ' ' || s.text[0] == '\t'))
        s = (span){s.text + 1, s.size - 1};
    while (s.size && (s.text[s.size - 1] == ' ' || s.text[s.size - 1] == '\t'))
        s.size--;
    return s;
}

static bool is_word(span s, const char *word)
{
    return s.size == strlen(word) && memcmp(s.text, word, s.size) == 0;
}

static cfx_datum refuse(span s, const char *what, cfx_error *err)
{
    cfx_error_set(err, CFX_E_SYNTAX, "'%.*s' %s", s.size > 100 ? 100 : (int)s.size, s.text, what);
    return cfx_datum_invalid();
}

/* "torch.float32", "float32", "" for float32. */
static bool find_dtype(span s, cfx_dtype *out)
{
    *out = CFX_DTYPE_FLOAT32;
    if (s.size > 6 && memcmp(s.text, "torch.", 6) == 0)
        s = (span){s.text + 6, s.size - 6};
    for (int i = 0; i < CFX_DTYPE_COUNT; i++)
        if (is_word(s, cfx_dtype_name((cfx_dtype)i))) {
            *out = (cfx_dtype)i;
            return true;
        }
    return s.size == 0;
}

/* Where the size that begins at `at` ends: at a comma that is not in parentheses. */
static size_t end_of_size(span s, size_t at)
{
    int depth = 0;
    for (; at < s.size; at++) {
        depth += (s.text[at] == '(') - (s.text[at] == ')');
        if (s.text[at] == ',' && depth <= 0)
            break;
    }
    return at;
}

static cfx_datum parse_tensor(cfx_dims *dims, span s, size_t open, const cfx_allocator *allocator,
                              cfx_error *err)
{
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim = 0;
    cfx_dtype dtype;
    if (s.text[s.size - 1] != ']')
        return refuse(s, "does not end with ']'", err);
    if (!find_dtype(trim((span){s.text, open}), &dtype))
        return refuse((span){s.text, open}, "is not a dtype; write float32, int64, bool, ...", err);
    const span inside = trim((span){s.text + open + 1, s.size - open - 2});
    for (size_t at = 0, end; inside.size && at <= inside.size; at = end + 1) {
        end = end_of_size(inside, at);
        const span one = trim((span){inside.text + at, end - at});
        if (ndim == CFX_MAX_DIMS)
            return refuse(s, "has more than 8 dimensions", err);
        cfx_error own = {0};
        sizes[ndim++] = cfx_dims_parse(dims, one.text, one.size, &own);
        if (own.status != CFX_OK) {
            if (err)
                *err = own;
            return cfx_datum_invalid();
        }
    }
    return cfx_datum_tensor(cfx_tensor_new_abstract(dtype, sizes, ndim, allocator, err));
}

cfx_datum cfx_datum_parse(cfx_dims *dims, const char *text, size_t size,
                          const cfx_allocator *allocator, cfx_error *err)
{
    const span s = trim((span){text, size});
    const char *open = s.size ? memchr(s.text, '[', s.size) : NULL;
    double f;
    int64_t i;
    cfx_error own = {0};
    if (open)
        return parse_tensor(dims, s, (size_t)(open - s.text), allocator, err);
    if (is_word(s, "None"))
        return cfx_datum_none();
    if (is_word(s, "True") || is_word(s, "False"))
        return cfx_datum_bool(s.text[0] == 'T');
    if (cfxi_base_parse_int(s.text, s.size, &i))
        return cfx_datum_int(i);
    if (cfxi_base_parse_float(s.text, s.size, &f))
        return cfx_datum_float(f);
    cfx_datum d = cfx_datum_int(cfx_dims_parse(dims, s.text, s.size, &own));
    d.symbolic = cfx_dim_is_symbol(d.as.i);
    if (own.status == CFX_OK)
        return d;
    if (own.status == CFX_E_NOMEM) {
        cfxi_base_nomem(err);
        return cfx_datum_invalid();
    }
    return refuse(s, "is neither a tensor (float32[N, 3]) nor a number", err);
}
