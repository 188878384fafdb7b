/* graph_impl.h - the structs behind graph.h and value.h, and their small accessors.
 *
 *   graph ── list of nodes (circular, the graph's `root` is the sentinel)
 *   node  ── args, kwargs: counted arrays of values;  inputs: its array of use edges
 *            users: circular list of the edges that point at it
 *   callee ── one for each (opcode, target) in use; lists the nodes that share it
 *   ref   ── one for each host object, name or region that values and callees mention
 *
 * Everything lives in the graph's arena.
 */
#ifndef CFXI_GRAPH_IMPL_H
#define CFXI_GRAPH_IMPL_H

#include "base/base_impl.h"
#include "base/forks.h"

#include <cfx/embed/copy.h>
#include <cfx/embed/graph.h>
#include <cfx/embed/hook.h>
#include <cfx/embed/host.h>
#include <cfx/embed/location.h>
#include <cfx/embed/namespace.h>
#include <cfx/node.h>

#include <stdatomic.h>

struct cfx_str {
    uint32_t refs;
    uint32_t size;
    char data[];  /* terminated */
};

struct cfx_seq {
    uint32_t refs;
    uint32_t size;
    cfx_value items[];
};
/* The nesting depth of a SEQ value is kept in its `pad`, so that the array's header stays small. */

typedef enum cfxi_ref_kind { CFXI_REF_OBJECT, CFXI_REF_NAME, CFXI_REF_REGION } cfxi_ref_kind;

typedef struct cfxi_callee cfxi_callee;

struct cfx_ref {
    cfx_graph *graph;      /* whose table this is an entry of */
    void *object;          /* OBJECT: the host's; REGION: the host's object for it, or NULL */
    cfx_graph *region;     /* REGION */
    cfx_str *name;         /* NAME; OBJECT: its qualified name once asked for */
    cfxi_callee *callees;  /* those whose target this is, at most one per opcode */
    cfx_ref *next_dead;    /* on the graph's list of refs to let go of */
    uint32_t refs;
    uint32_t floating;     /* values handed out that nobody holds yet */
    uint32_t hash;
    uint8_t kind;          /* cfxi_ref_kind */
    bool dying;            /* on the dead list */
    bool name_checked;     /* OBJECT: its name leads back to it */
};

/* A counter for names with one base: "add" for "add", "add_1", "add_2". */
typedef struct cfxi_base {
    uint64_t count;
    uint32_t size;
    uint32_t hash;
    char data[];  /* terminated */
} cfxi_base;

/* A name that is taken; or that a node was given by hand, which takes it from nobody. */
typedef struct cfxi_name {
    cfx_node *owner;  /* NULL if erased, or not a node's */
    uint32_t size : 31;
    uint32_t taken : 1;
    uint32_t hash;
    char data[];      /* terminated */
} cfxi_name;

struct cfxi_callee {
    cfx_ref *ref;
    cfxi_callee *next_of_ref;
    cfxi_callee *prev, *next;  /* on the graph's list for the opcode */
    cfx_node *first;           /* nodes with this opcode and target, circular */
    cfx_str *wish;             /* what those nodes would be called; NULL until asked for */
    cfxi_base *base;           /* its counter, once the plain wish is taken; or NULL */
    uint32_t count;
    cfxi_callee *twin;         /* its copy, while the graph is being cloned */
    uint16_t row;              /* 1 + the operator's row of ops.def; 0 not asked yet */
    uint8_t form;              /* how it takes regions (region.c); 0 not asked yet */
    uint8_t op;
    uint8_t does;              /* what its name and the host say (analysis/effect.c); 0 not asked */
};

struct cfx_use {
    cfx_node *def;
    cfx_node *user;
    cfx_use *prev, *next;  /* on def's list, circular */
    uint32_t count;
};

/* What few nodes have. */
typedef struct cfxi_node_ext {
    cfx_value type;
} cfxi_node_ext;

