/* bulk.c - many bytes at once: elements from a mapped file into memory of their own, by two threads
 * and without a second copy in memory; and room in a file that is to be large. */
#define _GNU_SOURCE  /* madvise, fallocate */
#include "format_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PIECE = 1 << 21,  /* bytes that are copied at a time */
    MANY = 4 * PIECE  /* bytes from which on two threads copy */
};

/* Bytes on their way out of a file. */
typedef struct transfer {
    char *to;
    const char *from;
    size_t size;
    bool forget;  /* pages of the file that were copied can go: there is no second copy of them */
} transfer;

/* The whole pages from `at` to `end`. It is advice: nothing depends on it. */
static void advise(const char *at, const char *end, size_t page, int advice)
{
    const uintptr_t first = ((uintptr_t)at + page - 1) / page * page;
    const uintptr_t last = (uintptr_t)end / page * page;
    if (first < last)
        madvise((void *)first, last - first, advice);
}

/* Most of the time goes into fresh pages. Large ones take half of it where they are at hand, but a
 * virtual machine that reports free ones to its host takes several times as long to get them back:
 * they are not asked for. */
static void *transfer_all(void *ctx)
{
    const transfer *t = ctx;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < t->size; at += PIECE) {
        const size_t some = t->size - at < PIECE ? t->size - at : PIECE;
#ifdef MADV_POPULATE_WRITE  /* pages in one call, not by a fault for each: a quarter of the time */
        advise(t->to + at, t->to + at + some, page, MADV_POPULATE_WRITE);
#endif
        memcpy(t->to + at, t->from + at, some);
        if (t->forget)  /* the last page of the piece before is whole now */
            advise(at ? t->from + at - page : t->from, t->from + at + some, page, MADV_DONTNEED);
    }
    return NULL;
}

void cfxi_format_fetch(void *ctx, char *to, const char *from, size_t size)
{
    const cfxi_bytes *b = ctx;
    const size_t half = size >= MANY ? size / 2 / PIECE * PIECE : 0;
    transfer first = {to, from, half, b->apart};
    transfer rest = {to + half, from + half, size - half, b->apart};
    pthread_t other;
    const bool shared = half > 0 && pthread_create(&other, NULL, transfer_all, &first) == 0;
    if (!shared)
        transfer_all(&first);
    transfer_all(&rest);
    if (shared)
        pthread_join(other, NULL);
}

void cfxi_format_give_back(char *data, size_t size)
{
    advise(data, data + size, (size_t)sysconf(_SC_PAGESIZE), MADV_DONTNEED);
}

/* Its size stays what was written. */
bool cfxi_format_reserve(int file, uint64_t size)
{
#ifdef FALLOC_FL_KEEP_SIZE
    return size == 0 || size > INT64_MAX ||
           fallocate(file, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) == 0 || errno != ENOSPC;
#else
    (void)file;
    (void)size;
    return true;
#endif
}
