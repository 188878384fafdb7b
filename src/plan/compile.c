/* compile.c - plans of a program, kept by where they begin and what they are for.
 *
 * Runs look for a plan without a lock. What they find stays, because they take a reference to it
 * while they look, and whoever throws a plan away waits until nobody looks (`looking`): no longer
 * than it takes to compare some sizes. A plan has sessions; a run takes an idle one, or makes one,
 * and leaves it idle. Making a plan is done under a lock: runs that have theirs do not wait for it.
 *
 * The child of a fork() goes on with the plans that are there. What another thread was making at
 * that moment is forgotten, and who was looking is not counted.
 */
#include "plan_append.h"

#include "base/forks.h"

#include <cfx/compile.h>
#include <sched.h>

enum {
    MOST_PLANS = 8,
    IDLE = 8,    /* sessions of a plan that wait for the next run */
    MISSES = 16, /* inputs without a plan that are remembered */
    WORTH = 16,  /* runs that a plan pays for */
    TRIED = 3    /* plans that were made for one run each, until the next is cut */
};

/* A plan and its sessions that are idle. The table has a reference to it, and each run. */
typedef struct entry {
    atomic_int refs;
    _Atomic uint64_t used;    /* when, by the clock of its program */
    cfxi_plan *plan;
    _Atomic(cfxi_plan_session *) idle[IDLE];
} entry;

/* Plans that begin with the same instruction. */
typedef struct place {
    uint64_t missed[MISSES];  /* hashes of values that there was no plan for; under the lock */
    size_t num_missed;
    size_t made;              /* plans, so far */
    bool compared;            /* two of them, for what differs */
    uint32_t end;             /* the last that one of them has */
    _Atomic size_t found;     /* how often one was found */
    _Atomic(entry *) entries[];
} place;

typedef struct compiled {
    cfxi_stretches head;
    const cfx_program *program;
    size_t most_plans;
    cfxi_plan_how how;  /* `onednn` has a reference */
    cfxi_packs packs;   /* under the lock */
    cfxi_pointers weights;  /* memories of the program's constants */
    cfxi_cut *cuts;     /* one for each instruction; written under the lock */
    cfxi_appender *appender;  /* of the program and its regions, retained; or NULL */
    bool owns_tuner;    /* that of the program; regions borrow it */
    cfxi_lock lock;
    _Atomic uint64_t looking;  /* how many do; and above 32 bits, in which process: forks */
    _Atomic uint64_t clock;
    _Atomic(place *) places[];  /* one for each instruction, made when it is first needed */
} compiled;

static size_t place_bytes(const compiled *c)
{
    return sizeof(place) + c->most_plans * sizeof(entry *);
}

static size_t cuts_bytes(const cfx_program *p)
{
    return (p->instructions.size + 1) * sizeof(cfxi_cut);
}

static size_t compiled_bytes(const cfx_program *p)
{
    return sizeof(compiled) + (p->instructions.size + 1) * sizeof(place *);
}

/* ---- entries ------------------------------------------------------------------------------- */

static void end_idle(entry *e)
{
    for (size_t i = 0; i < IDLE; i++) {
        cfxi_plan_session *s = atomic_exchange(&e->idle[i], NULL);
        if (s)
            cfxi_plan_session_free(s);
    }
}

static void release_entry(entry *e)
{
    if (atomic_fetch_sub(&e->refs, 1) != 1)
        return;
    const cfx_allocator *allocator = e->plan->allocator;
    end_idle(e);
    cfxi_plan_free(e->plan);
    cfxi_base_free(allocator, e, sizeof *e);
}

/* Takes the table's reference. */
static void drop_entry(entry *e)
{
    end_idle(e);  /* runs that have it may take long */
    release_entry(e);
}

/* An idle session, or a new one. */
static cfxi_plan_session *take_session(entry *e, cfx_error *err)
{
    for (size_t i = 0; i < IDLE; i++) {
        cfxi_plan_session *s = atomic_load_explicit(&e->idle[i], memory_order_relaxed)
                                   ? atomic_exchange(&e->idle[i], NULL) : NULL;
        if (s)
            return s;
    }
    return cfxi_plan_session_new(e->plan, err);
}