enum { CFXI_NODE_ERASED = 1, CFXI_NODE_ARGS_CHANGED = 2 };
enum { CFXI_MAX_PINS = 3 };

struct cfx_node {
    cfx_graph *graph;
    cfx_node *prev, *next;
    uint64_t order;
    cfxi_name *name;
    cfxi_callee *callee;
    cfx_node *same_prev, *same_next;  /* on the callee's list */
    cfx_seq *args;                    /* NULL if empty */
    cfx_seq *kwargs;                  /* NULL if empty */
    cfxi_node_ext *ext;
    cfx_use *inputs;                  /* array of n_inputs edges */
    cfx_use *users;                   /* first user's edge */
    void *binding;
    uint32_t n_inputs;
    uint32_t n_users;
    uint32_t mark;                    /* see cfxi_ir_graph_stamp */
    uint32_t location;                /* number of its location; 0 is none */
    uint32_t scope;
    uint32_t op : 4;
    uint32_t flags : 2;
    uint32_t pins : 2;                /* see cfx_node_pin */
    uint32_t args_depth : 12;         /* how deep containers nest in them */
    uint32_t kwargs_depth : 12;
};

struct cfx_namespace {
    cfxi_arena *arena;
    cfxi_hash_key key;    /* of all tables of texts of the graph */
    cfxi_hash_set names;  /* of cfxi_name */
    cfxi_hash_set bases;  /* of cfxi_base */
};

/* A source line; each (file, line) stands once in a graph, and line 0 owns the file's name. */
typedef struct cfxi_location {
    cfx_str *file;
    uint32_t line;
    uint32_t number;
    uint32_t hash;
} cfxi_location;

typedef struct cfxi_scope {
    cfx_str *path;
    cfx_str *type;
    cfx_ref *object;  /* the host's object for the type, or NULL */
    uint32_t parent;
    uint32_t number;
    uint32_t hash;
} cfxi_scope;

typedef struct cfxi_hook {
    cfx_hook_fn *fn;
    void *ctx;
    uint32_t id;
    cfx_hook_kind kind;
} cfxi_hook;

enum { CFXI_RECENT = 16 };

struct cfx_graph {
    cfx_node root;          /* sentinel: root.next is the first node */
    atomic_int refs;
    const cfx_allocator *allocator;
    const cfx_host *host;
    void *binding;
    size_t size;
    uint64_t version;
    cfx_insert_point insert;
    cfxi_arena arena;
    cfx_seq *empty;         /* the array of all empty containers */
    cfx_namespace names;
    cfxi_name *nameless;    /* the name of all new nodes, or NULL; see cfxi_ir_graph_defer_names */
    cfxi_hash_set refs_table;  /* of cfx_ref */
    cfxi_callee *callees[CFX_OPCODE_COUNT];
    cfxi_callee *recent[CFXI_RECENT];  /* found by name lately */
    cfx_ref *dead_refs;     /* let go of at the end of the edit */
    cfx_node *kept;         /* while a script is captured: from here on, buffers get what was
                               assigned to them; or NULL */
    cfx_node *limbo;        /* erased nodes that something may still look at, by same_next */
    cfx_node *unbound;      /* those whose binding must be let go of, by same_prev */
    size_t open_iters;
    uint32_t readers;       /* see cfxi_ir_graph_freeze */
    size_t dead_pins;       /* erased nodes that are pinned */
    uint32_t stamp;
    uint32_t next_hook;
    bool settling;          /* see cfxi_ir_graph_settle */
    cfx_edit_fn *on_edit;   /* or NULL; see cfx_graph_on_edit */
    void *on_edit_ctx;
    cfxi_vec hooks;         /* of cfxi_hook */
    cfxi_vec locations;     /* of cfxi_location *, by number - 1 */
    cfxi_vec scopes;        /* of cfxi_scope *, by number - 1 */
    cfxi_hash_set location_table, scope_table;
    cfx_graph *parent;      /* the graph whose values hold this one as a region */
    uint32_t height;        /* deepest nesting of regions ever held */
    cfxi_lock cloning;  /* marks and twins are in use */
};

