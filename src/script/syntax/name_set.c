/* name_set.c - the set of names of a source: one look tells a keyword from a name. */
#include "lex.h"

static const struct {
    char text[10];
    uint8_t size;
} words[] = {
#define TOKEN(id, text)
#define KEYWORD(word) {#word, sizeof #word - 1},
#define SOFT(word) KEYWORD(word)
#include "token.def"
#undef TOKEN
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

static void place(cfxi_names *names, uint32_t number)
{
    const uint32_t mask = names->capacity * 2 - 1;
    uint32_t slot = names->entries[number].hash & mask;
    while (names->slots[slot])
        slot = (slot + 1) & mask;
    names->slots[slot] = number + 1;
}

static bool grow(cfxi_names *names)
{
    const cfx_allocator *allocator = names->arena->allocator;
    cfxi_names bigger = *names;
    size_t bytes;
    bigger.capacity = names->capacity ? names->capacity * 2 : 256;
    if (bigger.capacity > UINT32_MAX / 4 ||
        !cfxi_base_mul_size(bigger.capacity, sizeof *names->entries, 0, &bytes))
        return false;
    bigger.entries = cfxi_base_alloc(allocator, bytes);
    bigger.slots = cfxi_base_alloc(allocator, (size_t)bigger.capacity * 2 * sizeof *names->slots);
    if (!bigger.entries || !bigger.slots) {
        cfxi_syntax_names_free(&bigger);
        return false;
    }
    memset(bigger.slots, 0, (size_t)bigger.capacity * 2 * sizeof *names->slots);
    if (names->count)
        memcpy(bigger.entries, names->entries, names->count * sizeof *names->entries);
    for (uint32_t i = 0; i < names->count; i++)
        place(&bigger, i);
    cfxi_syntax_names_free(names);
    *names = bigger;
    return true;
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
    place(names, names->count);
    return names->count++;
}

static uint32_t find(const cfxi_names *names, const char *text, size_t size, uint32_t hash)
{
    const uint32_t mask = names->capacity * 2 - 1;
    for (uint32_t slot = hash & mask, n; (n = names->slots[slot]) != 0; slot = (slot + 1) & mask) {
        const cfxi_name_entry *entry = &names->entries[n - 1];
        if (entry->hash == hash && entry->size == size && memcmp(entry->text, text, size) == 0)
            return n - 1;
    }
    return UINT32_MAX;
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
    if (names->count == names->capacity && !grow(names))
        return UINT32_MAX;
    return append(names, copy_text(names->arena, text, size), size, hash);
}

bool cfxi_syntax_names_init(cfxi_names *names, cfxi_arena *arena)
{
    *names = (cfxi_names){.arena = arena};
    if (!grow(names))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        append(names, words[i].text, words[i].size, hash_name(words[i].text, words[i].size));
    return true;
}

void cfxi_syntax_names_free(cfxi_names *names)
{
    const cfx_allocator *allocator = names->arena->allocator;
    if (names->entries)
        cfxi_base_free(allocator, names->entries, names->capacity * sizeof *names->entries);
    if (names->slots)
        cfxi_base_free(allocator, names->slots, (size_t)names->capacity * 2 * sizeof *names->slots);
    names->entries = NULL;
    names->slots = NULL;
}
