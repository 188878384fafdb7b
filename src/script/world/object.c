/* object.c - memory of objects, and their constructors. */
#include "world_impl.h"

/* ---- memory -------------------------------------------------------------------------------- */

void *cfxi_world_alloc(cfxi_world *w, size_t size, cfx_error *err)
{
    if (size > w->most_bytes || w->bytes > w->most_bytes - size) {
        cfx_error_set(err, CFX_E_NOMEM, "the script's objects need more than the "
                      "limit of %zu MB", w->most_bytes >> 20);
        return NULL;
    }
    void *p = cfxi_base_alloc(w->allocator, size);
    if (!p)
        cfxi_base_nomem(err);
    else
        w->bytes += size;
    return p;
}

void cfxi_world_free(cfxi_world *w, void *p, size_t size)
{
    if (!p)
        return;
    w->bytes -= size;
    cfxi_base_free(w->allocator, p, size);
}

cfx_object *cfxi_world_object_new(cfxi_world *w, cfxi_type type, cfx_error *err)
{
    cfx_object *o = cfxi_world_alloc(w, sizeof *o, err);
    if (!o)
        return NULL;
    *o = (cfx_object){.world = w, .refs = 1, .type = (uint8_t)type, .prev = w->ring.prev,
                      .next = &w->ring};
    o->prev->next = o;
    w->ring.prev = o;
    return o;
}

static void free_text(cfxi_world *w, char **text, size_t size)
{
    cfxi_world_free(w, *text, size + 1);
    *text = NULL;
}

static void clear_seq(cfx_object *o)
{
    cfx_object **items = o->as.seq.items;
    const size_t n = o->as.seq.n;
    const size_t capacity = o->as.seq.capacity;
    cfx_object *of = o->as.seq.of;
    o->as.seq.items = NULL;
    o->as.seq.of = NULL;
    o->as.seq.n = o->as.seq.capacity = 0;
    for (size_t i = 0; i < n; i++)
        cfxi_world_unref(items[i]);
    cfxi_world_unref(of);
    cfxi_world_free(o->world, items, capacity * sizeof(cfx_object *));
}

static void clear_class(cfx_object *o)
{
    cfx_object *mro = o->as.cls.mro;
    if (mro && mro->as.seq.n > 0)
        mro->as.seq.items[0] = cfxi_world_none(o->world);  /* itself, which is not counted there */
    cfxi_world_clear(&o->as.cls.mro);
    cfxi_world_clear(&o->as.cls.bases);
    if (o->as.cls.name)
        free_text(o->world, &o->as.cls.name, strlen(o->as.cls.name));
}

/* Lets go of all that it holds, but stays an object. */
static void clear_contents(cfx_object *o)
{
    cfxi_world_clear(&o->cls);
    cfxi_world_clear(&o->attrs);
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_STR:
    case CFXI_TYPE_BYTES:
    case CFXI_TYPE_DEVICE:
    case CFXI_TYPE_NAMESPACE: free_text(o->world, &o->as.text.data, o->as.text.size); break;
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_LIST:
    case CFXI_TYPE_SLICE: clear_seq(o); break;
    case CFXI_TYPE_DICT:
    case CFXI_TYPE_SET:
    case CFXI_TYPE_FROZENSET: cfxi_world_dict_clear(o); break;
    case CFXI_TYPE_FUNCTION:
        cfx_script_function_release(o->as.function);
        o->as.function = NULL;
        break;
    case CFXI_TYPE_BUILTIN:
        if (o->as.builtin.name)
            free_text(o->world, &o->as.builtin.name, strlen(o->as.builtin.name));
        cfxi_world_clear(&o->as.builtin.home);
        break;
    case CFXI_TYPE_METHOD:
    case CFXI_TYPE_ATTRIBUTE:
    case CFXI_TYPE_PROPERTY:
    case CFXI_TYPE_STATIC_METHOD:
    case CFXI_TYPE_CLASS_METHOD:
    case CFXI_TYPE_SUPER:
    case CFXI_TYPE_PARTIAL:
        cfxi_world_clear(&o->as.parts.a);
        cfxi_world_clear(&o->as.parts.b);
        cfxi_world_clear(&o->as.parts.c);
        break;
    case CFXI_TYPE_CLASS: clear_class(o); break;
    case CFXI_TYPE_MODULE:
        cfx_module_release(o->as.module);
        o->as.module = NULL;
        break;
    case CFXI_TYPE_TENSOR:
        cfx_tensor_release(o->as.tensor);
        o->as.tensor = NULL;
        break;
    case CFXI_TYPE_ITERATOR:
        cfxi_world_clear(&o->as.iterator.a);
        cfxi_world_clear(&o->as.iterator.b);
        break;
    case CFXI_TYPE_NONE:
    case CFXI_TYPE_ELLIPSIS:
    case CFXI_TYPE_NOT_IMPLEMENTED:
    case CFXI_TYPE_BOOL:
    case CFXI_TYPE_INT:
    case CFXI_TYPE_FLOAT:
    case CFXI_TYPE_COMPLEX:
    case CFXI_TYPE_RANGE:
    case CFXI_TYPE_INSTANCE:
    case CFXI_TYPE_DTYPE:
    case CFXI_TYPE_LAYOUT:
    case CFXI_TYPE_MEMORY_FORMAT:
    case CFXI_TYPE_VALUE:
    case CFXI_TYPES: break;
    }
}