/* ---- accessors ----------------------------------------------------------------------------- */

static inline bool cfxi_ir_node_is_root(const cfx_node *n) { return n == &n->graph->root; }
static inline bool cfxi_ir_node_erased(const cfx_node *n) { return n->flags & CFXI_NODE_ERASED; }

static inline bool cfxi_ir_is_call(const cfx_node *n)
{
    return n->op == CFX_OP_CALL_FUNCTION || n->op == CFX_OP_CALL_METHOD ||
           n->op == CFX_OP_CALL_MODULE;
}

/* Creates a node that calls the function of that name, which the host may know. `wish`: what it
 * should be called, or NULL. The arguments are given away, also if it fails: NULL with *err set.
 * (node.c) */
cfx_node *cfxi_ir_call_by_name(cfx_graph *g, const char *target, const cfx_value *args, size_t n,
                               const char *wish, cfx_error *err);

/* Whether it reads the mode of a module, "training" or "block.training": a bool, which the owner of
 * the modules switches between runs. */
bool cfxi_ir_is_flag(const cfx_node *n);

static inline cfx_value cfxi_ir_seq_value(cfx_kind kind, cfx_seq *seq, uint32_t depth)
{
    cfx_value v = cfx_value_scalar(kind, 0);
    v.pad = depth;
    v.as.seq = seq;
    return v;
}

/* Item i of a tuple or list that is written down, from its end if negative; INVALID if there is
 * none. */
cfx_value cfxi_ir_seq_item(cfx_value of, cfx_value i);  /* (value.c) */

static inline const cfxi_location *cfxi_ir_location_of(const cfx_node *n)
{
    return n->location ? ((cfxi_location **)n->graph->locations.data)[n->location - 1] : NULL;
}
static inline const cfxi_scope *cfxi_ir_scope_at(const cfx_graph *g, uint32_t scope)
{
    bool known = scope > 0 && scope <= g->scopes.size;
    return known ? ((cfxi_scope **)g->scopes.data)[scope - 1] : NULL;
}

/* An input of one value: not "*args". */
static inline bool cfxi_ir_is_plain_input(const cfx_node *n)
{
    const cfx_str *name = n->callee->ref->name;
    return n->op == CFX_OP_PLACEHOLDER && name && name->data[0] != '*';
}

/* The next input of a graph behind `n`, or its first for NULL; NULL if there is none. */
static inline cfx_node *cfxi_ir_next_input(const cfx_graph *g, const cfx_node *n)
{
    cfx_node *next = n ? n->next : g->root.next;
    while (next != &g->root && next->op != CFX_OP_PLACEHOLDER)
        next = next->next;
    return next == &g->root ? NULL : next;
}

/* A mark for each node visited, without a set: marks below the returned stamp are old. `n` marks
 * (stamp, stamp + 1, ...) are reserved, so that a mark can also number the nodes. */
uint32_t cfxi_ir_graph_stamp(cfx_graph *g, uint32_t n);
/* Numbers the nodes in their order by marks; the first has the mark that is returned. (use.c) */
uint32_t cfxi_ir_graph_number(cfx_graph *g);
/* A node's place in its graph; UINT32_MAX for one that is not on the list. */
static inline uint32_t cfxi_ir_position(const cfx_graph *g, uint32_t stamp, const cfx_node *n)
{
    if (n->graph != g || n->mark < stamp || n->mark - stamp >= g->size)
        return UINT32_MAX;
    return n->mark - stamp;
}

/* While a graph is being printed, compared, checked or generated, code of the host may run; it can
 * read the graph and its regions, but edits of them fail. Freezing nests. */
