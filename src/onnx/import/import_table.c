/* import_table.c - which rule an operator of the default domain has. */
#include "engine_impl.h"

static const cfxi_import_row rules[] = {
#define CFX_ONNX_RULE(op, since, rule) {#op, since, cfxi_import_##rule, 0},
#define CFX_ONNX_MOVES(op, since, rule, data) {#op, since, cfxi_import_##rule, data},
#include "import.def"
};

enum { NUM_RULES = sizeof rules / sizeof *rules };

/* An operator that was looked for. */
typedef struct known_operator {
    uint32_t hash;
    int64_t opset;
    cfxi_text name;
    const cfxi_import_row *row;  /* NULL: it has none */
} known_operator;

cfx_operator cfxi_import_spelling(cfxi_text op, const char **list)
{
    char name[CFX_SPELLING_SIZE] = "onnx:";
    const size_t prefix = strlen(name);
    *list = NULL;
    if (op.size == 0 || op.size >= sizeof name - prefix)
        return CFX_OPID_NONE;
    memcpy(name + prefix, op.data, op.size);
    const cfxi_op_name found = cfxi_ops_op_lookup(name, prefix + op.size);
    *list = cfxi_ops_spelling_list(found.spelling);
    return found.op;
}

/* The rule with the newest `since` that is not newer than the opset. */
static const cfxi_import_row *rule_of(cfxi_text op, int64_t opset, int64_t *oldest)
{
    const cfxi_import_row *best = NULL;
    *oldest = 0;
    for (size_t i = 0; i < NUM_RULES; i++) {
        if (!cfxi_onnx_is(op, rules[i].op))
            continue;
        if (*oldest == 0 || rules[i].since < *oldest)
            *oldest = rules[i].since;
        if (rules[i].since <= opset && (!best || rules[i].since > best->since))
            best = &rules[i];
    }
    return best;
}

int64_t cfxi_import_oldest(cfxi_text op)
{
    const char *list;
    int64_t oldest;
    rule_of(op, 0, &oldest);
    if (oldest == 0 && cfxi_import_spelling(op, &list))
        oldest = CFX_ONNX_OPSET_OLDEST;
    return oldest;
}

static const cfxi_import_row *look_for(cfxi_text op, int64_t opset)
{
    static const cfxi_import_row spelled = {"", CFX_ONNX_OPSET_OLDEST, cfxi_import_spelled, 0};
    const char *list;
    int64_t oldest;
    const cfxi_import_row *row = rule_of(op, opset, &oldest);
    if (!row && opset == CFX_ONNX_OPSET_OLDEST)  /* the next one changed few operators */
        row = rule_of(op, opset + 1, &oldest);
    return row || oldest ? row : cfxi_import_spelling(op, &list) ? &spelled : NULL;
}

static uint32_t hash_of(const void *item) { return ((const known_operator *)item)->hash; }

static bool same_operator(const void *item, const void *key, size_t size)
{
    const known_operator *a = item;
    const known_operator *b = key;
    (void)size;
    return a->opset == b->opset && cfxi_onnx_same(a->name, b->name);
}

const cfxi_import_row *cfxi_import_row_of(cfxi_import *m, cfxi_text op, int64_t opset,
                                          cfx_error *err)
{
    const known_operator key = {
        .hash = cfxi_base_hash_keyed(&m->key, op.data, op.size), .opset = opset, .name = op};
    const known_operator *found =
        cfxi_base_set_find(&m->rows, key.hash, same_operator, &key, 0);
    if (found)
        return found->row;
    known_operator *made = cfxi_base_arena_alloc(&m->arena, sizeof *made);
    if (!made || !cfxi_base_set_reserve(&m->rows, hash_of, m->allocator)) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *made = key;
    made->row = look_for(op, opset);
    cfxi_base_set_insert(&m->rows, made->hash, made);
    return made->row;
}
