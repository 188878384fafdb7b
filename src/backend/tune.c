/* tune.c - back ends measured on a problem, and a file of what was found.
 *
 *     cfx tune 1
 *     AMD EPYC 00a10f11; cfx 0.1.0; oneDNN 3.2.0; product=128,768,768,...<tab>oneDNN<tab>1531000
 *
 * A line has the machine and the problem, the fastest candidate, and its nanoseconds. Lines are
 * only added, each with one write, so several processes can share a file; of two lines for a
 * problem the last counts. What does not read as a line is passed over; a file with another head is
 * begun anew.
 */
#include "backend_impl.h"

#include "base/forks.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char head[] = "cfx tune 1\n";

enum {
    LONGEST_FILE = 32 << 20,
    RUNS = 5,                /* of each candidate, after one that is not counted */
    LONGEST = 200 * 1000000  /* nanoseconds: then fewer runs will do */
};

struct cfxi_tuner {
    const cfx_allocator *allocator;
    cfxi_lock lock;
    cfx_buffer path;   /* of the file, terminated; empty: none */
    cfx_buffer lines;  /* all that is known; begins with a newline */
    bool anew;         /* the file is not one of ours: it is overwritten */
    size_t measured;
    char cpu[80];
};

/* ---- the machine --------------------------------------------------------------------------- */

static void name_cpu(char *to, size_t size)
{
    char brand[49] = "unknown CPU";
    unsigned signature = 0;
#if defined(__x86_64__)
    unsigned r[4] = {0};
    if (__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]))
        signature = r[0];
    for (unsigned i = 0; i < 3; i++)
        if (__get_cpuid(0x80000002u + i, &r[0], &r[1], &r[2], &r[3]))
            memcpy(brand + 16 * i, r, sizeof r);
    brand[48] = '\0';
#endif
    for (char *c = brand; *c; c++)
        if (*c < ' ' || *c > '~' || *c == ';')
            *c = ' ';
    snprintf(to, size, "%s %08x", brand, signature);
}

/* ---- the file ------------------------------------------------------------------------------ */

/* "" if there is no file; false if there is one that is not ours. */
static bool read_lines(const char *path, cfx_buffer *to)
{
    struct stat about;
    char part[4096];
    ssize_t n = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return true;
    bool ok = fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= LONGEST_FILE;
    while (ok && (n = read(file, part, sizeof part)) > 0)
        ok = !memchr(part, 0, (size_t)n) && cfx_buffer_append(to, part, (size_t)n) == CFX_OK;
    close(file);
    const size_t size = sizeof head - 1;
    ok = ok && n == 0 && (to->size == 0 || (to->size >= size && memcmp(to->data, head, size) == 0));
    if (!ok)
        to->size = 0;
    return ok;
}

/* Makes the folder of the file, and the one that this is in. */
static void make_folders(char *path)
{
    char *last = strrchr(path, '/');
    if (!last || last == path)
        return;
    *last = '\0';
    if (mkdir(path, 0777) != 0) {
        char *before = strrchr(path, '/');
        if (before && before != path) {
            *before = '\0';
            mkdir(path, 0777);
            *before = '/';
            mkdir(path, 0777);
        }
    }
    *last = '/';
}

/* Whether it can be written does not matter: it will be measured again. */
static void add_line(cfxi_tuner *t, const char *line, size_t size)
{
    struct stat about;
    if (t->path.size == 0)
        return;
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | (t->anew ? O_TRUNC : O_APPEND);
    int file = open(t->path.data, flags, 0666);
    if (file < 0) {
        make_folders(t->path.data);
        file = open(t->path.data, flags, 0666);
    }
    if (file < 0)
        return;
    const bool empty = fstat(file, &about) == 0 && about.st_size == 0;
    bool ok = !empty || write(file, head, sizeof head - 1) == (ssize_t)(sizeof head - 1);
    /* A line that was cut off ends here. */
    ok = ok && (empty || write(file, "\n", 1) == 1) && write(file, line, size) == (ssize_t)size;
    if (close(file) == 0 && ok)
        t->anew = false;
}

/* ---- looking up ---------------------------------------------------------------------------- */

static cfx_status describe(const cfxi_tuner *t, const cfxi_problem *p, cfx_buffer *key)
{
    cfxi_out out;
    cfxi_base_out_begin(&out, cfx_buffer_sink(key));
    cfxi_base_out_printf(&out, "\n%s; cfx %s; oneDNN %s;", t->cpu, cfx_version(),
                         p->onednn ? cfxi_backend_onednn_version(p->onednn) : "none");
    cfxi_backend_print_problem(p, &out);
    cfxi_base_out_str(&out, "\t");
    CFX_TRY(cfxi_base_out_end(&out, NULL));
    return cfx_buffer_append(key, "", 1);
}

