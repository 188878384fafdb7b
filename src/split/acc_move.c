/* acc_move.c - moving calls between the parts of a split for an accelerator. */
#include "acc_impl.h"

/* ---- values that are not tensors ----------------------------------------------------------- */

typedef struct move_job {
    cfxi_acc acc;
    const unsigned char *flags;
    uint32_t *home;           /* by position: its part; CFX_NO_PART if it is in none */
    uint32_t *next;           /* by position: the one behind it in the list of its part */
    uint32_t *first, *last;   /* by part: its list */
    uint32_t *seen;           /* by position: the last round that it moves in */
    uint32_t *moving;         /* positions: what moves together */
    size_t n_moving;
    uint32_t round;
    cfxi_vec queue;           /* of cfx_node * */
} move_job;

static void append(move_job *job, uint32_t part, uint32_t i)
{
    job->home[i] = part;
    job->next[i] = CFX_NO_PART;
    if (job->first[part] == CFX_NO_PART)
        job->first[part] = i;
    else
        job->next[job->last[part]] = i;
    job->last[part] = i;
}

static bool is_tensor(const move_job *job, uint32_t i)
{
    return (job->flags[i] & CFX_FUSION_TENSOR) != 0;
}

static bool is_used_elsewhere(const move_job *job, uint32_t i)
{
    const cfx_use *use = cfx_node_first_use(job->acc.nodes[i]);
    for (; use; use = cfx_use_next(use)) {
        const uint32_t part = job->home[cfxi_split_acc_at(&job->acc, use->user)];
        if (part != CFX_NO_PART && part != job->home[i])
            return true;
    }
    return false;
}

static void add_moving(move_job *job, uint32_t i)
{
    job->seen[i] = job->round;
    job->moving[job->n_moving++] = i;
}

/* The one other part that `i` and the calls of its own part that use it, which must move along, can
 * move to; CFX_NO_PART if there is none or several. */
static uint32_t find_target(move_job *job, uint32_t i, uint32_t *stack)
{
    const uint32_t home = job->home[i];
    uint32_t target = CFX_NO_PART;
    size_t depth = 0;
    job->round++;
    job->n_moving = 0;
    add_moving(job, i);
    stack[depth++] = i;
    while (depth > 0) {
        const cfx_use *use = cfx_node_first_use(job->acc.nodes[stack[--depth]]);
        for (; use; use = cfx_use_next(use)) {
            const uint32_t user = cfxi_split_acc_at(&job->acc, use->user);
            const uint32_t part = job->home[user];
            if (part == home && job->seen[user] != job->round) {
                add_moving(job, user);
                stack[depth++] = user;
            } else if (part != home) {
                if (part == CFX_NO_PART || (target != CFX_NO_PART && target != part))
                    return CFX_NO_PART;
                target = part;
            }
        }
    }
    return target;
}

static cfx_status enqueue(move_job *job, uint32_t i)
{
    return cfxi_analysis_nodes_push(&job->queue, job->acc.nodes[i], job->acc.g->allocator,
                                    job->acc.err);
}

/* Moves a node out of `part` if it can be, and puts what it reads there into the queue. */
static cfx_status move_node(move_job *job, const cfx_node *n, uint32_t part, uint32_t *stack)
{
    const uint32_t i = cfxi_split_acc_at(&job->acc, n);
    const uint32_t target = job->home[i] == part ? find_target(job, i, stack) : CFX_NO_PART;
    if (target == CFX_NO_PART)
        return CFX_OK;
    for (size_t k = 0; k < job->n_moving; k++)
        append(job, target, job->moving[k]);
    for (uint32_t k = 0; k < n->n_inputs; k++) {
        const uint32_t def = cfxi_split_acc_at(&job->acc, n->inputs[k].def);
        if (job->home[def] == part && !is_tensor(job, def))
            CFX_TRY(enqueue(job, def));
    }
    return CFX_OK;
}

/* `list` gets the nodes of the part first: moving re-links them. */
static cfx_status move_from(move_job *job, uint32_t part, uint32_t *list, uint32_t *stack)
{
    size_t n = 0;
    job->queue.size = 0;
    for (uint32_t i = job->first[part]; i != CFX_NO_PART; i = job->next[i]) {
        list[n++] = i;
        if (!is_tensor(job, i) && is_used_elsewhere(job, i))
            CFX_TRY(enqueue(job, i));
    }
    for (size_t k = 0; k < job->queue.size; k++)
        CFX_TRY(move_node(job, ((cfx_node **)job->queue.data)[k], part, stack));
    job->first[part] = CFX_NO_PART;
    for (size_t k = 0; k < n; k++)
        if (job->home[list[k]] == part)
            append(job, part, list[k]);
    return CFX_OK;
}