static void leave_session(entry *e, cfxi_plan_session *s)
{
    bool left = false;
    for (size_t i = 0; !left && i < IDLE; i++) {
        cfxi_plan_session *none = NULL;
        left = atomic_compare_exchange_strong(&e->idle[i], &none, s);
    }
    if (!left)
        cfxi_plan_session_free(s);
}

/* ---- looking ------------------------------------------------------------------------------- */

/* Who looked in the process that this one was forked from does not count. Whoever looks cannot fork
 * meanwhile: so one less is one of this process. */
static void begin_looking(compiled *c)
{
    const uint64_t here = (uint64_t)cfxi_base_forks() << 32;
    uint64_t was = atomic_load_explicit(&c->looking, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&c->looking, &was,
                                         was >> 32 == here >> 32 ? was + 1 : here + 1))
        continue;
}

static void end_looking(compiled *c) { atomic_fetch_sub(&c->looking, 1); }

static bool is_looked_at(const compiled *c)
{
    const uint64_t looking = atomic_load(&c->looking);
    return looking >> 32 == cfxi_base_forks() && (uint32_t)looking > 0;
}

/* A plan for these values: a reference to it. */
static entry *find(compiled *c, uint32_t first, const cfx_runtime *rt, const cfx_datum *slots)
{
    entry *found = NULL;
    begin_looking(c);
    place *p = atomic_load(&c->places[first]);
    for (size_t i = 0; p && !found && i < c->most_plans; i++) {
        entry *e = atomic_load(&p->entries[i]);
        if (e && cfxi_plan_takes(e->plan, rt, slots))
            found = e;
    }
    if (found) {
        atomic_store_explicit(&found->used, atomic_fetch_add(&c->clock, 1), memory_order_relaxed);
        atomic_fetch_add_explicit(&p->found, 1, memory_order_relaxed);
        atomic_fetch_add(&found->refs, 1);
    }
    end_looking(c);
    return found;
}

/* ---- making -------------------------------------------------------------------------------- */

static uint64_t hash_datum(uint64_t h, cfx_datum d)
{
    size_t n;
    const cfx_datum *items = d.kind == CFX_DATUM_TUPLE ? cfx_datum_items(d, &n) : NULL;
    h = cfxi_base_hash_mix(h, (uint64_t)d.kind);
    for (size_t i = 0; items && i < n; i++)
        h = hash_datum(h, items[i]);
    if (d.kind == CFX_DATUM_TENSOR) {
        h = cfxi_base_hash_mix(h, d.as.tensor->dtype);
        for (size_t i = 0; i < d.as.tensor->ndim; i++)
            h = cfxi_base_hash_mix(cfxi_base_hash_mix(h, (uint64_t)d.as.tensor->size[i]),
                                   (uint64_t)d.as.tensor->stride[i]);
    } else if (d.kind == CFX_DATUM_INT || d.kind == CFX_DATUM_FLOAT) {
        h = cfxi_base_hash_mix(h, (uint64_t)d.as.i);
    }
    return h;
}

/* While there is room, every kind of values gets a plan. Later only those that come again do, and
 * only if plans were used often so far: a size that grows with every run, or the counter of a loop,
 * would leave plans that nobody uses. */
static bool is_worth_it(const compiled *c, place *p, const cfx_datum *slots)
{
    uint64_t h = 1;
    size_t free_places = 0;
    for (size_t i = 0; i < c->most_plans; i++)
        free_places += atomic_load(&p->entries[i]) == NULL;
    if (free_places > 0)
        return true;
    if (atomic_load(&p->found) < WORTH * p->made)
        return false;
    for (size_t i = 0; i < c->program->num_slots; i++)
        h = hash_datum(h, slots[i]);
    for (size_t i = 0; i < MISSES && i < p->num_missed; i++)
        if (p->missed[i] == h)
            return true;
    p->missed[p->num_missed++ % MISSES] = h;
    return false;
}

/* If plans are made, but nobody comes again, for sizes that grow with each run: what has these
 * sizes is cut out of later plans. Two plans are compared, those that were used last. */
