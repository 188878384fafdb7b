/* lists.c - lists, dicts and tensors as objects: rows that change them, and that compare them.
 * tests/python/test_lists_run.py compares programs with Python. */
#include "runtime/runtime_impl.h"

#include "test_alloc.h"

#include <math.h>

typedef struct bench {
    cfx_runtime *rt;
    cfx_error err;
} bench;

static bench begin(void)
{
    bench b = {.err = {.status = CFX_OK}};
    b.rt = cfx_runtime_new(&(cfx_runtime_options){.threads = 1}, &b.err);
    return b;
}

static cfx_datum numbers(int64_t n)
{
    cfx_datum items[16];
    for (int64_t i = 0; i < n; i++)
        items[i] = cfx_datum_int(i);
    return cfx_datum_seq(CFX_DATUM_LIST, items, (size_t)n, NULL, NULL);
}

static cfx_datum text(const char *s)
{
    return cfx_datum_from_text(CFX_DATUM_STR, s, strlen(s), NULL, NULL);
}

static cfx_datum slice(cfx_datum from, cfx_datum to, cfx_datum step)
{
    const cfx_datum parts[] = {from, to, step};
    return cfx_datum_seq(CFX_DATUM_SLICE, parts, 3, NULL, NULL);
}

/* Runs a row; what it gives is shown and released, the second and third argument are released. */
static const char *shows(bench *b, cfx_operator op, cfx_datum x, cfx_datum y, cfx_datum z)
{
    static char shown[512];
    const cfx_datum args[] = {x, y, z};
    const size_t n = z.kind ? 3 : y.kind ? 2 : 1;
    cfx_buffer out;
    b->err = (cfx_error){.status = CFX_OK};
    cfx_datum d = cfx_operator_run(b->rt, op, args, n, &b->err);
    cfx_buffer_init(&out, NULL);
    if (d.kind)
        cfx_datum_print(d, NULL, cfx_buffer_sink(&out), NULL);
    const char *why = strstr(b->err.message, "): ");
    snprintf(shown, sizeof shown, "%s", d.kind ? out.data : why ? why + 3 : b->err.message);
    cfx_buffer_free(&out);
    cfx_datum_release(d);
    cfx_datum_release(y);
    cfx_datum_release(z);
    return shown;
}

static const char *shown(cfx_datum d)
{
    static char all[256];
    cfx_buffer out;
    cfx_buffer_init(&out, NULL);
    cfx_datum_print(d, NULL, cfx_buffer_sink(&out), NULL);
    snprintf(all, sizeof all, "%s", out.data);
    cfx_buffer_free(&out);
    return all;
}

#define NONE cfx_datum_none()
#define NOTHING cfx_datum_invalid()
#define INT cfx_datum_int

TEST(items_and_slices_are_assigned)
{
    bench b = begin();
    cfx_datum list = numbers(4);
    cfx_datum same = cfx_datum_retain(list);
    CHECK_STR_EQ("None", shows(&b, CFX_OPID_setitem, list, INT(-1), INT(9)));
    CHECK_STR_EQ("[0, 1, 2, 9]", shown(same));
    CHECK_STR_EQ("None",
                 shows(&b, CFX_OPID_setitem, list, slice(INT(1), INT(3), NONE), numbers(3)));
    CHECK_STR_EQ("[0, 0, 1, 2, 9]", shown(same));
    CHECK_STR_EQ("None", shows(&b, CFX_OPID_setitem, list, slice(NONE, NONE, INT(-2)), numbers(3)));
    CHECK_STR_EQ("[2, 0, 1, 2, 0]", shown(same));
    CHECK_STR_EQ("attempt to assign sequence of size 2 to extended slice of size 3",
                 shows(&b, CFX_OPID_setitem, list, slice(NONE, NONE, INT(2)), numbers(2)));
    CHECK_STR_EQ("list assignment index out of range",
                 shows(&b, CFX_OPID_setitem, list, INT(5), INT(9)));
    CHECK_STR_EQ("a container cannot contain itself",
                 shows(&b, CFX_OPID_setitem, list, INT(0), cfx_datum_retain(list)));
    CHECK_STR_EQ("[2, 0, 1, 2, 0]", shown(same));
    cfx_datum_release(same);
    cfx_datum_release(list);
    cfx_runtime_free(b.rt);
}

