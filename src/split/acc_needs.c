/* acc_needs.c - what calls need if groups of them are to run together.
 *
 *     %b needs %a     %c needs %b      %d needs %c      {%b, %x} is a group
 *
 * adds: %x needs %a, and %c needs %x.
 */
#include "acc_impl.h"

typedef struct fuse_job {
    cfxi_acc *acc;
    const uint32_t *groups;
    uint32_t n_groups;
    uint32_t *starts;       /* by group: where it begins in `members` */
    uint32_t *members;      /* positions, group by group */
    uint32_t *seen;         /* by position: in which round it was seen */
    uint32_t *seen_group;   /* likewise by group */
    uint32_t round;
    uint32_t *outer, *users;  /* positions, each at most once */
    size_t n_outer, n_users;
} fuse_job;

/* ---- groups -------------------------------------------------------------------------------- */

static void list_members(fuse_job *job)
{
    for (size_t i = 0; i < job->acc->n; i++)
        if (job->groups[i] != CFX_NO_PART)
            job->starts[job->groups[i] + 1]++;
    for (uint32_t k = 0; k < job->n_groups; k++)
        job->starts[k + 1] += job->starts[k];
    for (size_t i = job->acc->n; i-- > 0;)  /* backwards: `starts` ends where it belongs */
        if (job->groups[i] != CFX_NO_PART)
            job->members[--job->starts[job->groups[i] + 1]] = (uint32_t)i;
    for (uint32_t k = 0; k < job->n_groups; k++)
        job->starts[k] = job->starts[k + 1];
}

static cfx_status fuse_init(fuse_job *job)
{
    cfxi_arena *arena = &job->acc->arena;
    const size_t n = job->acc->n;
    size_t members = 0;
    for (size_t i = 0; i < n; i++)
        if (job->groups[i] != CFX_NO_PART) {
            job->n_groups = job->groups[i] >= job->n_groups ? job->groups[i] + 1 : job->n_groups;
            members++;
        }
    job->starts = cfxi_base_arena_zeros(arena, (size_t)job->n_groups + 2, sizeof *job->starts);
    job->members = cfxi_base_arena_zeros(arena, members, sizeof *job->members);
    job->seen = cfxi_base_arena_zeros(arena, n, sizeof *job->seen);
    job->seen_group = cfxi_base_arena_zeros(arena, job->n_groups, sizeof *job->seen_group);
    job->outer = cfxi_base_arena_zeros(arena, n, sizeof *job->outer);
    job->users = cfxi_base_arena_zeros(arena, n, sizeof *job->users);
    if (!job->starts || !job->members || !job->seen || !job->seen_group || !job->outer ||
        !job->users)
        return cfxi_base_nomem(job->acc->err);
    list_members(job);
    job->starts[job->n_groups] = (uint32_t)members;
    return CFX_OK;
}

static bool is_new(fuse_job *job, uint32_t i)
{
    const bool first = job->seen[i] != job->round;
    job->seen[i] = job->round;
    return first;
}

/* ---- what calls need ----------------------------------------------------------------------- */

static void find_outer(fuse_job *job, uint32_t group)
{
    job->n_outer = 0;
    job->round++;
    for (uint32_t m = job->starts[group]; m < job->starts[group + 1]; m++)
        CFXI_ACC_EACH(job->acc, cell, job->members[m])
            if (job->groups[cell->node] != group && is_new(job, cell->node))
                job->outer[job->n_outer++] = cell->node;
}

static void find_users(fuse_job *job, uint32_t group)
{
    job->n_users = 0;
    job->round++;
    for (uint32_t m = job->starts[group]; m < job->starts[group + 1]; m++) {
        const cfx_use *use = cfx_node_first_use(job->acc->nodes[job->members[m]]);
        for (; use; use = cfx_use_next(use)) {
            const uint32_t i = cfxi_split_acc_at(job->acc, use->user);
            if (cfxi_ir_is_call(use->user) && job->groups[i] != group && is_new(job, i))
                job->users[job->n_users++] = i;
        }
    }
}

static cfx_status fuse_group(fuse_job *job, uint32_t group)
{
    find_outer(job, group);
    find_users(job, group);
    for (uint32_t m = job->starts[group]; m < job->starts[group + 1]; m++) {
        for (size_t k = 0; k < job->n_outer; k++)
            CFX_TRY(cfxi_split_acc_add(job->acc, job->members[m], job->outer[k]));
        for (size_t k = 0; k < job->n_users; k++)
            CFX_TRY(cfxi_split_acc_add(job->acc, job->users[k], job->members[m]));
    }
    return CFX_OK;
}