static void cut_what_differs(const compiled *c, place *p)
{
    const entry *last = NULL;
    const entry *before = NULL;
    if (p->compared || p->made < TRIED || atomic_load(&p->found) > p->made)
        return;
    for (size_t i = 0; i < c->most_plans; i++) {
        const entry *e = atomic_load(&p->entries[i]);
        if (e && (!last || atomic_load(&e->used) > atomic_load(&last->used))) {
            before = last;
            last = e;
        } else if (e && (!before || atomic_load(&e->used) > atomic_load(&before->used))) {
            before = e;
        }
    }
    p->compared = true;
    if (before)
        cfxi_plan_find_cuts(before->plan, last->plan, c->cuts);
}

/* Puts an entry into the table, in the place of that which was not used for longest. */
static void keep(compiled *c, place *p, entry *e)
{
    size_t at = 0;
    for (size_t i = 0; i < c->most_plans; i++) {
        const entry *oldest = atomic_load(&p->entries[at]);
        const entry *other = atomic_load(&p->entries[i]);
        if (oldest && (!other || atomic_load(&other->used) < atomic_load(&oldest->used)))
            at = i;
    }
    atomic_store(&e->used, atomic_fetch_add(&c->clock, 1));
    entry *old = atomic_exchange(&p->entries[at], e);
    if (!old)
        return;
    while (is_looked_at(c))
        sched_yield();
    drop_entry(old);
}

static place *place_at(compiled *c, uint32_t first)
{
    place *p = atomic_load(&c->places[first]);
    if (p)
        return p;
    p = cfxi_base_alloc(c->program->allocator, place_bytes(c));
    if (!p)
        return NULL;
    memset(p, 0, place_bytes(c));
    atomic_store(&c->places[first], p);
    return p;
}

/* Makes a plan under the lock, unless another thread has just made it, and gives a reference to it.
 * *found NULL: there is none, and before *again none is to be looked for. */
static cfx_status make(compiled *c, uint32_t first, cfx_runtime *rt, const cfx_datum *slots,
                       entry **found, uint32_t *again, cfx_error *err)
{
    *found = find(c, first, rt, slots);
    if (*found)
        return CFX_OK;
    place *p = place_at(c, first);
    if (!p)
        return cfxi_base_nomem(err);
    cut_what_differs(c, p);
    if (!is_worth_it(c, p, slots)) {
        *again = p->end > first ? p->end : first + 1;
        return CFX_OK;
    }
    const cfx_allocator *allocator = c->program->allocator;
    entry *e = cfxi_base_alloc(allocator, sizeof *e);
    cfxi_plan *plan = e ? cfxi_plan_new(c->program, rt, first, slots, &c->how, err) : NULL;
    if (!plan) {
        cfxi_base_free(allocator, e, sizeof *e);
        return e ? err->status : cfxi_base_nomem(err);
    }
    memset(e, 0, sizeof *e);
    e->plan = plan;
    atomic_init(&e->refs, 2);
    keep(c, p, e);
    p->made++;
    p->end = plan->end > p->end ? plan->end : p->end;
    *found = e;
    return CFX_OK;
}

/* Everything that is written under the lock but packs is right at any moment. Packs that another
 * thread was changing during a fork are not freed: plans have references to them. */
static void lock(compiled *c)
{
    if (cfxi_base_lock_take(&c->lock))
        c->packs = (cfxi_packs){0};
}

static void unlock(compiled *c) { cfxi_base_lock_leave(&c->lock); }

/* ---- running ------------------------------------------------------------------------------- */

/* Takes the reference over. *end stays as it is if there is no memory for a session. */
static cfx_status run_plan(entry *e, cfx_runtime *rt, uint32_t first, cfx_datum *slots,
                           uint32_t *end, uint32_t *again, cfx_error *err)
{
    cfx_status status = CFX_OK;
    cfxi_plan_session *session = take_session(e, err);
    if (!session) {
        release_entry(e);
        *err = (cfx_error){0};  /* it can do without */
        return CFX_OK;
    }
    if (e->plan->end > first)
        status = cfxi_plan_run(session, rt, slots, err);
    *end = status == CFX_OK ? e->plan->end : first;
    *again = *end + (*end == first);
    leave_session(e, session);
    release_entry(e);
    return status;
}

