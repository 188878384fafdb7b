/* name_set.c - the set of names of a source: one look tells a keyword from a name. */
#include "lex.h"

static const struct {
    char text[10];
    uint8_t size;
} words[] = {
#define KEYWORD(word) {#word, sizeof #word - 1},
#define SOFT(word) KEYWORD(word)
#include "base/keyword.def"
#undef KEYWORD
#undef SOFT
};

_Static_assert(sizeof words / sizeof *words == CFXI_SOFT_end, "a word is a number of names.c");

static uint64_t load(const char *text, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, text, size);
    return word;
}

/* Most names are short: one or two words of eight bytes. */
static uint32_t hash_name(const char *text, size_t size)
{
    uint64_t h = size;
    for (; size > 8; text += 8, size -= 8)
        h = (h ^ load(text, 8)) * 0x9e3779b97f4a7c15u;
    h = (h ^ load(text, size)) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h ^ h >> 32);
}

/* Room for one more name. */
static bool grow(cfxi_names *names)
{
    const cfx_allocator *allocator = names->arena->allocator;
    const uint32_t capacity = names->capacity ? names->capacity * 2 : 256;
    size_t bytes;
    if (capacity > UINT32_MAX / 4 ||
        !cfxi_base_mul_size(capacity, sizeof *names->entries, 0, &bytes))
        return false;
    cfxi_name_entry *entries = cfxi_base_alloc(allocator, bytes);
    if (!entries)
        return false;
    if (names->count)
        memcpy(entries, names->entries, names->count * sizeof *entries);
    cfxi_base_free(allocator, names->entries, names->capacity * sizeof *entries);
    names->entries = entries;
    names->capacity = capacity;
    return true;
}

static bool make_room(cfxi_names *names)
{
    return (names->count < names->capacity || grow(names)) &&
           cfxi_base_set_reserve_numbers(&names->numbers, &names->entries->hash,
                                         sizeof *names->entries, names->arena->allocator);
}

static const char *copy_text(cfxi_arena *arena, const char *text, size_t size)
{
    char *copy = cfxi_base_arena_alloc(arena, size + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

static uint32_t append(cfxi_names *names, const char *text, size_t size, uint32_t hash)
{
    if (!text)
        return UINT32_MAX;
    names->entries[names->count] = (cfxi_name_entry){text, (uint32_t)size, hash};
    cfxi_base_set_insert(&names->numbers, hash, cfxi_base_set_item(names->count));
    return names->count++;
}

typedef struct wanted_name {
    const cfxi_name_entry *entries;
    const char *text;
    uint32_t hash;
} wanted_name;

static bool is_wanted(const void *item, const void *key, size_t size)
{
    const wanted_name *wanted = key;
    const cfxi_name_entry *entry = &wanted->entries[cfxi_base_set_number(item)];
    return entry->hash == wanted->hash && entry->size == size &&
           memcmp(entry->text, wanted->text, size) == 0;
}

static uint32_t find(const cfxi_names *names, const char *text, size_t size, uint32_t hash)
{
    const wanted_name wanted = {names->entries, text, hash};
    const void *item = cfxi_base_set_find(&names->numbers, hash, is_wanted, &wanted, size);
    return item ? (uint32_t)cfxi_base_set_number(item) : UINT32_MAX;
}

const char *cfxi_syntax_names_find(const cfxi_names *names, const char *text, size_t size)
{
    const uint32_t number = find(names, text, size, hash_name(text, size));
    return number == UINT32_MAX ? NULL : names->entries[number].text;
}

uint32_t cfxi_syntax_names_add(cfxi_names *names, const char *text, size_t size)
{
    const uint32_t hash = hash_name(text, size);
    const uint32_t number = find(names, text, size, hash);
    if (number != UINT32_MAX)
        return number;
    if (!make_room(names))
        return UINT32_MAX;
    return append(names, copy_text(names->arena, text, size), size, hash);
}

bool cfxi_syntax_names_init(cfxi_names *names, cfxi_arena *arena)
{
    *names = (cfxi_names){.arena = arena};
    if (!grow(names) ||
        !cfxi_base_set_presize(&names->numbers, names->capacity, arena->allocator)) {
        cfxi_syntax_names_free(names);
        return false;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        append(names, words[i].text, words[i].size, hash_name(words[i].text, words[i].size));
    return true;
}

void cfxi_syntax_names_free(cfxi_names *names)
{
    const cfx_allocator *allocator = names->arena->allocator;
    cfxi_base_free(allocator, names->entries, names->capacity * sizeof *names->entries);
    cfxi_base_set_free(&names->numbers, allocator);
    names->entries = NULL;
    names->capacity = 0;
}