TEST(items_are_deleted)
{
    bench b = begin();
    cfx_datum list = numbers(8);
    CHECK_STR_EQ("None", shows(&b, CFX_OPID_delitem, list, INT(-1), NOTHING));
    CHECK_STR_EQ("None",
                 shows(&b, CFX_OPID_delitem, list, slice(INT(5), INT(1), INT(-2)), NOTHING));
    CHECK_STR_EQ("[0, 1, 2, 4, 6]", shown(list));
    CHECK_STR_EQ("None", shows(&b, CFX_OPID_delitem, list, slice(INT(1), INT(3), NONE), NOTHING));
    CHECK_STR_EQ("[0, 4, 6]", shown(list));
    CHECK_STR_EQ("list assignment index out of range",
                 shows(&b, CFX_OPID_delitem, list, INT(3), NOTHING));
    CHECK_STR_EQ("None", shows(&b, CFX_OPID_delitem, list, slice(NONE, NONE, NONE), NOTHING));
    CHECK_STR_EQ("[]", shown(list));
    cfx_datum_release(list);
    cfx_runtime_free(b.rt);
}

static cfx_datum pair(cfx_datum key, cfx_datum value)
{
    const cfx_datum both[] = {key, value};
    const cfx_datum made = cfx_datum_seq(CFX_DATUM_TUPLE, both, 2, NULL, NULL);
    cfx_datum_release(key);
    cfx_datum_release(value);
    return made;
}

/* dict() of a list of what it is given, which is released. */
static const char *shows_dict(bench *b, cfx_datum first, cfx_datum second)
{
    const cfx_datum both[] = {first, second};
    const cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, both, 2, NULL, NULL);
    const char *said = shows(b, CFX_OPID_dict, list, NOTHING, NOTHING);
    cfx_datum_release(list);
    cfx_datum_release(first);
    cfx_datum_release(second);
    return said;
}

TEST(dicts_are_made_of_pairs)
{
    bench b = begin();
    CHECK_STR_EQ("{1: 2, 'a': 3}", shows_dict(&b, pair(INT(1), INT(2)), pair(text("a"), INT(3))));
    CHECK_STR_EQ("{1: 4}",
                 shows_dict(&b, pair(INT(1), INT(2)), pair(cfx_datum_bool(true), INT(4))));
    CHECK_STR_EQ("unhashable type: 'list'",
                 shows_dict(&b, pair(pair(INT(1), numbers(1)), INT(2)), pair(INT(1), INT(2))));
    CHECK_STR_EQ("dictionary update sequence element #1 has length 3; 2 is required",
                 shows_dict(&b, pair(INT(1), INT(2)), numbers(3)));
    CHECK_STR_EQ("cannot convert dictionary update sequence element #0 to a sequence",
                 shows_dict(&b, INT(1), INT(2)));
    cfx_runtime_free(b.rt);
}

TEST(dicts_are_asked)
{
    bench b = begin();
    const cfx_datum items[] = {INT(1), INT(2), cfx_datum_float(NAN), INT(3)};
    cfx_datum d = cfx_datum_seq(CFX_DATUM_DICT, items, 4, NULL, NULL);
    CHECK_STR_EQ("2", shows(&b, CFX_OPID_dict_get, d, cfx_datum_float(1), INT(7)));
    CHECK_STR_EQ("7", shows(&b, CFX_OPID_dict_get, d, text("a"), INT(7)));
    CHECK_STR_EQ("None", shows(&b, CFX_OPID_dict_get, d, text("a"), NOTHING));
    CHECK_STR_EQ("[1, nan]", shows(&b, CFX_OPID_dict_keys, d, NOTHING, NOTHING));
    CHECK_STR_EQ("[2, 3]", shows(&b, CFX_OPID_dict_values, d, NOTHING, NOTHING));
    CHECK_STR_EQ("[(1, 2), (nan, 3)]", shows(&b, CFX_OPID_dict_items, d, NOTHING, NOTHING));
    CHECK_STR_EQ("4.5", shows(&b, CFX_OPID_getitem, d, cfx_datum_float(4.5), NOTHING));
    shows(&b, CFX_OPID_getitem, d, cfx_datum_float(NAN), NOTHING);  /* one object, or two? */
    CHECK(b.err.status == CFX_E_UNSUPPORTED || b.err.status == CFX_E_VALUE);
    CHECK_STR_EQ("'int' object is not a dict, and has no 'get' here",
                 shows(&b, CFX_OPID_dict_get, INT(1), INT(1), NOTHING));
    cfx_datum_release(d);
    cfx_runtime_free(b.rt);
}