static cfx_status run(cfxi_stretches *self, cfx_runtime *rt, uint32_t first, cfx_datum *slots,
                      uint32_t *end, uint32_t *again, cfx_error *err)
{
    compiled *c = (compiled *)self;
    cfx_status status = CFX_OK;
    *end = first;
    *again = first + 1;
    if (atomic_load_explicit(&c->cuts[first], memory_order_relaxed))
        return CFX_OK;
    entry *e = find(c, first, rt, slots);
    if (!e) {
        lock(c);
        status = make(c, first, rt, slots, &e, again, err);
        unlock(c);
    }
    if (e)
        return run_plan(e, rt, first, slots, end, again, err);
    if (status == CFX_OK || status == CFX_E_INTERRUPTED)
        return status;
    *err = (cfx_error){0};  /* no memory for a plan: it can do without */
    return CFX_OK;
}

/* What has other sizes in each run may be a cache that grows. */
static cfx_datum call(cfxi_stretches *self, cfx_runtime *rt, uint32_t at, const cfx_datum *args,
                      size_t n, cfx_error *err)
{
    const compiled *c = (const compiled *)self;
    const cfxi_instruction *i = (const cfxi_instruction *)c->program->instructions.data + at;
    if (!c->appender || i->custom || i->op != CFX_OPID_cat ||
        !atomic_load_explicit(&c->cuts[at], memory_order_relaxed))
        return cfx_datum_invalid();
    return cfxi_plan_append(c->appender, rt, args, n, err);
}

static void free_compiled(cfxi_stretches *self)
{
    compiled *c = (compiled *)self;
    for (size_t i = 0; i <= c->program->instructions.size; i++) {
        place *p = atomic_load(&c->places[i]);
        for (size_t k = 0; p && k < c->most_plans; k++)
            if (atomic_load(&p->entries[k]))
                drop_entry(atomic_load(&p->entries[k]));
        if (p)
            cfxi_base_free(c->program->allocator, p, place_bytes(c));
    }
    cfxi_base_free(c->program->allocator, c->cuts, cuts_bytes(c->program));
    cfxi_plan_appender_release(c->appender);
    cfxi_backend_packs_free(&c->packs, c->program->allocator);
    cfxi_base_pointers_free(&c->weights, c->program->allocator);
    if (c->owns_tuner)
        cfxi_backend_tuner_free(c->how.tuner);
    cfxi_backend_onednn_release(c->how.onednn);
    cfxi_base_lock_free(&c->lock);
    cfxi_base_free(c->program->allocator, c, compiled_bytes(c->program));
}

/* ---- the door ------------------------------------------------------------------------------ */

static cfx_status compile_one(cfx_program *p, size_t most_plans, cfxi_plan_how how, cfx_error *err)
{
    compiled *c = cfxi_base_alloc(p->allocator, compiled_bytes(p));
    if (!c)
        return cfxi_base_nomem(err);
    memset(c, 0, compiled_bytes(p));
    c->cuts = cfxi_base_alloc(p->allocator, cuts_bytes(p));
    if (!c->cuts || !cfxi_base_lock_new(&c->lock)) {
        cfxi_base_free(p->allocator, c->cuts, cuts_bytes(p));
        cfxi_base_free(p->allocator, c, compiled_bytes(p));
        return cfxi_base_nomem(err);
    }
    memset(c->cuts, 0, cuts_bytes(p));
    c->head = (cfxi_stretches){run, call, free_compiled};
    c->program = p;
    c->most_plans = most_plans;
    c->how = how;
    c->how.packs = &c->packs;
    c->how.weights = &c->weights;
    c->how.cuts = c->cuts;
    if (how.onednn)
        cfxi_backend_onednn_retain(how.onednn);
    if (how.appender)
        c->appender = cfxi_plan_appender_retain(how.appender);
    p->stretches = &c->head;
    for (size_t i = 0; i < p->constants.size; i++) {
        const cfx_datum d = ((cfx_datum *)p->constants.data)[i];
        if (d.kind == CFX_DATUM_TENSOR && d.as.tensor->storage &&
            !cfxi_base_pointers_set(&c->weights, d.as.tensor->storage, c, p->allocator))
            return cfxi_base_nomem(err);
    }
    return CFX_OK;
}

