/* placement.c - parts of a graph on devices: longest ways, and where there is room.
 *
 *     %a = call_function[target=f](%x)        part 0    needs 8
 *     %b = call_function[target=f](%a)        part 1    needs 9: 6, and 3 for what it reads from %a
 *     devices of 10 and 20                    part 0 on the first; part 1 on the second
 *     devices of 15                           both on one: 8 + 6 are less
 *
 * Needs: calls that stand behind what they read.
 * Keeps: the graph as it is.
 */
#include "placement_impl.h"

/* ---- scratch ------------------------------------------------------------------------------- */

bool cfxi_split_link_room_init(cfxi_link_room *room, cfxi_arena *arena, size_t n, size_t n_links,
                               size_t n_devices)
{
    room->head = cfxi_split_new_array(arena, n, sizeof *room->head);
    room->next = cfxi_split_new_array(arena, n_links, sizeof *room->next);
    room->waiting = cfxi_split_new_array(arena, n, sizeof *room->waiting);
    room->queue = cfxi_split_new_array(arena, n, sizeof *room->queue);
    room->on = cfxi_split_new_array(arena, n, sizeof *room->on);
    room->on_next = cfxi_split_new_array(arena, n + n_links, sizeof *room->on_next);
    room->on_device = cfxi_split_new_array(arena, n + n_links, sizeof *room->on_device);
    room->order = cfxi_split_new_array(arena, n_devices, sizeof *room->order);
    room->left = cfxi_split_new_array(arena, n_devices, sizeof *room->left);
    room->saved = cfxi_split_new_array(arena, n_devices, sizeof *room->saved);
    return room->head && room->next && room->waiting && room->queue && room->on && room->on_next &&
           room->on_device && room->order && room->left && room->saved;
}

static bool is_in_range(const cfx_link *links, size_t n_links, size_t n_from, size_t n_to)
{
    for (size_t i = 0; i < n_links; i++)
        if (links[i].from >= n_from || links[i].to >= n_to)
            return false;
    return true;
}

/* ---- the longest way ----------------------------------------------------------------------- */

bool cfxi_split_longest_ways(size_t n, const double *weights, const cfx_link *links, size_t n_links,
                             double *far, uint32_t *before, cfxi_link_room *room)
{
    size_t known = 0, done = 0;
    for (size_t i = 0; i < n; i++) {
        room->head[i] = CFX_NO_PART;
        room->waiting[i] = 0;
        far[i] = weights[i];
        if (before)
            before[i] = CFX_NO_PART;
    }
    for (size_t k = n_links; k-- > 0;) {
        room->next[k] = room->head[links[k].from];
        room->head[links[k].from] = (uint32_t)k;
        room->waiting[links[k].to]++;
    }
    for (size_t i = 0; i < n; i++)
        if (room->waiting[i] == 0)
            room->queue[known++] = (uint32_t)i;
    while (done < known) {
        uint32_t i = room->queue[done++];
        for (uint32_t k = room->head[i]; k != CFX_NO_PART; k = room->next[k]) {
            uint32_t to = links[k].to;
            double way = far[i] + links[k].weight + weights[to];
            if (way > far[to]) {
                far[to] = way;
                if (before)
                    before[to] = i;
            }
            if (--room->waiting[to] == 0)
                room->queue[known++] = to;
        }
    }
    return known == n;
}

cfx_status cfx_longest_paths(size_t n, const double *weights, const cfx_link *links, size_t n_links,
                             double *far, uint32_t *before, const cfx_allocator *allocator,
                             cfx_error *err)
{
    cfxi_arena arena;
    cfxi_link_room room;
    cfx_status status = CFX_OK;
    if (!is_in_range(links, n_links, n, n))
        return cfx_error_set(err, CFX_E_INDEX, "a link has an index that is not below %zu", n);
    cfxi_base_arena_init(&arena, allocator);
    if (!cfxi_split_link_room_init(&room, &arena, n, n_links, 0))
        status = cfxi_base_nomem(err);
    else if (!cfxi_split_longest_ways(n, weights, links, n_links, far, before, &room))
        status = cfx_error_set(err, CFX_E_GRAPH, "partitions depend on each other in a cycle, so "
                               "they cannot be ordered");
    cfxi_base_arena_release(&arena);
    return status;
}

/* ---- where there is room ------------------------------------------------------------------- */

static void put(cfxi_link_room *room, size_t entry, uint32_t part, uint32_t device)
{
    room->on_device[entry] = device;
    room->on_next[entry] = room->on[part];
    room->on[part] = (uint32_t)entry;
}

/* A device that has less left than before goes to its place in the order. */
static void sink(cfxi_link_room *room, size_t at)
{
    uint32_t device = room->order[at];
    for (; at > 0 && room->left[room->order[at - 1]] > room->left[device]; at--)
        room->order[at] = room->order[at - 1];
    room->order[at] = device;
}