static cfx_status fill_parts(move_job *job, cfx_node *const *nodes, const cfx_acc_part *parts,
                             size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < job->acc.n; i++)
        job->home[i] = CFX_NO_PART;
    for (size_t part = 0; part < n; part++) {
        job->first[part] = CFX_NO_PART;
        for (; at < parts[part].end; at++) {
            const uint32_t i = cfxi_split_acc_at(&job->acc, nodes[at]);
            if (i == CFX_NO_PART || job->home[i] != CFX_NO_PART)
                return cfx_error_set(job->acc.err, CFX_E_GRAPH, "node %%%s is in two parts, or "
                                     "not in the graph", nodes[at]->name->data);
            append(job, (uint32_t)part, i);
        }
    }
    return CFX_OK;
}

static void write_parts(const move_job *job, cfx_node **nodes, cfx_acc_part *parts, size_t n)
{
    size_t at = 0;
    for (size_t part = 0; part < n; part++) {
        for (uint32_t i = job->first[part]; i != CFX_NO_PART; i = job->next[i])
            nodes[at++] = job->acc.nodes[i];
        parts[part].end = at;
    }
}

static cfx_status move_all(move_job *job, cfx_node **nodes, cfx_acc_part *parts, size_t n)
{
    cfxi_arena *arena = &job->acc.arena;
    const size_t size = job->acc.n;
    job->home = cfxi_base_arena_zeros(arena, size, sizeof *job->home);
    job->next = cfxi_base_arena_zeros(arena, size, sizeof *job->next);
    job->seen = cfxi_base_arena_zeros(arena, size, sizeof *job->seen);
    job->moving = cfxi_base_arena_zeros(arena, size, sizeof *job->moving);
    job->first = cfxi_base_arena_zeros(arena, n, sizeof *job->first);
    job->last = cfxi_base_arena_zeros(arena, n, sizeof *job->last);
    uint32_t *list = cfxi_base_arena_zeros(arena, size, sizeof *list);
    uint32_t *stack = cfxi_base_arena_zeros(arena, size, sizeof *stack);
    if (!job->home || !job->next || !job->seen || !job->moving || !job->first || !job->last ||
        !list || !stack)
        return cfxi_base_nomem(job->acc.err);
    CFX_TRY(fill_parts(job, nodes, parts, n));
    for (size_t part = 0; part < n; part++)
        if (parts[part].acc)
            CFX_TRY(move_from(job, (uint32_t)part, list, stack));
    write_parts(job, nodes, parts, n);
    return CFX_OK;
}

cfx_status cfx_graph_move_non_tensors(cfx_graph *g, const unsigned char *flags, cfx_node **nodes,
                                      cfx_acc_part *parts, size_t n, cfx_error *err)
{
    move_job job = {.flags = flags};
    cfx_status status = cfxi_split_acc_init(&job.acc, g, err);
    if (status == CFX_OK)
        status = move_all(&job, nodes, parts, n);
    cfxi_base_vec_free(&job.queue, sizeof(cfx_node *), g->allocator);
    cfxi_split_acc_done(&job.acc);
    return status;
}

/* ---- extending a part ---------------------------------------------------------------------- */

typedef struct extend_job {
    cfxi_acc acc;         /* its lists: the calls that wait for a call to be in the part */
    const unsigned char *flags;
    bool *inside;
    bool *is_read;        /* by position: a call of the part reads it */
    uint32_t *waiting;    /* by position: how many of its users are not in the part */
    uint32_t *first, *next;  /* by group and by position: who else is in a group */
    const uint32_t *groups;  /* or NULL */
    cfxi_vec ready;       /* of cfx_node * */
} extend_job;

static cfx_status look_at(extend_job *job, uint32_t i)
{
    if (!(job->flags[i] & CFX_FUSION_ACC) || !job->is_read[i] || job->waiting[i] > 0)
        return CFX_OK;
    return cfxi_analysis_nodes_push(&job->ready, job->acc.nodes[i], job->acc.g->allocator,
                                    job->acc.err);
}

