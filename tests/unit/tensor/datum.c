/* datum.c - run-time values: counting, containers, how messages show them. */
#include "tensor/tensor_impl.h"

#include <cfx/value.h>

#include "test_alloc.h"

static const char *shown(cfx_datum d)
{
    static char text[256];
    cfx_buffer buffer;
    cfx_buffer_init(&buffer, NULL);
    cfx_datum_print(d, NULL, cfx_buffer_sink(&buffer), NULL);
    snprintf(text, sizeof text, "%s", buffer.data);
    cfx_buffer_free(&buffer);
    return text;
}

TEST(scalars_print_as_python_does)
{
    CHECK_STR_EQ("None", shown(cfx_datum_none()));
    CHECK_STR_EQ("True", shown(cfx_datum_bool(true)));
    CHECK_STR_EQ("-1", shown(cfx_datum_int(-1)));
    CHECK_STR_EQ("1.0", shown(cfx_datum_float(1)));
    CHECK_STR_EQ("(1.0-2.0j)", shown(cfx_datum_complex(1, -2)));
    CHECK_STR_EQ("bfloat16", shown(cfx_datum_dtype(CFX_DTYPE_BFLOAT16)));
}

TEST(containers_hold_their_items)
{
    const int64_t sizes[] = {2, 3};
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfx_datum t = cfx_datum_tensor(cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 2, &a, NULL));
    cfx_datum s = cfx_datum_from_text(CFX_DATUM_STR, "it's", 4, &a, NULL);
    cfx_datum pair[] = {t, s};
    cfx_datum tuple = cfx_datum_seq(CFX_DATUM_TUPLE, pair, 2, &a, NULL);
    cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, &tuple, 1, &a, NULL);
    cfx_datum_release(t);
    cfx_datum_release(s);
    cfx_datum_release(tuple);
    CHECK_STR_EQ("[(float32[2, 3], \"it's\")]", shown(list));
    size_t n;
    cfx_datum *items = cfx_datum_items(list, &n);
    REQUIRE(n == 1);
    CHECK_STR_EQ("it's", cfx_datum_text(cfx_datum_items(items[0], &n)[1], NULL));
    cfx_datum_release(list);
    test_alloc_check(&ta);
}

TEST(dicts_and_slices_print)
{
    cfx_datum key = cfx_datum_from_text(CFX_DATUM_STR, "a", 1, NULL, NULL);
    cfx_datum entry[] = {key, cfx_datum_int(1)};
    cfx_datum dict = cfx_datum_seq(CFX_DATUM_DICT, entry, 2, NULL, NULL);
    cfx_datum parts[] = {cfx_datum_none(), cfx_datum_int(4), cfx_datum_none()};
    cfx_datum slice = cfx_datum_seq(CFX_DATUM_SLICE, parts, 3, NULL, NULL);
    CHECK_STR_EQ("{'a': 1}", shown(dict));
    CHECK_STR_EQ("slice(None, 4, None)", shown(slice));
    cfx_datum_release(slice);
    cfx_datum_release(dict);
    cfx_datum_release(key);
}

TEST(a_failed_item_fails_the_list)
{
    cfx_error err = {0};
    cfx_datum bad = cfx_datum_tensor(NULL);
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_datum_seq(CFX_DATUM_LIST, &bad, 1, NULL, &err).kind);
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
}

TEST(containers_of_the_wrong_size)
{
    cfx_error err = {0};
    const cfx_datum items[] = {cfx_datum_int(1), cfx_datum_int(2), cfx_datum_int(3)};
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_datum_seq(CFX_DATUM_DICT, items, 3, NULL, &err).kind);
    CHECK_STR_EQ("a dict cannot be made from 3 items", err.message);
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_datum_seq(CFX_DATUM_SLICE, items, 2, NULL, &err).kind);
    CHECK_STR_EQ("a slice cannot be made from 2 items", err.message);
}

TEST(containers_nest_to_a_limit)
{
    cfx_error err = {0};
    cfx_datum d = cfx_datum_int(1);
    for (int i = 0; i < CFX_MAX_DEPTH; i++) {
        cfx_datum outer = cfx_datum_seq(CFX_DATUM_LIST, &d, 1, NULL, &err);
        REQUIRE(outer.kind == CFX_DATUM_LIST);
        cfx_datum_release(d);
        d = outer;
    }
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_datum_seq(CFX_DATUM_TUPLE, &d, 1, NULL, &err).kind);
    CHECK_INT_EQ(CFX_E_LIMIT, err.status);
    cfx_datum_release(d);
}

TEST(kinds_have_names)
{
    CHECK_STR_EQ("tensor", cfx_datum_kind_name(CFX_DATUM_TENSOR));
    CHECK_STR_EQ("int", cfx_datum_kind_name(CFX_DATUM_INT));
    CHECK_STR_EQ("slice", cfx_datum_kind_name(CFX_DATUM_SLICE));
    CHECK(cfx_datum_kind_name(CFX_DATUM_REGION) != NULL);
}