static void begin_fit(const cfx_fit_options *what, uint32_t *devices, cfxi_link_room *room)
{
    for (size_t i = 0; i < what->n_parts; i++) {
        room->head[i] = room->on[i] = CFX_NO_PART;
        devices[i] = CFX_NO_PART;
    }
    for (size_t d = 0; d < what->n_devices; d++) {
        room->left[d] = what->memory[d];
        room->saved[d] = 0;
    }
    for (size_t k = what->n_shared; k-- > 0;) {
        room->next[k] = room->head[what->shared[k].to];
        room->head[what->shared[k].to] = (uint32_t)k;
    }
    for (size_t k = 0; k < what->n_placed; k++) {
        put(room, k, what->placed[k].from, what->placed[k].to);
        room->left[what->placed[k].to] -= what->sizes[what->placed[k].from];
    }
    for (size_t d = 0; d < what->n_devices; d++) {
        room->order[d] = (uint32_t)d;
        sink(room, d);
    }
}

/* What a part needs less on each device: added to `saved`, or taken away again. */
static void add_saved(const cfx_fit_options *what, size_t part, double sign, cfxi_link_room *room)
{
    for (uint32_t k = room->head[part]; k != CFX_NO_PART; k = room->next[k])
        for (uint32_t e = room->on[what->shared[k].from]; e != CFX_NO_PART; e = room->on_next[e])
            room->saved[room->on_device[e]] += sign * what->shared[k].weight;
}

bool cfxi_split_fit_parts(const cfx_fit_options *what, uint32_t *devices, cfxi_link_room *room)
{
    size_t entry = what->n_placed;
    begin_fit(what, devices, room);
    for (size_t i = 0; i < what->n_parts; i++) {
        if (room->on[i] != CFX_NO_PART)
            continue;
        size_t at = 0;
        double need = 0;
        add_saved(what, i, 1, room);
        for (; at < what->n_devices; at++) {
            need = what->sizes[i] - room->saved[room->order[at]];
            if (need < room->left[room->order[at]])
                break;
        }
        add_saved(what, i, -1, room);
        if (at == what->n_devices)
            return false;
        devices[i] = room->order[at];
        room->left[devices[i]] -= need;
        put(room, entry++, (uint32_t)i, devices[i]);
        sink(room, at);
    }
    return true;
}

cfx_status cfx_devices_fit(const cfx_fit_options *what, uint32_t *devices, bool *fits,
                           const cfx_allocator *allocator, cfx_error *err)
{
    cfxi_arena arena;
    cfxi_link_room room;
    cfx_status status = CFX_OK;
    if (!is_in_range(what->shared, what->n_shared, what->n_parts, what->n_parts) ||
        !is_in_range(what->placed, what->n_placed, what->n_parts, what->n_devices))
        return cfx_error_set(err, CFX_E_INDEX, "a link has an index out of range for %zu "
                             "partitions and %zu devices", what->n_parts, what->n_devices);
    cfxi_base_arena_init(&arena, allocator);
    size_t n_links = what->n_shared > what->n_placed ? what->n_shared : what->n_placed;
    if (!cfxi_split_link_room_init(&room, &arena, what->n_parts, n_links, what->n_devices))
        status = cfxi_base_nomem(err);
    else
        *fits = cfxi_split_fit_parts(what, devices, &room);
    cfxi_base_arena_release(&arena);
    return status;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static cfx_status place(cfxi_placer *p, cfxi_placing *out, cfx_error *err)
{
    switch (p->what->mode) {
    case CFX_PLACE_BY_SIZE:
        return cfxi_split_place_by_size(p, out, err);
    case CFX_PLACE_EMBEDDINGS:
        return cfxi_split_place_embeddings(p, out, err);
    case CFX_PLACE_BY_COST:
        return cfxi_split_place_by_cost(p, out, err);
    case CFX_PLACE_BY_EXCHANGE:
        return cfxi_split_place_by_exchange(p, out, err);
    }
    return cfx_error_set(err, CFX_E_VALUE, "%d is not a placement mode", p->what->mode);
}

cfx_status cfx_graph_place(cfx_graph *g, const cfx_place_options *what, uint32_t *parts,
                           uint32_t *devices, size_t *n, cfx_error *err)
{
    cfxi_placer p;
    cfxi_placing out = {parts, devices, *n};
    const bool timed = what->mode == CFX_PLACE_BY_COST || what->mode == CFX_PLACE_BY_EXCHANGE;
    if ((timed && !what->latencies) || (what->mode == CFX_PLACE_EMBEDDINGS && !what->embedding))
        return cfx_error_set(err, CFX_E_VALUE, "this placement mode needs %s",
                             timed ? "latencies" : "the calls that look up embeddings");
    if (timed && !(what->rate > 0))
        return cfx_error_set(err, CFX_E_VALUE, "the transfer rate is %g bytes per second; it must "
                             "be greater than 0", what->rate);
    cfx_status status = cfxi_split_placer_init(&p, g, what, err);
    if (status == CFX_OK)
        status = place(&p, &out, err);
    *n = out.n;
    cfxi_split_placer_done(&p);
    return status;
}