/* The candidate whose name stands there, if it is one of those. */
static int read_name(const char *text, unsigned candidates)
{
    const cfxi_candidate *c;
    for (size_t i = 0; (c = cfxi_backend_candidate(i)); i++) {
        const size_t size = strlen(c->name);
        if (strncmp(text, c->name, size) == 0 && text[size] == '\t')
            return candidates & (1u << i) ? (int)i : -1;
    }
    return -1;
}

static int look_up(const cfxi_tuner *t, const char *key, unsigned candidates)
{
    int found = -1;
    const size_t size = strlen(key);
    for (const char *at = t->lines.data; at && (at = strstr(at, key)); at += size) {
        const int one = read_name(at + size, candidates);
        found = one >= 0 ? one : found;
    }
    return found;
}

static void remember(cfxi_tuner *t, cfx_buffer *key, const char *name, double nanoseconds)
{
    char rest[80];
    const int size = snprintf(rest, sizeof rest, "%s\t%.0f\n", name, nanoseconds);
    key->size--;  /* the terminator */
    if (cfx_buffer_append(key, rest, (size_t)size) != CFX_OK)
        return;
    add_line(t, key->data + 1, key->size - 1);
    if (t->lines.size > 0)
        t->lines.size--;
    if (cfx_buffer_append(&t->lines, key->data, key->size) == CFX_OK)
        cfx_buffer_append(&t->lines, "", 1);
    t->measured++;
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* Memory for the operands of a problem. */
typedef struct operands {
    float *x, *out, *w, *columns;
    float *posts[CFXI_MOST_OPERANDS];
} operands;

static size_t extent(const int64_t *sizes, const int64_t *strides, size_t n)
{
    int64_t last = 0;
    for (size_t i = 0; i < n; i++)
        last += (sizes[i] - 1) * strides[i];
    return (size_t)last + 1;
}

static float *fill(cfx_runtime *rt, size_t n, bool *ok)
{
    float *x = cfxi_rt_scratch(rt, n * sizeof *x);
    for (size_t i = 0; x && i < n; i++)
        x[i] = (float)(i % 16) / 16;
    *ok = *ok && x;
    return x;
}

static bool make_operands(cfx_runtime *rt, const cfxi_problem *p, operands *o)
{
    const cfxi_conv *c = &p->conv;
    const bool conv = p->kind == CFXI_CONVOLUTION;
    const int64_t images = conv ? c->batch : 1;
    const int64_t channels = conv ? c->groups * c->in_channels : p->k;
    const int64_t columns = conv ? c->groups * c->out_channels : p->n;
    const int64_t x[] = {images, channels, 1, conv ? c->in[1] : 1, conv ? c->in[2] : p->m};
    const int64_t y[] = {images, columns, 1, conv ? c->out[1] : 1, conv ? c->out[2] : p->m};
    const int64_t xs[] = {0, 1, 0, 0, p->x_row};
    const int64_t ys[] = {0, 1, 0, 0, p->out_row};
    const int64_t w[] = {conv ? c->groups : 1, conv ? c->out_channels : p->n,
                         conv ? c->in_channels : p->k, conv ? c->kernel[1] : 1,
                         conv ? c->kernel[2] : 1};
    const int64_t ws[] = {conv ? c->wg : 0, conv ? c->ws[0] : p->w_n, conv ? c->ws[1] : p->w_k,
                          conv ? c->ws[3] : 0, conv ? c->ws[4] : 0};
    bool ok = true;
    o->x = fill(rt, extent(x, conv ? c->xs : xs, 5), &ok);
    o->out = fill(rt, extent(y, conv ? c->ys : ys, 5), &ok);
    o->w = fill(rt, extent(w, ws, 5), &ok);
    o->columns = fill(rt, (size_t)columns, &ok);
    for (size_t i = 0; i < p->num_posts; i++) {
        const int64_t *rows = p->posts[i].rows;
        const int64_t strides[] = {rows[0], 1, 0, rows[1], rows[2]};
        const int64_t row[] = {0, 1, 0, 0, rows[0]};
        const cfxi_post *post = &p->posts[i];
        const bool has = post->kind == CFXI_POST_ADD || post->kind == CFXI_POST_MUL;
        const size_t inputs = has ? 2 : post->kind == CFXI_POST_CHAIN ? post->chain->num_inputs : 0;
        for (size_t k = 1; k < inputs; k++) {
            float **to = &o->posts[has ? post->operand : post->operands[k]];
            if (!*to)
                *to = fill(rt, extent(y, conv ? strides : row, 5), &ok);
        }
    }
    return ok;
}

static void free_operands(cfx_runtime *rt, operands *o)
{
    float *const all[] = {o->x, o->out, o->w, o->columns};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        cfxi_rt_scratch_free(rt, all[i]);
    for (size_t i = 0; i < CFXI_MOST_OPERANDS; i++)
        cfxi_rt_scratch_free(rt, o->posts[i]);
}

/* Nanoseconds of the fastest run; negative if there is none. */
static double time_kernel(const cfxi_kernel *k, const cfxi_run *r)
{
    double best = -1;
    double spent = 0;
    for (int i = 0; i <= RUNS && (i < 2 || spent < LONGEST); i++) {
        const uint64_t start = cfxi_rt_clock();
        if (k->backend->run(k, r, NULL) != CFX_OK)
            return -1;
        const double took = (double)(cfxi_rt_clock() - start);
        spent += took;
        if (i > 0 && (best < 0 || took < best))
            best = took;
    }
    return best;
}

/* Candidates one after the other, not in turns: the threads of one that wait actively would disturb
 * the next. */
static int measure(const cfxi_tuner *t, const cfxi_problem *p, unsigned candidates,
                   cfx_runtime *rt, double *least, cfx_error *err)
{
    const struct timespec rest = {.tv_nsec = 5000000};
    operands o = {0};
    int best = -1;
    const bool ok = make_operands(rt, p, &o);
    const cfxi_constants constants = {.w = o.w, .bias = p->has_bias ? o.columns : NULL};
    cfxi_run r = {.rt = rt, .x = o.x, .out = o.out};
    for (size_t i = 0; i < CFXI_MOST_OPERANDS; i++)
        r.operands[i] = o.posts[i];
    const cfxi_candidate *c;
    for (size_t i = 0; ok && (c = cfxi_backend_candidate(i)); i++) {
        if (!(candidates & (1u << i)))
            continue;
        if (cfxi_rt_go_on(rt, err) != CFX_OK) {
            best = -1;
            break;
        }
        cfxi_kernel *k = c->backend->prepare(p, &constants, t->allocator, NULL);
        if (!k)
            continue;
        nanosleep(&rest, NULL);
        const double took = time_kernel(k, &r);
        if (took >= 0 && (best < 0 || took < *least)) {
            best = (int)i;
            *least = took;
        }
        k->backend->release(k);
    }
    free_operands(rt, &o);
    return best;
}

int cfxi_backend_tune(cfxi_tuner *t, const cfxi_problem *p, unsigned candidates, cfx_runtime *rt,
                      cfx_error *err)
{
    cfx_buffer key;
    int found = -1;
    double least = 0;
    cfx_buffer_init(&key, t->allocator);
    if (cfxi_base_lock_take(&t->lock))
        cfx_buffer_init(&t->lines, t->allocator);  /* not freed: it was being changed */
    if (describe(t, p, &key) == CFX_OK) {
        found = look_up(t, key.data, candidates);
        if (found < 0 && (found = measure(t, p, candidates, rt, &least, err)) >= 0)
            remember(t, &key, cfxi_backend_candidate((size_t)found)->name, least);
    }
    cfxi_base_lock_leave(&t->lock);
    cfx_buffer_free(&key);
    return found;
}

/* ---- tuners -------------------------------------------------------------------------------- */

cfxi_tuner *cfxi_backend_tuner_new(const char *folder, const cfx_allocator *allocator,
                                   cfx_error *err)
{
    cfxi_tuner *t = cfxi_base_alloc(allocator, sizeof *t);
    if (!t)
        return cfxi_base_nomem(err), NULL;
    *t = (cfxi_tuner){.allocator = allocator};
    if (!cfxi_base_lock_new(&t->lock)) {
        cfxi_base_free(allocator, t, sizeof *t);
        return cfxi_base_nomem(err), NULL;
    }
    cfx_buffer_init(&t->path, allocator);
    cfx_buffer_init(&t->lines, allocator);
    name_cpu(t->cpu, sizeof t->cpu);
    static const char name[] = "/tune.txt";
    if (folder && (cfx_buffer_append(&t->path, folder, strlen(folder)) != CFX_OK ||
                   cfx_buffer_append(&t->path, name, sizeof name) != CFX_OK)) {
        cfxi_backend_tuner_free(t);
        return cfxi_base_nomem(err), NULL;
    }
    if (folder)
        t->anew = !read_lines(t->path.data, &t->lines);
    if (cfx_buffer_append(&t->lines, "", 1) != CFX_OK) {
        cfxi_backend_tuner_free(t);
        return cfxi_base_nomem(err), NULL;
    }
    return t;
}

void cfxi_backend_tuner_free(cfxi_tuner *t)
{
    if (!t)
        return;
    cfxi_base_lock_free(&t->lock);
    cfx_buffer_free(&t->path);
    cfx_buffer_free(&t->lines);
    cfxi_base_free(t->allocator, t, sizeof *t);
}

size_t cfxi_backend_tuner_measured(const cfxi_tuner *t) { return t->measured; }
