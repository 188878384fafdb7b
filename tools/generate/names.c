/* names.c - what the functions are called: never what a public header uses already. */
#include "generate.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static void add_name(names *all, const char *name, size_t size)
{
    if (all->count == all->capacity) {
        all->capacity = all->capacity ? 2 * all->capacity : 1024;
        all->at = expect(realloc(all->at, all->capacity * sizeof *all->at));
    }
    all->at[all->count++] = expect(strndup(name, size));
}

/* Adds the words cfx_... of a header, outside of comments. */
static void add_header(names *all, const char *path)
{
    const char *at = read_file(path);
    if (!at)
        fail("cannot read %s: %s", path, strerror(errno));
    while (*at) {
        size_t size = 0;
        while (in_word(at[size]))
            size++;
        if (size > 4 && strncmp(at, "cfx_", 4) == 0)
            add_name(all, at, size);
        const char *closed = strncmp(at, "/*", 2) == 0 ? strstr(at + 2, "*/") : NULL;
        at = closed ? closed + 2 : at + (size ? size : 1);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

names read_headers(char *const *paths, int count)
{
    names all = {NULL, 0, 0};
    for (int i = 0; i < count; i++)
        add_header(&all, paths[i]);
    if (all.count == 0)
        fail("the headers have no name that begins with cfx_");
    qsort(all.at, all.count, sizeof *all.at, compare_names);
    return all;
}

/* Whether a header uses the name with the ending. */
static bool is_used(const names *all, const char *name, const char *ending)
{
    char both[256];
    const char *key = both;
    snprintf(both, sizeof both, "%s%s", name, ending);
    return bsearch(&key, all->at, all->count, sizeof *all->at, compare_names) != NULL;
}

const char *function_name(const names *used, const char *id, char out[NAME_SIZE])
{
    snprintf(out, NAME_SIZE, "cfx_%s", id);
    while (is_used(used, out, "") || is_used(used, out, "_at") || is_used(used, out, "_args")) {
        const size_t size = strlen(out);
        if (size + 5 > NAME_SIZE)
            fail("the name of the operator %s is too long", id);
        snprintf(out + size, NAME_SIZE - size, "_row");
    }
    return out;
}
