/* profile.c - keeps what runtimes tell of steps, and adds it up by node. */
#include "plan_impl.h"

#include "base/forks.h"

#include <cfx/embed/base.h>
#include <cfx/profile.h>
#include <stdio.h>
#include <stdlib.h>

/* All runs of one step. Texts are copies. */
typedef struct profile_row {
    uint32_t hash;
    uint32_t line;
    const char *node;
    const char *kernel;
    const char *file;  /* or NULL */
    size_t count;
    uint64_t time;
    double flops;
    uint64_t bytes;
} profile_row;

typedef struct profile_event {
    const profile_row *row;
    uint64_t begin, end;
    uint64_t thread;
} profile_event;

struct cfx_profile {
    const cfx_allocator *allocator;
    cfxi_lock lock;
    cfxi_arena arena;   /* rows and their texts */
    cfxi_hash_set set;  /* of profile_row * */
    cfxi_vec rows;      /* the same in the order of their first run */
    cfxi_vec events;    /* of profile_event */
    bool lacks_memory;
};

static profile_row *row_at(const cfx_profile *p, size_t i)
{
    return ((profile_row **)p->rows.data)[i];
}

/* In a child that was forked while another thread added something, what there was is forgotten: it
 * may be half a row. */
static void lock(cfx_profile *p)
{
    if (!cfxi_base_lock_take(&p->lock))
        return;
    p->set = (cfxi_hash_set){0};
    p->rows = p->events = (cfxi_vec){0};
    cfxi_base_arena_init(&p->arena, p->allocator);
}

/* ---- keeping ------------------------------------------------------------------------------- */

static uint32_t hash_of(const void *row) { return ((const profile_row *)row)->hash; }

static bool is_of(const void *item, const void *key, size_t size)
{
    const profile_row *row = item;
    const cfx_step *step = key;
    (void)size;
    return row->line == step->line && strcmp(row->node, step->node) == 0 &&
           strcmp(row->kernel, step->kernel) == 0;
}

