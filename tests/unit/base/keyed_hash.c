/* keyed_hash.c - names that were made to collide do so in no table. */
#include "check.h"

#include "base/base_impl.h"

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCKS = 15, NAMES = 1 << BLOCKS, SIZE = 16 * BLOCKS };

/* One of 32768 names which all have the same plain hash: the top bit of a word changes bits 63 and
 * 34 of the sum, and the next word takes that back. */
static void name_of(unsigned number, char name[SIZE + 1])
{
    memset(name, 'a', SIZE);
    name[SIZE] = '\0';
    for (unsigned i = 0; i < BLOCKS; i++)
        if (number >> i & 1) {
            name[16 * i + 7] ^= (char)0x80;
            name[16 * i + 8 + 7] ^= (char)0x80;
            name[16 * i + 8 + 4] ^= 0x04;
        }
}

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

TEST(names_with_one_plain_hash_have_many_keyed_ones)
{
    static uint32_t all[NAMES];
    char name[SIZE + 1];
    size_t distinct = 1;
    const cfxi_hash_key key = cfxi_base_hash_key_new(all);
    name_of(0, name);
    const uint64_t plain = cfxi_base_hash_bytes(name, SIZE);
    for (unsigned i = 0; i < NAMES; i++) {
        name_of(i, name);
        CHECK(cfxi_base_hash_bytes(name, SIZE) == plain);  /* or the test tests nothing */
        all[i] = cfxi_base_hash_keyed(&key, name, SIZE);
    }
    qsort(all, NAMES, sizeof *all, by_value);
    for (size_t i = 1; i < NAMES; i++)
        distinct += all[i] != all[i - 1];
    CHECK(distinct > NAMES - 10);
}

TEST(keys_differ)
{
    char name[] = "fc.weight";
    const cfxi_hash_key one = cfxi_base_hash_key_new(name);
    const cfxi_hash_key two = cfxi_base_hash_key_new(name + 1);
    CHECK(one.a != two.a && one.b != two.b);
    CHECK(cfxi_base_hash_keyed(&one, name, 9) == cfxi_base_hash_keyed(&one, name, 9));
}

TEST(every_byte_counts)
{
    char text[20];
    const cfxi_hash_key key = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
    memset(text, 0, sizeof text);
    for (size_t size = 0; size < sizeof text; size++) {
        const uint32_t plain = cfxi_base_hash_keyed(&key, text, size);
        CHECK(plain != cfxi_base_hash_keyed(&key, text, size + 1));
        for (size_t i = 0; i < size; i++) {
            text[i] = 1;
            CHECK(plain != cfxi_base_hash_keyed(&key, text, size));
            text[i] = 0;
        }
    }
}

TEST(states_and_graphs_fill_in_linear_time)
{
    cfx_error err = {0};
    char name[SIZE + 1];
    cfx_state *s = cfx_state_new(NULL, &err);
    cfx_graph *g = cfx_graph_new(NULL, NULL, &err);
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, NULL, 0, NULL, &err);
    const clock_t began = clock();
    for (unsigned i = 0; i < NAMES; i++) {
        name_of(i, name);
        CHECK_INT_EQ(CFX_OK, cfx_state_set(s, name, t, &err));
        CHECK_INT_EQ(CFX_OK, cfx_namespace_add(cfx_graph_namespace(g), name, SIZE, &err));
    }
    CHECK_INT_EQ(NAMES, cfx_state_size(s));
    CHECK((double)(clock() - began) / CLOCKS_PER_SEC < 5);  /* else: many times that */
    cfx_tensor_release(t);
    cfx_state_free(s);
    cfx_graph_release(g);
}