/* Appends 0, 1, ... 99 one by one; another reference sees them all. */
static cfx_status append_many(const cfx_allocator *allocator, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, NULL, 0, allocator, &err);
    cfx_datum other = cfx_datum_retain(list);
    size_t n = 0;
    (void)arg;
    for (int64_t i = 0; list.kind && err.status == CFX_OK && i < 100; i++) {
        const cfx_datum item = cfx_datum_int(i);
        cfxi_tensor_splice(list, (size_t)i, 0, &item, 1, &err);
    }
    const cfx_datum *items = cfx_datum_items(other, &n);
    for (size_t i = 0; i < n; i++)
        CHECK_INT_EQ((int64_t)i, items[i].as.i);
    CHECK(err.status != CFX_OK || n == 100);
    cfx_datum_release(list);
    cfx_datum_release(other);
    return err.status;
}

TEST(lists_grow_in_place) { test_oom_sweep(append_many, NULL); }

TEST(only_lists_of_the_caller_alone_grow)
{
    const cfx_datum one = cfx_datum_int(1);
    cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, &one, 1, NULL, NULL);
    cfx_datum tuple = cfx_datum_seq(CFX_DATUM_TUPLE, &one, 1, NULL, NULL);
    cfx_datum deep = cfx_datum_seq(CFX_DATUM_LIST, &list, 1, NULL, NULL);
    cfx_datum more = cfx_datum_seq(CFX_DATUM_LIST, &one, 1, NULL, NULL);
    CHECK(!cfxi_tensor_can_extend(list, more));  /* `deep` has it, too */
    CHECK(cfxi_tensor_can_extend(more, list));
    CHECK(!cfxi_tensor_can_extend(more, deep));  /* it would have to count as deeper */
    CHECK(!cfxi_tensor_can_extend(tuple, list) && !cfxi_tensor_can_extend(more, tuple));
    cfx_datum_release(more);
    cfx_datum_release(deep);
    cfx_datum_release(tuple);
    cfx_datum_release(list);
}

TEST(items_are_exchanged)
{
    const cfx_datum numbers[] = {cfx_datum_int(0), cfx_datum_int(1), cfx_datum_int(2)};
    cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, numbers, 3, NULL, NULL);
    size_t n;
    CHECK_INT_EQ(0, cfx_datum_changes(list));
    CHECK_INT_EQ(CFX_OK, cfxi_tensor_splice(list, 1, 1, numbers, 3, NULL));
    CHECK_STR_EQ("[0, 0, 1, 2, 2]", shown(list));
    const cfx_datum *own = cfx_datum_items(list, &n);
    CHECK_INT_EQ(CFX_OK, cfxi_tensor_splice(list, 0, 0, own, n, NULL));
    CHECK_STR_EQ("[0, 0, 1, 2, 2, 0, 0, 1, 2, 2]", shown(list));
    CHECK_INT_EQ(CFX_OK, cfxi_tensor_splice(list, 2, 8, NULL, 0, NULL));
    CHECK_STR_EQ("[0, 0]", shown(list));
    CHECK_INT_EQ(CFX_OK, cfxi_tensor_set_item(list, 1, cfx_datum_int(7), NULL));
    CHECK_STR_EQ("[0, 7]", shown(list));
    CHECK_INT_EQ(4, cfx_datum_changes(list));
    cfx_datum_release(list);
}

TEST(a_list_does_not_come_to_hold_itself)
{
    cfx_error err = {0};
    cfx_datum inner = cfx_datum_seq(CFX_DATUM_LIST, NULL, 0, NULL, NULL);
    cfx_datum outer = cfx_datum_seq(CFX_DATUM_LIST, &inner, 1, NULL, NULL);
    CHECK_INT_EQ(CFX_E_VALUE, cfxi_tensor_splice(inner, 0, 0, &inner, 1, &err));
    CHECK_STR_EQ("a container cannot contain itself", err.message);
    CHECK_INT_EQ(CFX_E_VALUE, cfxi_tensor_splice(inner, 0, 0, &outer, 1, &err));
    CHECK_STR_EQ("[[]]", shown(outer));
    cfx_datum_release(outer);
    cfx_datum_release(inner);
}

TEST(copies_have_lists_of_their_own)
{
    const cfx_datum one = cfx_datum_int(1);
    cfx_datum inner = cfx_datum_seq(CFX_DATUM_LIST, &one, 1, NULL, NULL);
    cfx_datum plain = cfx_datum_seq(CFX_DATUM_TUPLE, &one, 1, NULL, NULL);
    const cfx_datum both[] = {inner, plain};
    cfx_datum tuple = cfx_datum_seq(CFX_DATUM_TUPLE, both, 2, NULL, NULL);
    cfx_datum copy = cfxi_tensor_copy_lists(tuple, NULL);
    cfxi_tensor_set_item(inner, 0, cfx_datum_int(5), NULL);
    CHECK_STR_EQ("([5], (1,))", shown(tuple));
    CHECK_STR_EQ("([1], (1,))", shown(copy));
    size_t n;
    CHECK(cfx_datum_items(copy, &n)[1].as.seq == plain.as.seq);  /* nothing in it can change */
    cfx_datum_release(copy);
    cfx_datum_release(tuple);
    cfx_datum_release(plain);
    cfx_datum_release(inner);
}