static const char *copied(cfx_profile *p, const char *text)
{
    char *copy = cfxi_base_arena_alloc(&p->arena, strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

/* The row of a step; NULL if memory is out. */
static profile_row *find_row(cfx_profile *p, const cfx_step *step)
{
    const uint32_t hash =
        (uint32_t)cfxi_base_hash_mix(cfxi_base_hash_bytes(step->node, strlen(step->node)),
                                     cfxi_base_hash_bytes(step->kernel, strlen(step->kernel)));
    profile_row *row = cfxi_base_set_find(&p->set, hash, is_of, step, 0);
    if (row)
        return row;
    row = cfxi_base_arena_zeros(&p->arena, 1, sizeof *row);
    if (!row || !cfxi_base_set_reserve(&p->set, hash_of, p->allocator) ||
        !cfxi_base_vec_reserve(&p->rows, 1, sizeof row, p->allocator))
        return NULL;
    *row = (profile_row){.hash = hash, .line = step->line, .node = copied(p, step->node),
                         .kernel = copied(p, step->kernel),
                         .file = step->file ? copied(p, step->file) : NULL};
    if (!row->node || !row->kernel)
        return NULL;
    cfxi_base_set_insert(&p->set, hash, row);
    ((profile_row **)p->rows.data)[p->rows.size++] = row;
    return row;
}

static void keep(void *ctx, const cfx_step *step)
{
    cfx_profile *p = ctx;
    lock(p);
    profile_row *row = find_row(p, step);
    profile_event *event = row ? cfxi_plan_push(&p->events, sizeof *event, p->allocator, NULL)
                               : NULL;
    if (event) {
        *event = (profile_event){row, step->begin, step->end, (uint64_t)pthread_self()};
        row->count++;
        row->time += step->end - step->begin;
        row->flops += step->flops;
        row->bytes += step->bytes;
    } else {
        p->lacks_memory = true;
    }
    cfxi_base_lock_leave(&p->lock);
}

/* ---- life ---------------------------------------------------------------------------------- */

cfx_profile *cfx_profile_new(const cfx_allocator *allocator, cfx_error *err)
{
    allocator = cfxi_base_allocator(allocator);
    cfx_profile *p = cfxi_base_alloc(allocator, sizeof *p);
    if (!p)
        return cfxi_base_nomem(err), NULL;
    *p = (cfx_profile){.allocator = allocator};
    cfxi_base_arena_init(&p->arena, allocator);
    if (!cfxi_base_lock_new(&p->lock)) {
        cfxi_base_free(allocator, p, sizeof *p);
        return cfxi_base_nomem(err), NULL;
    }
    return p;
}

void cfx_profile_clear(cfx_profile *p)
{
    lock(p);
    cfxi_base_set_clear(&p->set);
    cfxi_base_arena_release(&p->arena);
    cfxi_base_arena_init(&p->arena, p->allocator);
    p->rows.size = p->events.size = 0;
    p->lacks_memory = false;
    cfxi_base_lock_leave(&p->lock);
}

void cfx_profile_free(cfx_profile *p)
{
    if (!p)
        return;
    cfxi_base_lock_free(&p->lock);
    cfxi_base_set_free(&p->set, p->allocator);
    cfxi_base_arena_release(&p->arena);
    cfxi_base_vec_free(&p->rows, sizeof(profile_row *), p->allocator);
    cfxi_base_vec_free(&p->events, sizeof(profile_event), p->allocator);
    cfxi_base_free(p->allocator, p, sizeof *p);
}

void cfx_profile_watch(cfx_profile *p, cfx_runtime_options *options)
{
    options->step = keep;
    options->step_ctx = p;
}

/* ---- printing ------------------------------------------------------------------------------ */

static const char *file_of(const profile_row *row)
{
    const char *name = row->file ? strrchr(row->file, '/') : NULL;
    return name ? name + 1 : row->file;
}

static int is_slower(const void *a, const void *b)
{
    const profile_row *x = *(profile_row *const *)a;
    const profile_row *y = *(profile_row *const *)b;
    return x->time != y->time ? (x->time < y->time ? 1 : -1) : strcmp(x->node, y->node);
}

/* "  1.234   12.3%   85.1   10.2  product, tiles of 8 x 48          %fc1        net.py:12" */
static void print_row(const profile_row *row, double all, cfxi_out *out)
{
    const double ns = row->time > 0 ? (double)row->time : 1;
    cfxi_base_out_printf(out, "%9.3f %5.1f%% %8.1f %7.1f  %-34.34s %%%-20s",
                         (double)row->time / (double)row->count / 1e6,
                         100 * (double)row->time / all, row->flops / ns, (double)row->bytes / ns,
                         row->kernel, row->node);
    if (row->file)
        cfxi_base_out_printf(out, " %s:%u", file_of(row), row->line);
    cfxi_base_out_char(out, '\n');
}

static cfx_status print_table(const cfx_profile *p, cfxi_out *out, cfx_error *err)
{
    const size_t n = p->rows.size;
    double all = 1e-9;
    profile_row **sorted = cfxi_base_alloc(p->allocator, (n + 1) * sizeof *sorted);
    if (!sorted)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < n; i++) {
        sorted[i] = row_at(p, i);
        all += (double)sorted[i]->time;
    }
    qsort(sorted, n, sizeof *sorted, is_slower);
    cfxi_base_out_str(out, "       ms  share  GFLOP/s    GB/s  kernel                             "
                           "node\n");
    for (size_t i = 0; i < n; i++)
        print_row(sorted[i], all, out);
    cfxi_base_free(p->allocator, sorted, (n + 1) * sizeof *sorted);
    return CFX_OK;
}

static void json_text(cfx_json *j, const char *key, const char *text)
{
    cfx_json_field(j, key);
    cfx_json_text(j, text);
}

static void json_int(cfx_json *j, const char *key, uint64_t number)
{
    cfx_json_field(j, key);
    cfx_json_uint(j, number);
}

static void json_float(cfx_json *j, const char *key, double number)
{
    cfx_json_field(j, key);
    cfx_json_float(j, number);
}

static void print_json(const cfx_profile *p, cfx_json *j)
{
    cfx_json_field(j, "steps");
    cfx_json_open(j, '[');
    for (size_t i = 0; i < p->rows.size; i++) {
        const profile_row *row = row_at(p, i);
        cfx_json_line(j);
        cfx_json_open(j, '{');
        json_text(j, "node", row->node);
        json_text(j, "kernel", row->kernel);
        json_text(j, "file", row->file);
        json_int(j, "line", row->line);
        json_int(j, "runs", row->count);
        json_int(j, "nanoseconds", row->time);
        json_float(j, "flops", row->flops);
        json_int(j, "bytes", row->bytes);
        cfx_json_close(j, '}');
    }
    cfx_json_close(j, ']');
}

/* The format of Chrome's trace viewer: complete events, in microseconds. */
static void print_trace(const cfx_profile *p, cfx_json *j)
{
    const profile_event *events = p->events.data;
    const uint64_t first = p->events.size > 0 ? events[0].begin : 0;
    cfx_json_field(j, "traceEvents");
    cfx_json_open(j, '[');
    for (size_t i = 0; i < p->events.size; i++) {
        const profile_event *e = &events[i];
        cfx_json_line(j);
        cfx_json_open(j, '{');
        json_text(j, "name", e->row->node);
        json_text(j, "cat", e->row->kernel);
        json_text(j, "ph", "X");
        json_float(j, "ts", (double)(int64_t)(e->begin - first) / 1e3);
        json_float(j, "dur", (double)(e->end - e->begin) / 1e3);
        json_int(j, "pid", 1);
        json_int(j, "tid", e->thread % 1000000);
        cfx_json_field(j, "args");
        cfx_json_open(j, '{');
        json_text(j, "file", e->row->file);
        json_int(j, "line", e->row->line);
        cfx_json_close(j, '}');
        cfx_json_close(j, '}');
    }
    cfx_json_close(j, ']');
}

cfx_status cfx_profile_print(cfx_profile *p, cfx_profile_format format, cfx_sink sink,
                             cfx_error *err)
{
    cfxi_out out;
    cfx_json j;
    cfx_status status = CFX_OK;
    CFX_TRY(cfxi_base_expect(p, "profile", err));
    lock(p);
    cfxi_base_out_begin(&out, sink);
    if (format != CFX_PROFILE_TABLE && !p->lacks_memory) {
        cfx_json_begin(&j, cfxi_base_out_sink(&out), false);
        cfx_json_open(&j, '{');
    }
    if (p->lacks_memory)
        status = cfxi_base_nomem(err);
    else if (format == CFX_PROFILE_TABLE)
        status = print_table(p, &out, err);
    else if (format == CFX_PROFILE_JSON)
        print_json(p, &j);
    else
        print_trace(p, &j);
    if (format != CFX_PROFILE_TABLE && !p->lacks_memory) {
        cfx_json_close(&j, '}');
        status = j.status == CFX_OK ? CFX_OK : cfxi_base_failed(err, j.status);
        cfxi_base_out_char(&out, '\n');
    }
    if (status == CFX_OK)
        status = cfxi_base_out_end(&out, err);
    cfxi_base_lock_leave(&p->lock);
    return status;
}