static inline void cfxi_ir_graph_freeze(const cfx_graph *g)
{
    ((cfx_graph *)(uintptr_t)g)->readers++;
}
static inline void cfxi_ir_graph_thaw(const cfx_graph *g)
{
    ((cfx_graph *)(uintptr_t)g)->readers--;
}
/* Begins every edit of `g`: fails if it is frozen, and calls who waits for an edit. (graph.c) */
cfx_status cfxi_ir_graph_begin_edit(cfx_graph *g, cfx_error *err);

/* ---- values (value.c) ---------------------------------------------------------------------- */

/* What every text writes for a value that is one of a closed set ("None", "True", "torch.float32");
 * NULL for other kinds. */
const char *cfxi_ir_value_word(cfx_value v);

cfx_str *cfxi_ir_str_new(cfxi_arena *arena, const char *text, size_t size);  /* refs 0 */
void cfxi_ir_str_free(cfxi_arena *arena, cfx_str *str);
void cfxi_ir_value_hold(cfx_value v);
void cfxi_ir_value_drop(cfx_graph *g, cfx_value v);
void cfxi_ir_value_unhold(cfx_value v);  /* undoes a hold: what nobody else holds floats again */
/* Whether `v` may be used in `g`; sets *err. */
cfx_status cfxi_ir_value_check(const cfx_graph *g, cfx_value v, cfx_error *err);
static inline bool cfxi_ir_is_seq(cfx_value v)
{
    return v.kind >= CFX_KIND_COMPLEX && v.kind <= CFX_KIND_NAMEDTUPLE;
}
/* Neither INVALID, nor a node, nor a reference: fits any graph. */
static inline bool cfxi_ir_is_plain(cfx_value v)
{
    return v.kind - 1 < CFX_KIND_NODE - 1;
}
static inline bool cfxi_ir_is_ref(cfx_value v)
{
    return v.kind == CFX_KIND_GRAPH || v.kind == CFX_KIND_HOST;
}
static inline bool cfxi_ir_is_str(cfx_value v)
{
    return v.kind >= CFX_KIND_STR && v.kind <= CFX_KIND_DEVICE;
}

/* ---- hashing (graph_hash.c) ---------------------------------------------------------------- */

/* How values are hashed, in agreement with cfx_value_equal. */
typedef struct cfxi_hasher {
    cfx_graph *graph;
    cfx_error *err;
    cfx_status status;  /* the first failure; the hash is then meaningless */
    uint64_t (*node)(const struct cfxi_hasher *c, const cfx_node *n);  /* what stands for a node */
    const void *ctx;
    bool shape_only;    /* regions without names and locations */
    bool region;        /* the graph is one: what its inputs are called does not count */
    bool by_identity;   /* host objects without a name differ: for one process only */
    uint32_t scope;     /* the last scope, and its hash */
    uint64_t scope_hash;
} cfxi_hasher;

/* The host may be asked for names: freeze the graph meanwhile. */
uint64_t cfxi_ir_hash_items(cfxi_hasher *c, uint64_t h, const cfx_seq *seq);
uint64_t cfxi_ir_hash_ref(cfxi_hasher *c, uint64_t h, cfx_ref *ref);

/* ---- comparing (equal.c) ------------------------------------------------------------------- */

typedef enum cfxi_ir_floats {
    CFXI_FLOATS_TEXT,   /* bit by bit, but every nan is the same one, as in texts */
    CFXI_FLOATS_BITS,   /* bit by bit, and nan equals nothing */
    CFXI_FLOATS_PYTHON  /* 0.0 is -0.0, and nan equals nothing */
} cfxi_ir_floats;