static cfx_status fuse_all(fuse_job *job)
{
    CFX_TRY(fuse_init(job));
    for (uint32_t group = 0; group < job->n_groups; group++)
        CFX_TRY(fuse_group(job, group));
    return CFX_OK;
}

cfx_status cfxi_split_acc_fuse(cfxi_acc *acc, const uint32_t *groups)
{
    return fuse_all(&(fuse_job){.acc = acc, .groups = groups});
}

/* Tells what lies in the lists of all calls behind the first `given` cells, each need once. */
static cfx_status tell_new(fuse_job *job, size_t given, cfx_need_fn *fn, void *ctx)
{
    const cfxi_acc *acc = job->acc;
    for (size_t i = 0; i < acc->n; i++) {
        job->round++;
        CFXI_ACC_EACH(acc, cell, i) {
            const bool is_given = (size_t)(cell - (const cfxi_acc_cell *)acc->cells.data) < given;
            if (is_new(job, cell->node) && !is_given && cell->node != i)
                CFX_TRY(fn(ctx, acc->nodes[i], acc->nodes[cell->node]));
        }
    }
    return CFX_OK;
}

cfx_status cfx_graph_fuse_needs(cfx_graph *g, const uint32_t *groups, const cfx_need *needs,
                                size_t n, cfx_need_fn *fn, void *ctx, cfx_error *err)
{
    cfxi_acc acc;
    fuse_job job = {.acc = &acc, .groups = groups};
    cfx_status status = cfxi_split_acc_init(&acc, g, err);
    if (status == CFX_OK)
        status = cfxi_split_acc_load(&acc, needs, n, false);
    const size_t given = acc.cells.size;
    if (status == CFX_OK)
        status = fuse_all(&job);
    cfxi_ir_graph_freeze(g);
    if (status == CFX_OK)
        status = tell_new(&job, given, fn, ctx);
    cfxi_ir_graph_thaw(g);
    cfxi_split_acc_done(&acc);
    return status;
}

/* ---- who uses calls ------------------------------------------------------------------------ */

/* Adds the users of a node to job->users, with all of their groups, but none of `group`. */
static void expand_users(fuse_job *job, uint32_t i, uint32_t group)
{
    CFXI_ACC_EACH(job->acc, cell, i) {
        const uint32_t other = job->groups[cell->node];
        if (other == CFX_NO_PART) {
            if (is_new(job, cell->node))
                job->users[job->n_users++] = cell->node;
            continue;
        }
        if (other == group || job->seen_group[other] == job->round)
            continue;
        job->seen_group[other] = job->round;
        for (uint32_t m = job->starts[other]; m < job->starts[other + 1]; m++)
            job->users[job->n_users++] = job->members[m];
    }
}

static cfx_status tell_users(const fuse_job *job, uint32_t i, cfx_need_fn *fn, void *ctx)
{
    for (size_t k = 0; k < job->n_users; k++)
        CFX_TRY(fn(ctx, job->acc->nodes[i], job->acc->nodes[job->users[k]]));
    return CFX_OK;
}

static cfx_status fuse_users(fuse_job *job, cfx_need_fn *fn, void *ctx)
{
    for (uint32_t i = 0; i < job->acc->n; i++) {
        if (job->groups[i] != CFX_NO_PART)
            continue;
        job->round++;
        job->n_users = 0;
        expand_users(job, i, CFX_NO_PART);
        CFX_TRY(tell_users(job, i, fn, ctx));
    }
    for (uint32_t group = 0; group < job->n_groups; group++) {
        job->round++;
        job->n_users = 0;
        for (uint32_t m = job->starts[group]; m < job->starts[group + 1]; m++)
            expand_users(job, job->members[m], group);
        for (uint32_t m = job->starts[group]; m < job->starts[group + 1]; m++)
            CFX_TRY(tell_users(job, job->members[m], fn, ctx));
    }
    return CFX_OK;
}

cfx_status cfx_graph_fuse_users(cfx_graph *g, const uint32_t *groups, const cfx_need *users,
                                size_t n, cfx_need_fn *fn, void *ctx, cfx_error *err)
{
    cfxi_acc acc;
    fuse_job job = {.acc = &acc, .groups = groups};
    cfx_status status = cfxi_split_acc_init(&acc, g, err);
    if (status == CFX_OK)
        status = cfxi_split_acc_load(&acc, users, n, !users);
    if (status == CFX_OK)
        status = fuse_init(&job);
    cfxi_ir_graph_freeze(g);
    if (status == CFX_OK)
        status = fuse_users(&job, fn, ctx);
    cfxi_ir_graph_thaw(g);
    cfxi_split_acc_done(&acc);
    return status;
}