TEST(dicts_grow_and_shrink)
{
    bench b = begin();
    cfx_datum d = cfx_datum_seq(CFX_DATUM_DICT, NULL, 0, NULL, NULL);
    CHECK_STR_EQ("None", shows(&b, CFX_OPID_setitem, d, text("a"), INT(1)));
    CHECK_STR_EQ("None", shows(&b, CFX_OPID_setitem, d, text("b"), INT(2)));
    CHECK_STR_EQ("None", shows(&b, CFX_OPID_setitem, d, text("a"), INT(3)));
    CHECK_STR_EQ("{'a': 3, 'b': 2}", shown(d));
    CHECK_STR_EQ("None", shows(&b, CFX_OPID_delitem, d, text("a"), NOTHING));
    CHECK_STR_EQ("'a'", shows(&b, CFX_OPID_delitem, d, text("a"), NOTHING));
    CHECK_STR_EQ("unhashable type: 'list'", shows(&b, CFX_OPID_setitem, d, numbers(1), INT(0)));
    CHECK_STR_EQ("{'b': 2}", shown(d));
    CHECK_STR_EQ("{'b': 2}", shows(&b, CFX_OPID_dict, d, NOTHING, NOTHING));
    cfx_datum_release(d);
    cfx_runtime_free(b.rt);
}

TEST(lists_are_added_to)
{
    bench b = begin();
    cfx_datum list = numbers(2);
    CHECK_STR_EQ("[0, 1, 0]", shows(&b, CFX_OPID_add_, list, numbers(1), NOTHING));
    CHECK_STR_EQ("[0, 1, 0]", shown(list));
    CHECK_STR_EQ("[0, 1, 0, 0]", shows(&b, CFX_OPID_add, list, numbers(1), NOTHING));
    CHECK_STR_EQ("[0, 1, 0]", shown(list));
    CHECK_STR_EQ("[0, 1, 0, 0, 1, 0]", shows(&b, CFX_OPID_mul_, list, INT(2), NOTHING));
    CHECK_STR_EQ("[0, 1, 0, 0, 1, 0]", shown(list));
    CHECK_STR_EQ("only a list or a tuple can be added to a list, not 'int'",
                 shows(&b, CFX_OPID_add_, list, INT(2), NOTHING));
    cfx_datum_release(list);
    cfx_runtime_free(b.rt);
}

TEST(identity_comes_first)
{
    const int64_t three = 3;
    bench b = begin();
    cfx_datum x = cfx_datum_tensor(cfx_tensor_new(CFX_DTYPE_FLOAT32, &three, 1, NULL, NULL));
    cfx_datum y = cfx_datum_tensor(cfx_tensor_new(CFX_DTYPE_FLOAT32, &three, 1, NULL, NULL));
    cfx_datum xs = cfx_datum_seq(CFX_DATUM_LIST, &x, 1, NULL, NULL);
    cfx_datum again = cfx_datum_seq(CFX_DATUM_LIST, &x, 1, NULL, NULL);
    cfx_datum ys = cfx_datum_seq(CFX_DATUM_LIST, &y, 1, NULL, NULL);
    CHECK_STR_EQ("True", shows(&b, CFX_OPID_eq, xs, again, NOTHING));
    CHECK_STR_EQ("False", shows(&b, CFX_OPID_is, xs, cfx_datum_retain(ys), NOTHING));
    CHECK_STR_EQ("True", shows(&b, CFX_OPID_contains, xs, cfx_datum_retain(x), NOTHING));
    CHECK_STR_EQ("Boolean value of Tensor with more than one value is ambiguous",
                 shows(&b, CFX_OPID_eq, xs, ys, NOTHING));
    CHECK_STR_EQ("True", shows(&b, CFX_OPID_is, x, cfx_datum_retain(x), NOTHING));
    CHECK_STR_EQ("False", shows(&b, CFX_OPID_is, x, y, NOTHING));
    cfx_datum_release(xs);
    cfx_datum_release(x);
    cfx_runtime_free(b.rt);
}

TEST(sizes_stay_sizes)
{
    const int64_t sizes[] = {2, 3};
    bench b = begin();
    cfx_datum x = cfx_datum_tensor(cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 2, NULL, NULL));
    cfx_datum all = cfx_operator_run(b.rt, CFX_OPID_size, &x, 1, &b.err);
    cfx_datum rest[] = {all, slice(INT(1), NONE, NONE)};
    cfx_datum part = cfx_operator_run(b.rt, CFX_OPID_getitem, rest, 2, &b.err);
    cfx_datum plain = cfx_operator_run(b.rt, CFX_OPID_tuple, &all, 1, &b.err);
    CHECK_INT_EQ(CFX_OPID_size, cfx_datum_row(all));
    CHECK_INT_EQ(CFX_OPID_size, cfx_datum_row(part));
    CHECK_INT_EQ(0, cfx_datum_row(plain));
    CHECK_STR_EQ("'torch.Size([2, 3])'", shows(&b, CFX_OPID_str, all, NOTHING, NOTHING));
    CHECK_STR_EQ("'(2, 3)'", shows(&b, CFX_OPID_str, plain, NOTHING, NOTHING));
    cfx_datum_release(plain);
    cfx_datum_release(part);
    cfx_datum_release(rest[1]);
    cfx_datum_release(all);
    cfx_datum_release(x);
    cfx_runtime_free(b.rt);
}