/* What counts as the same value: the one walk over values asks this. */
typedef struct cfxi_same {
    bool (*node)(const void *ctx, const cfx_node *a, const cfx_node *b);  /* NULL: the same node */
    bool (*region)(const void *ctx, const cfx_ref *a, const cfx_ref *b);  /* NULL: see below */
    const void *ctx;
    cfxi_ir_floats floats;
    bool numbers;     /* True, 1 and 1.0 are one, as in Python */
    bool exact;       /* of one graph: host objects, names and regions by identity, sets in order */
    bool shape_only;  /* regions in the sense of cfx_graph_equal */
    bool regions_apart;  /* any two regions are the same: they are compared elsewhere */
} cfxi_same;
bool cfxi_ir_same_value(const cfxi_same *how, cfx_value a, cfx_value b);
bool cfxi_ir_same_items(const cfxi_same *how, const cfx_seq *a, const cfx_seq *b);
/* Whether two regions compute the same: cfx_graph_equal with `shape_only`, whatever their inputs
 * are called; and a hash that agrees with it. */
bool cfxi_ir_region_equal(const cfx_graph *a, const cfx_graph *b);
cfx_status cfxi_ir_region_hash(cfx_graph *region, uint64_t *hash, cfx_error *err);
/* The same object, or one that the host calls equal; a name and the object that has it. */
bool cfxi_ir_same_ref(cfx_ref *a, cfx_ref *b);

/* ---- references (ref.c) -------------------------------------------------------------------- */

cfx_ref *cfxi_ir_ref_object(cfx_graph *g, void *object, cfx_error *err);
cfx_ref *cfxi_ir_ref_name(cfx_graph *g, const char *name, size_t size, cfx_error *err);
cfx_ref *cfxi_ir_ref_region(cfx_graph *g, cfx_graph *region, cfx_error *err);
void cfxi_ir_ref_drop(cfx_graph *g, cfx_ref *ref);  /* one count less */
void cfxi_ir_ref_discard(cfx_graph *g, cfx_ref *ref);  /* if nobody has it */
cfx_ref *cfxi_ir_ref_find(const cfx_graph *g, cfx_target target);  /* NULL if there is none */
/* Its name, asked of the host if need be; NULL with *err set. */
const cfx_str *cfxi_ir_ref_qualified_name(cfx_graph *g, cfx_ref *ref, cfx_error *err);
/* The entry of `dst` for what `ref`, not a region, refers to in `src`; NULL with *err set. */
cfx_ref *cfxi_ir_ref_copy(cfx_graph *dst, cfx_graph *src, cfx_ref *ref, cfx_error *err);
/* Lets go of the host objects that nobody uses any more; ends every edit. */
void cfxi_ir_graph_settle(cfx_graph *g);

/* ---- names (name.c) ------------------------------------------------------------------------ */

/* Whether a node may have the name: an identifier, and nothing that Python needs. */
bool cfxi_ir_name_is_legal(const char *name, size_t size);
/* Whether the text is a dotted name, or such names with the signs of a type between them, as in
 * `typing.Dict[str, list[int]]` or `int | None`: to evaluate it calls nothing. (qualified.c) */
bool cfxi_ir_is_type_text(const char *text, size_t size);
void cfxi_ir_namespace_init(cfx_namespace *ns, cfxi_arena *arena);
void cfxi_ir_namespace_release(cfx_namespace *ns);
/* Takes a name: from a wish, or the next of a base. NULL with *err set. */
cfxi_name *cfxi_ir_namespace_take(cfx_namespace *ns, const char *wish, size_t size,
                                  bool allow_reserved, cfx_error *err);
/* Likewise; *next is the base that further names from this wish are the next of, if that is only a
 * matter of counting now, else NULL. */
cfxi_name *cfxi_ir_namespace_take_from(cfx_namespace *ns, const char *wish, size_t size,
                                       bool allow_reserved, cfxi_base **next, cfx_error *err);
cfxi_name *cfxi_ir_namespace_next(cfx_namespace *ns, cfxi_base *base, cfx_error *err);
cfxi_name *cfxi_ir_namespace_find(const cfx_namespace *ns, const char *name, size_t size);
/* The name exactly as it is: the entry it has, or a new one. Whether it was taken or not, it is
 * taken then; `entry` leaves that as it is. */
