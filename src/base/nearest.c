/* nearest.c - "did you mean": the word that is nearest to a misspelled one. */
#include "base_impl.h"

#include <cfx/embed/base.h>

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* How many letters to insert, drop, change or swap with their neighbour; words are short. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 40 };
    size_t rows[3][MAX + 1];
    size_t m = strlen(a);
    size_t n = strlen(b);
    if (m > MAX || n > MAX)
        return MAX;
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        const size_t *two_up = rows[(i + 1) % 3];
        const size_t *up = rows[(i + 2) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            row[j] = least(least(up[j], row[j - 1]) + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two_up[j - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

void cfx_nearest_begin(cfx_nearest *near, const char *word)
{
    const size_t size = strlen(word);
    near->word = word;
    near->best = NULL;
    near->limit = size > 5 ? size / 3 + 1 : 2;
}

void cfx_nearest_add(cfx_nearest *near, const char *candidate)
{
    const size_t size = strlen(near->word);
    const bool begins = size > 2 && strncmp(near->word, candidate, size) == 0;
    const size_t d = begins ? 1 : distance(near->word, candidate);
    if (d < near->limit) {
        near->best = candidate;
        near->limit = d;
    }
}