static cfx_status compile_all(cfx_program *p, size_t most_plans, cfxi_plan_how how, cfx_error *err)
{
    for (size_t i = 0; i < p->regions.size; i++)
        CFX_TRY(compile_all(((cfx_program **)p->regions.data)[i], most_plans, how, err));
    return p->stretches ? CFX_OK : compile_one(p, most_plans, how, err);
}

/* Whether a program writes to tensors: then a cat that appends would let it write to what the
 * caller has. */
static bool writes(const cfx_program *p)
{
    for (size_t i = 0; i < p->instructions.size; i++) {
        const cfxi_instruction *at = (const cfxi_instruction *)p->instructions.data + i;
        const char *schema = at->op ? cfx_operator_schema(at->op) : NULL;
        if (at->custom || (schema && strchr(schema, '!')))
            return true;
    }
    for (size_t i = 0; i < p->regions.size; i++)
        if (writes(((cfx_program **)p->regions.data)[i]))
            return true;
    return false;
}

/* The back ends that the options ask for. */
static cfx_status open_back_ends(const cfx_program *p, const cfx_compile_options *o,
                                 cfxi_plan_how *how, cfx_error *err)
{
    if (o->precision >= CFX_PRECISION_COUNT)
        return cfx_error_set(err, CFX_E_VALUE, "there is no precision number %d",
                             (int)o->precision);
    if (o->onednn && !(how->onednn = cfxi_backend_onednn_open(o->onednn, p->allocator, err)))
        return err->status;
    if (o->append && !writes(p) && !(how->appender = cfxi_plan_appender_new(p->allocator, err)))
        return CFX_E_NOMEM;
    if (o->tune && !(how->tuner = cfxi_backend_tuner_new(o->cache, p->allocator, err)))
        return CFX_E_NOMEM;
    return CFX_OK;
}

/* Frees what a compilation that failed has left. */
static void undo(cfx_program *p)
{
    for (size_t i = 0; i < p->regions.size; i++)
        undo(((cfx_program **)p->regions.data)[i]);
    if (p->stretches)
        p->stretches->free(p->stretches);
    p->stretches = NULL;
}

cfx_status cfx_program_compile(cfx_program *p, const cfx_compile_options *options, cfx_error *err)
{
    const cfx_compile_options defaults = {0};
    const cfx_compile_options *o = options ? options : &defaults;
    cfxi_plan_how how = {.precision = o->precision};
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    CFX_TRY(cfxi_base_expect(p, "program", err));
    if (p->stretches || p->partial)
        return CFX_OK;
    cfx_status status = open_back_ends(p, o, &how, err);
    if (status == CFX_OK)
        status = compile_all(p, o->most_plans ? o->most_plans : MOST_PLANS, how, err);
    if (status == CFX_OK)
        ((compiled *)p->stretches)->owns_tuner = true;
    else
        undo(p);
    if (status != CFX_OK)
        cfxi_backend_tuner_free(how.tuner);
    cfxi_plan_appender_release(how.appender);
    cfxi_backend_onednn_release(how.onednn);
    return status;
}

bool cfx_program_is_compiled(const cfx_program *p) { return p && p->stretches; }

static void print_plans(const cfx_program *p, cfxi_out *out)
{
    compiled *c = (compiled *)p->stretches;
    lock(c);  /* nobody throws a plan away meanwhile */
    for (size_t i = 0; i <= p->instructions.size; i++) {
        const place *at = atomic_load(&c->places[i]);
        for (size_t k = 0; at && k < c->most_plans; k++) {
            const entry *e = atomic_load(&at->entries[k]);
            if (e && e->plan->end > e->plan->first)
                cfxi_plan_print(e->plan, out);
        }
    }
    unlock(c);
    for (size_t i = 0; i < p->regions.size; i++)
        print_plans(((cfx_program **)p->regions.data)[i], out);
}

cfx_status cfx_program_print_plans(const cfx_program *p, cfx_sink sink, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(p, "program", err));
    if (!p->stretches)
        return cfx_error_set(err, CFX_E_VALUE, "the program is not compiled");
    cfxi_out out;
    cfxi_base_out_begin(&out, sink);
    print_plans(p, &out);
    return cfxi_base_out_end(&out, err);
}