cfxi_name *cfxi_ir_namespace_entry(cfx_namespace *ns, const char *name, size_t size,
                                   cfx_error *err);
cfxi_name *cfxi_ir_namespace_exact(cfx_namespace *ns, const char *name, size_t size,
                                   cfx_error *err);
/* Likewise, and counts a new one as if it had been wished for; for copies of a whole graph.
 * `is_free` says that it is known not to have an entry. */
cfxi_name *cfxi_ir_namespace_keep(cfx_namespace *ns, const char *name, size_t size, bool is_free,
                                  cfx_error *err);

/* From here on new nodes that come without a wish are all called "_": for a graph that is being
 * made, where most are gone before anybody could see their names. Until cfxi_ir_graph_name_anew or
 * cfxi_ir_graph_name_rest. */
cfx_status cfxi_ir_graph_defer_names(cfx_graph *g, cfx_error *err);
/* Whether a node is called, but for a number at the end, as nodes with its target are. (edit.c) */
bool cfxi_ir_has_usual_name(const cfx_node *n);
/* The size of a name without a number at its end: "add" of "add_12". (name.c) */
size_t cfxi_ir_base_size(const char *name, size_t size);
/* All names are free again, and counted from the start. */
void cfxi_ir_namespace_forget(cfx_namespace *ns);
/* Names the nodes anew as if they had just been made, one after the other: names of nodes that are
 * gone are free again. Inputs are called as `inputs` wishes, one for each; if that is NULL, as they
 * are. Where names were put off, a name that was set (cfx_node_set_name) is kept if it is free. If
 * memory runs out, the graph can only be released. (edit.c) */
cfx_status cfxi_ir_graph_name_anew(cfx_graph *g, const char *const *inputs, cfx_error *err);
/* Ends what cfxi_ir_graph_defer_names began, for nodes that come later, and names those behind
 * `last`; one that was set is kept if no other node has it. Names of other nodes stay. (edit.c) */
cfx_status cfxi_ir_graph_name_rest(cfx_graph *g, cfx_node *last, cfx_error *err);

/* The other node that has the name of `n` and the better right to it, or NULL. A name belongs to
 * one node, its owner, unless names were set by hand: of those nodes, which are few, the first that
 * is asked for counts as the owner, which *names (NULL at first, the caller's to free) remembers.
 * The map is good until a name changes. (verify.c) */
cfx_status cfxi_ir_name_rival(cfx_node *n, cfx_node_map **names, const cfx_node **rival,
                              cfx_error *err);

/* ---- locations (location.c) ---------------------------------------------------------------- */

/* Lets go of the host's objects for the classes of scopes; settle afterwards. */
void cfxi_ir_scopes_let_go(cfx_graph *g);

/* ---- the list (graph.c) -------------------------------------------------------------------- */

void cfxi_ir_list_insert(cfx_node *before, cfx_node *n);  /* and labels it */
void cfxi_ir_list_remove(cfx_node *n);
cfx_node *cfxi_ir_insert_before(const cfx_graph *g);    /* the insertion point as a node */
void cfxi_ir_node_erase(cfx_node *n);                   /* unchecked; into limbo */
cfx_status cfxi_ir_run_hooks(cfx_graph *g, cfx_hook_kind kind, cfx_node *n, cfx_value with,
                             cfx_node *user, cfx_error *err);

/* ---- order labels (order.c) ---------------------------------------------------------------- */

/* Gives `n`, already on the list, a label between its neighbours'; relabels a stretch around it if
 * there is no room. Amortised O(log n). */
void cfxi_ir_order_assign(cfx_node *n);

/* ---- uses (use.c) -------------------------------------------------------------------------- */

/* New arguments for a node, prepared so that committing them cannot fail. */
typedef struct cfxi_arg_change {
    cfx_node *node;
    cfx_value args, kwargs;  /* TUPLE, DICT */
    cfx_use *inputs;
    uint32_t n_inputs;
    uint32_t kept;           /* so many of the node's edges stay where they are on the use lists */
} cfxi_arg_change;