/* Objects in objects are freed one after the other, not inside each other: lists may nest as deep
 * as memory reaches. */
void cfxi_world_unref(cfx_object *o)
{
    if (!o || --o->refs > 0)
        return;
    cfxi_world *w = o->world;
    o->prev->next = o->next;
    o->next->prev = o->prev;
    o->next = w->trash;
    w->trash = o;
    if (w->draining)
        return;
    w->draining = true;
    while (w->trash) {
        cfx_object *dead = w->trash;
        w->trash = dead->next;
        dead->refs = 1;  /* who looks at it meanwhile does not free it again */
        clear_contents(dead);
        cfxi_world_free(w, dead, sizeof *dead);
    }
    w->draining = false;
}

cfx_status cfxi_world_become(cfx_object *o, cfx_object *made, const cfx_error *err)
{
    if (!made)
        return err->status;
    cfx_object swap;
    memcpy(&swap.as, &o->as, sizeof o->as);
    memcpy(&o->as, &made->as, sizeof o->as);
    memcpy(&made->as, &swap.as, sizeof o->as);
    cfxi_world_unref(made);
    return CFX_OK;
}

/* ---- the world ----------------------------------------------------------------------------- */

cfx_status cfxi_world_begin(cfxi_world *w, const cfx_allocator *allocator, cfx_error *err)
{
    *w = (cfxi_world){.allocator = allocator, .most_bytes = (size_t)1 << 30,
                       .places.allocator = allocator};
    w->ring.prev = w->ring.next = &w->ring;
    w->none = cfxi_world_object_new(w, CFXI_TYPE_NONE, err);
    w->ellipsis = cfxi_world_object_new(w, CFXI_TYPE_ELLIPSIS, err);
    w->not_implemented = cfxi_world_object_new(w, CFXI_TYPE_NOT_IMPLEMENTED, err);
    for (int i = 0; i < 2; i++) {
        w->truths[i] = cfxi_world_object_new(w, CFXI_TYPE_BOOL, err);
        if (w->truths[i])
            w->truths[i]->as.b = i == 1;
    }
    w->empty = cfxi_world_object_new(w, CFXI_TYPE_TUPLE, err);
    w->spaces = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    w->builtins = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    w->kept = cfxi_world_object_new(w, CFXI_TYPE_LIST, err);
    if (!w->none || !w->ellipsis || !w->not_implemented || !w->truths[0] || !w->truths[1] ||
        !w->empty || !w->spaces || !w->builtins || !w->kept)
        return CFX_E_NOMEM;
    cfxi_world_table(w);
    return CFX_OK;
}

/* All objects are held, emptied, and freed: those in circles, too. */
void cfxi_world_end(cfxi_world *w)
{
    if (!w->ring.next)
        return;
    for (cfx_object *o = w->ring.next; o != &w->ring; o = o->next)
        o->refs++;
    for (cfx_object *o = w->ring.next; o != &w->ring; o = o->next)
        clear_contents(o);
    for (cfx_object *o = w->ring.next, *next; o != &w->ring; o = next) {
        next = o->next;
        cfxi_world_free(w, o, sizeof *o);
    }
    cfxi_capture_places_free(&w->places);
    cfxi_base_vec_free(&w->entered, sizeof(uint32_t), w->allocator);
    w->ring.prev = w->ring.next = NULL;
}

/* ---- plain objects ------------------------------------------------------------------------- */

cfx_object *cfxi_world_none(cfxi_world *w) { return cfxi_world_ref(w->none); }
cfx_object *cfxi_world_truth_object(cfxi_world *w, bool b) { return cfxi_world_ref(w->truths[b]); }

cfx_object *cfxi_world_numbered(cfxi_world *w, cfxi_type type, int64_t i, cfx_error *err)
{
    const bool once = type == CFXI_TYPE_DTYPE && i >= 0 && i < CFX_DTYPE_COUNT;
    if (once && w->dtypes[i])
        return cfxi_world_ref(w->dtypes[i]);
    cfx_object *o = cfxi_world_object_new(w, type, err);
    if (o)
        o->as.i = i;
    if (once)
        w->dtypes[i] = cfxi_world_ref(o);
    return o;
}

cfx_object *cfxi_world_int_object(cfxi_world *w, int64_t i, cfx_error *err)
{
    return cfxi_world_numbered(w, CFXI_TYPE_INT, i, err);
}

cfx_object *cfxi_world_float_object(cfxi_world *w, double f, cfx_error *err)
{
    cfx_object *o = cfxi_world_object_new(w, CFXI_TYPE_FLOAT, err);
    if (o)
        o->as.f = f;
    return o;
}