/* Takes a call into the part, unless it is there. */
static cfx_status take(extend_job *job, uint32_t i)
{
    const cfx_node *n = job->acc.nodes[i];
    if (job->inside[i])
        return CFX_OK;
    job->inside[i] = true;
    CFXI_ACC_EACH(&job->acc, cell, i) {
        job->waiting[cell->node]--;
        CFX_TRY(look_at(job, cell->node));
    }
    for (uint32_t k = 0; k < n->n_inputs; k++) {
        const uint32_t def = cfxi_split_acc_at(&job->acc, n->inputs[k].def);
        if (!cfxi_ir_is_call(n->inputs[k].def) || job->inside[def])
            continue;
        job->is_read[def] = true;
        CFX_TRY(look_at(job, def));
    }
    return CFX_OK;
}

static cfx_status take_with_group(extend_job *job, uint32_t i)
{
    if (!job->groups || job->groups[i] == CFX_NO_PART)
        return take(job, i);
    for (uint32_t m = job->first[job->groups[i]]; m != CFX_NO_PART; m = job->next[m])
        CFX_TRY(take(job, m));
    return CFX_OK;
}

/* A group has at least one member, so that their numbers must be below the size of the graph. */
static cfx_status link_groups(extend_job *job)
{
    for (size_t i = 0; i < job->acc.n; i++)
        job->first[i] = CFX_NO_PART;
    for (uint32_t i = (uint32_t)job->acc.n; job->groups && i-- > 0;) {
        if (job->groups[i] == CFX_NO_PART)
            continue;
        if (job->groups[i] >= job->acc.n)
            return cfx_error_set(job->acc.err, CFX_E_INDEX, "the group of node %%%s has a number "
                                 "past the size of the graph", job->acc.nodes[i]->name->data);
        job->next[i] = job->first[job->groups[i]];
        job->first[job->groups[i]] = i;
    }
    return CFX_OK;
}

/* Whom each call waits for: its users that are not in the part. */
static cfx_status begin_waiting(extend_job *job, const cfx_need *users, size_t n)
{
    cfxi_acc *acc = &job->acc;
    CFX_TRY(cfxi_split_acc_load(acc, users, n, users != NULL));
    for (uint32_t i = 0; i < acc->n; i++)
        CFXI_ACC_EACH(acc, cell, i)
            job->waiting[cell->node] += !job->inside[i];
    return CFX_OK;
}

static cfx_status extend(extend_job *job, const cfx_need *users, size_t n, cfx_node *const *from,
                         size_t n_from)
{
    cfxi_arena *arena = &job->acc.arena;
    const size_t size = job->acc.n;
    job->is_read = cfxi_base_arena_zeros(arena, size, sizeof *job->is_read);
    job->waiting = cfxi_base_arena_zeros(arena, size, sizeof *job->waiting);
    job->first = cfxi_base_arena_zeros(arena, size, sizeof *job->first);
    job->next = cfxi_base_arena_zeros(arena, size, sizeof *job->next);
    if (!job->is_read || !job->waiting || !job->first || !job->next)
        return cfxi_base_nomem(job->acc.err);
    CFX_TRY(link_groups(job));
    CFX_TRY(begin_waiting(job, users, n));
    for (size_t k = 0; k < n_from; k++) {
        const uint32_t i = cfxi_split_acc_at(&job->acc, from[k]);
        if (i != CFX_NO_PART)
            job->is_read[i] = true;
    }
    for (uint32_t i = 0; i < size; i++)
        CFX_TRY(look_at(job, i));
    for (size_t k = 0; k < job->ready.size; k++)
        CFX_TRY(take_with_group(
            job, cfxi_split_acc_at(&job->acc, ((cfx_node **)job->ready.data)[k])));
    return CFX_OK;
}

cfx_status cfx_graph_extend_acc(cfx_graph *g, const unsigned char *flags, const uint32_t *groups,
                                const cfx_need *users, size_t n_users, cfx_node *const *from,
                                size_t n_from, bool *inside, cfx_error *err)
{
    extend_job job = {.flags = flags, .inside = inside, .groups = groups};
    cfx_status status = cfxi_split_acc_init(&job.acc, g, err);
    if (status == CFX_OK)
        status = extend(&job, users, n_users, from, n_from);
    cfxi_base_vec_free(&job.ready, sizeof(cfx_node *), g->allocator);
    cfxi_split_acc_done(&job.acc);
    return status;
}
