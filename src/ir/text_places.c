/* text_places.c - where the nodes of an IR text stand in it, for messages. */
#include "text_parse_impl.h"

#include <stdlib.h>

typedef struct place_of {
    const cfx_node *node;
    cfx_text_place place;
} place_of;

struct cfx_text_places {
    const cfx_allocator *allocator;
    cfxi_vec items;     /* of place_of: in the order of the text, then of the nodes */
    bool sorted;        /* by node: most texts are never asked about */
    const char *text;   /* while it is parsed */
    size_t line_start;  /* of the last node's line */
    uint32_t line;
    size_t seen;        /* up to here, lines are counted */
};

cfx_text_places *cfxi_ir_places_new(const char *text, const cfx_allocator *allocator)
{
    cfx_text_places *p = cfxi_base_alloc(allocator, sizeof *p);
    if (p)
        *p = (cfx_text_places){.allocator = allocator, .text = text, .line = 1};
    return p;
}

bool cfxi_ir_places_add(cfx_text_places *p, const cfx_node *n, size_t offset)
{
    if (!cfxi_base_vec_reserve(&p->items, 1, sizeof(place_of), p->allocator))
        return false;
    for (const char *end; (end = memchr(p->text + p->seen, '\n', offset - p->seen)) != NULL;) {
        p->line++;
        p->seen = p->line_start = (size_t)(end - p->text) + 1;
    }
    p->seen = offset;
    ((place_of *)p->items.data)[p->items.size++] = (place_of){
        n, {offset, p->line, (uint32_t)(offset - p->line_start + 1)}};
    return true;
}

static int by_node(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const place_of *)a)->node;
    const uintptr_t y = (uintptr_t)((const place_of *)b)->node;
    return (x > y) - (x < y);
}

bool cfx_text_places_find(cfx_text_places *p, const cfx_node *n, cfx_text_place *out)
{
    const place_of key = {.node = n};
    if (!p || p->items.size == 0)
        return false;
    if (!p->sorted)
        qsort(p->items.data, p->items.size, sizeof key, by_node);
    p->sorted = true;
    const place_of *found = bsearch(&key, p->items.data, p->items.size, sizeof key, by_node);
    if (found)
        *out = found->place;
    return found != NULL;
}

void cfx_text_places_free(cfx_text_places *p)
{
    if (!p)
        return;
    cfxi_base_vec_free(&p->items, sizeof(place_of), p->allocator);
    cfxi_base_free(p->allocator, p, sizeof *p);
}