cfx_object *cfxi_world_complex_object(cfxi_world *w, double re, double im, cfx_error *err)
{
    cfx_object *o = cfxi_world_object_new(w, CFXI_TYPE_COMPLEX, err);
    if (o) {
        o->as.c[0] = re;
        o->as.c[1] = im;
    }
    return o;
}

/* ---- text ---------------------------------------------------------------------------------- */

cfx_object *cfxi_world_text_object(cfxi_world *w, cfxi_type type, const char *text, size_t size,
                             cfx_error *err)
{
    char *data = cfxi_world_alloc(w, size + 1, err);
    cfx_object *o = data ? cfxi_world_object_new(w, type, err) : NULL;
    if (!o) {
        cfxi_world_free(w, data, size + 1);
        return NULL;
    }
    if (size > 0)
        memcpy(data, text, size);
    data[size] = '\0';
    o->as.text.data = data;
    o->as.text.size = size;
    return o;
}

cfx_object *cfxi_world_str(cfxi_world *w, const char *text, cfx_error *err)
{
    return cfxi_world_text_object(w, CFXI_TYPE_STR, text, strlen(text), err);
}

cfx_object *cfxi_world_text_made(cfxi_world *w, cfx_status status, cfx_buffer *text, cfx_error *err)
{
    cfx_object *o = status == CFX_OK
                        ? cfxi_world_text_object(w, CFXI_TYPE_STR, text->data, text->size, err)
                        : NULL;
    cfx_buffer_free(text);
    return o;
}

/* ---- sequences ----------------------------------------------------------------------------- */

/* Room for so many items in all. */
static cfx_status reserve(cfx_object *o, size_t n, cfx_error *err)
{
    cfxi_world *w = o->world;
    size_t bytes;
    if (n <= o->as.seq.capacity)
        return CFX_OK;
    size_t capacity = o->as.seq.capacity * 2 > n ? o->as.seq.capacity * 2 : n;
    if (!cfxi_base_mul_size(capacity, sizeof(cfx_object *), 0, &bytes))
        return cfxi_base_nomem(err);
    cfx_object **items = cfxi_world_alloc(w, bytes, err);
    if (!items)
        return CFX_E_NOMEM;
    if (o->as.seq.n > 0)
        memcpy(items, o->as.seq.items, o->as.seq.n * sizeof *items);
    cfxi_world_free(w, o->as.seq.items, o->as.seq.capacity * sizeof *items);
    o->as.seq.items = items;
    o->as.seq.capacity = capacity;
    return CFX_OK;
}

cfx_object *cfxi_world_seq_object(cfxi_world *w, cfxi_type type, cfx_object *const *items, size_t n,
                            cfx_error *err)
{
    cfx_object *o = cfxi_world_object_new(w, type, err);
    if (!o || reserve(o, n, err) != CFX_OK) {
        cfxi_world_unref(o);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        o->as.seq.items[i] = cfxi_world_ref(items[i]);
    o->as.seq.n = n;
    return o;
}

cfx_object *cfxi_world_seq_take(cfxi_world *w, cfxi_type type, cfx_object **items, size_t n,
                          cfx_error *err)
{
    cfx_object *o = NULL;
    bool good = true;
    for (size_t i = 0; i < n; i++)
        good = good && items[i];
    if (good)
        o = cfxi_world_seq_object(w, type, items, n, err);
    for (size_t i = 0; i < n; i++)
        cfxi_world_unref(items[i]);
    return o;
}

cfx_status cfxi_world_list_append(cfx_object *list, cfx_object *item, cfx_error *err)
{
    CFX_TRY(reserve(list, list->as.seq.n + 1, err));
    list->as.seq.items[list->as.seq.n++] = cfxi_world_ref(item);
    return CFX_OK;
}

/* ---- others -------------------------------------------------------------------------------- */

cfx_object *cfxi_world_parts_object(cfxi_world *w, cfxi_type type, cfx_object *a, cfx_object *b,
                              cfx_object *c, cfx_error *err)
{
    cfx_object *o = cfxi_world_object_new(w, type, err);
    if (o) {
        o->as.parts.a = cfxi_world_ref(a);
        o->as.parts.b = cfxi_world_ref(b);
        o->as.parts.c = cfxi_world_ref(c);
    }
    return o;
}

cfx_object *cfxi_world_range_object(cfxi_world *w, int64_t start, int64_t stop, int64_t step,
                              cfx_error *err)
{
    if (step == 0)
        return cfxi_world_raise(w, err, CFXI_ValueError, "range() arg 3 must not be zero");
    cfx_object *o = cfxi_world_object_new(w, CFXI_TYPE_RANGE, err);
    if (!o)
        return NULL;
    const uint64_t span = step > 0 ? (uint64_t)stop - (uint64_t)start
                                   : (uint64_t)start - (uint64_t)stop;
    const uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const bool empty = step > 0 ? start >= stop : start <= stop;
    const uint64_t n = empty ? 0 : (span - 1) / size + 1;
    o->as.range.start = start;
    o->as.range.step = step;
    o->as.range.n = n > INT64_MAX ? INT64_MAX : (int64_t)n;
    return o;
}