cfx_status cfxi_ir_args_prepare(cfxi_arg_change *change, cfx_node *n, cfx_value args,
                                cfx_value kwargs, cfx_error *err);
/* Likewise for arguments that only add to what the node has: its edges keep their place. */
cfx_status cfxi_ir_args_prepare_more(cfxi_arg_change *change, cfx_node *n, cfx_value args,
                                     cfx_error *err);
void cfxi_ir_args_commit(cfxi_arg_change *change);
void cfxi_ir_args_abandon(cfxi_arg_change *change);  /* its values are as floating as before */

/* Whether `type`, INVALID for none, may be the type of a node; sets *err. (node.c) */
cfx_status cfxi_ir_type_check(const cfx_graph *g, cfx_value type, cfx_error *err);
/* Sets or clears (INVALID) the type, without checks; false if memory is out. (node.c) */
bool cfxi_ir_node_set_type(cfx_node *n, cfx_value type);

/* ---- copies (node_copy.c) ------------------------------------------------------------------ */

bool cfxi_ir_node_map_reserve(cfx_node_map *map, size_t more);  /* false if memory is out */

/* What of a copied node is not as it was: the name it wishes for, NULL to derive it from the
 * target; the path it names, NULL for the same; and it may become a placeholder, which has type
 * and place of the node but no arguments. With `move` its regions are handed over to the copy, and
 * the node, which still has them among its arguments, must be erased. */
typedef struct cfxi_copy_as {
    const char *name;
    const char *path;
    bool placeholder;
    bool move;
} cfxi_copy_as;
/* As cfx_value_map; with `move` regions are handed over. */
cfx_value cfxi_ir_value_map(cfx_graph *dst, cfx_graph *src, cfx_value v, bool move, cfx_map_fn *fn,
                            void *ctx, cfx_error *err);
/* A container with None in place of nodes and regions: floating, or `v` itself if it has none;
 * INVALID with *err set. */
cfx_value cfxi_ir_value_bare(cfx_graph *g, cfx_value v, cfx_error *err);
cfx_node *cfxi_ir_graph_copy_as(cfx_graph *g, const cfx_node *n, const cfxi_copy_as *as,
                                cfx_map_fn *fn, void *ctx, cfx_error *err);

/* ---- messages (location.c) ----------------------------------------------------------------- */

enum { CFXI_WHERE_SIZE = 100 };
/* " (model.py:3)" behind the name of a node in a message; "" if that is not known. */
const char *cfxi_ir_where(const cfx_node *n, char out[CFXI_WHERE_SIZE]);

/* ---- operators (region.c) ------------------------------------------------------------------ */

/* How the arguments of an operator that takes regions lie. */
typedef struct cfxi_region_form {
    const char *name;
    const char *parameters[5];  /* their names, in order, NULL at the end */
    uint8_t first;              /* the first region among them */
    uint8_t regions;
    uint8_t operands;           /* what the regions are called with */
    uint8_t extra_inputs;       /* each region has so many before the operands */
    int8_t state_region;        /* the one that returns as many values as there are operands */
} cfxi_region_form;

/* NULL if the node calls no such operator; the answer is kept with its callee. */
const cfxi_region_form *cfxi_ir_node_form(const cfx_node *n);
/* Argument i of such a call, by its place or its name; INVALID if it is not given. */
cfx_value cfxi_ir_region_arg(const cfxi_region_form *form, const cfx_node *n, size_t i);

/* The value of the string key `key` in a DICT; INVALID if there is none. (value.c) */
cfx_value cfxi_ir_value_get(cfx_value dict, const char *key);

/* Writes a value as Python's repr would give it, with nodes by their names: x, 1, 'text',
 * (a, [1, 2]). (print.c) */
cfx_status cfxi_ir_value_repr(cfx_graph *g, cfx_value v, cfx_sink out, cfx_error *err);

#endif
