/* op_table.c - the operator table: rows, and finding the row of a name.
 *
 * ops.def has spellings in short; full ones are made and taken apart by a list of prefixes. Names
 * are found by binary search in ops_index.inc, which tools/generate makes.
 */
#include "ops_impl.h"

#include <stdlib.h>

/* ---- rows ---------------------------------------------------------------------------------- */

enum {  /* as ops.def writes them */
    PLAIN = 0,
    RANDOM = CFX_OPERATOR_RANDOM,
    COMMUTES = CFX_OPERATOR_COMMUTES,
    STATE = CFX_OPERATOR_STATE,
    CHECKS = CFX_OPERATOR_CHECKS,
    ELEMENTWISE = CFX_OPERATOR_ELEMENTWISE,
    GLOBAL = CFX_OPERATOR_GLOBAL
};

typedef struct operator_row {
    const char *name;
    const char *schema;
    const char *spellings;
    unsigned flags;
} operator_row;

static const operator_row rows[CFX_OPERATOR_COUNT] = {
    [CFX_OPID_NONE] = {NULL, NULL, "", 0},
#define CFX_OPERATOR(id, schema, names, flags, rule)                                               \
    [CFX_OPID_##id] = {#id, schema, names, flags},
#include <cfx/ops.def>
#undef CFX_OPERATOR
};

_Static_assert(CFX_OPERATOR_COUNT < UINT16_MAX, "nodes keep their row in 16 bits");

static const operator_row *row_of(cfx_operator op)
{
    return &rows[(unsigned)op < CFX_OPERATOR_COUNT ? op : CFX_OPID_NONE];
}

const char *cfx_operator_name(cfx_operator op) { return row_of(op)->name; }
const char *cfx_operator_schema(cfx_operator op) { return row_of(op)->schema; }
unsigned cfx_operator_flags(cfx_operator op) { return row_of(op)->flags; }

const char *cfx_operator_flag_name(unsigned bit)
{
    static const char *const flags[] = {"random", "commutes", "state", "checks", "elementwise",
                                        "global"};
    return bit < sizeof flags / sizeof *flags ? flags[bit] : NULL;
}

/* ---- full and short names ------------------------------------------------------------------ */

typedef struct prefix {
    const char *full;
    const char *brief;
    cfx_spelling kind;
} prefix;

/* The first that fits counts, in both directions; the last always does. */
static const prefix prefixes[] = {
    {"torch.nn.functional.", "F.", CFX_SPELLING_FUNCTION},
    {"torch.nn.", "nn.", CFX_SPELLING_MODULE},
    {"torch.Tensor.", ".", CFX_SPELLING_METHOD},
    {"torch.linalg.", "linalg.", CFX_SPELLING_FUNCTION},
    {"torch.ops.aten.", "aten.", CFX_SPELLING_OVERLOAD},
    {"torch.ops.higher_order.", "higher_order.", CFX_SPELLING_FUNCTION},
    {"torch.ops.quantized_decomposed.", "quantized_decomposed.", CFX_SPELLING_OVERLOAD},
    {"torch.ops.transformers.", "transformers.", CFX_SPELLING_OVERLOAD},
    {"onnx:", "onnx:", CFX_SPELLING_ONNX},
    {"", "", CFX_SPELLING_FUNCTION},
};

/* Where Python's introspection finds the same functions. */
static const prefix other_homes[] = {
    {"torch._C._nn.", "F.", CFX_SPELLING_FUNCTION},
    {"torch._C._linalg.linalg_", "linalg.", CFX_SPELLING_FUNCTION},
    {"torch._C._fft.fft_", "torch.fft.", CFX_SPELLING_FUNCTION},
    {"torch._C._special.special_", "torch.special.", CFX_SPELLING_FUNCTION},
    {"torch.functional.", "torch.", CFX_SPELLING_FUNCTION},
    {"torch._tensor.", ".", CFX_SPELLING_METHOD},
    {"_operator.", "operator.", CFX_SPELLING_FUNCTION},
    {"torch._C._nn.log_sigmoid", "F.logsigmoid", CFX_SPELLING_FUNCTION},  /* after torch._C._nn. */
};

static bool has_prefix(const char *text, size_t size, const char *start)
{
    size_t n = strlen(start);
    return size >= n && memcmp(text, start, n) == 0;
}

/* Puts `to` in the place of the first `drop` bytes; 0 if it does not fit. */
static size_t swap_prefix(const char *text, size_t size, size_t drop, const char *to, char *out)
{
    size_t n = strlen(to);
    out[0] = '\0';
    if (n + size - drop >= CFX_SPELLING_SIZE)
        return 0;
    memcpy(out, to, n);
    memcpy(out + n, text + drop, size - drop);
    out[n + size - drop] = '\0';
    return n + size - drop;
}

/* Classes are made in files of torch.nn.modules: "torch.nn.modules.conv.Conv2d" is nn.Conv2d. */
static size_t shorten_class(const char *name, size_t size, char out[CFX_SPELLING_SIZE])
{
    static const char home[] = "torch.nn.modules.";
    const char *file = name + sizeof home - 1;
    if (!has_prefix(name, size, home))
        return 0;
    const char *dot = memchr(file, '.', (size_t)(name + size - file));
    return dot ? swap_prefix(name, size, (size_t)(dot - name), "nn", out) : 0;
}

size_t cfxi_ops_shorten(const char *name, size_t size, char out[CFX_SPELLING_SIZE])
{
    size_t n = shorten_class(name, size, out);
    if (n > 0)
        return n;
    const prefix *p = prefixes;
    for (size_t i = 0; i < sizeof other_homes / sizeof *other_homes; i++)
        if (has_prefix(name, size, other_homes[i].full))
            p = &other_homes[i];
    while (!has_prefix(name, size, p->full))
        p++;
    return swap_prefix(name, size, strlen(p->full), p->brief, out);
}

static size_t spelling_size(const char *spelling) { return strcspn(spelling, " ("); }

/* The i-th spelling of a row; NULL if there are not so many. */
static const char *spelling_at(cfx_operator op, size_t i)
{
    const char *at = row_of(op)->spellings;
    for (; *at && i > 0; i--) {
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    return *at ? at : NULL;
}

const char *cfx_operator_spelling(cfx_operator op, size_t i, char out[CFX_SPELLING_SIZE],
                                  cfx_spelling *kind)
{
    const char *brief = spelling_at(op, i);
    if (!brief)
        return NULL;
    const prefix *p = prefixes;
    while (!has_prefix(brief, spelling_size(brief), p->brief))
        p++;
    if (kind)
        *kind = p->kind;
    swap_prefix(brief, spelling_size(brief), strlen(p->brief), p->full, out);
    return out;
}

const char *cfx_operator_short_spelling(cfx_operator op, size_t i, char out[CFX_SPELLING_SIZE])
{
    const char *brief = spelling_at(op, i);
    if (!brief)
        return NULL;
    swap_prefix(brief, spelling_size(brief), 0, "", out);
    return out;
}

/* ---- finding ------------------------------------------------------------------------------- */

enum { IS_ID = 0xffff };  /* in the place of the offset: the name is the row's id */

typedef struct index_entry {
    uint16_t row;
    uint16_t offset;  /* of the spelling, in the row's spellings */
} index_entry;

static const index_entry names[] = {
#include "ops_index.inc"  /* generated */
};

static const char *entry_text(const index_entry *e)
{
    const operator_row *row = &rows[e->row];
    return e->offset == IS_ID ? row->name : row->spellings + e->offset;
}

static bool ends_spelling(char c) { return c == '\0' || c == ' ' || c == '('; }

/* Names differ early or late, and are short: letter by letter is quickest. */
static int compare_name(const void *key, const void *entry)
{
    const cfx_schema_text *k = key;
    const char *text = entry_text(entry);
    for (size_t i = 0; i < k->size; i++) {
        if (ends_spelling(text[i]))
            return 1;
        if (k->text[i] != text[i])
            return (unsigned char)k->text[i] < (unsigned char)text[i] ? -1 : 1;
    }
    return ends_spelling(text[k->size]) ? 0 : -1;
}

static cfxi_op_name lookup_short(const char *name, size_t size)
{
    const cfx_schema_text key = {name, size};
    const index_entry *e = bsearch(&key, names, sizeof names / sizeof *names, sizeof *names,
                                   compare_name);
    cfxi_op_name found = {CFX_OPID_NONE, NULL};
    if (e) {
        found.op = (cfx_operator)e->row;
        found.spelling = e->offset == IS_ID ? NULL : entry_text(e);
    }
    return found;
}

/* "aten.add": all overloads of an operator. */
static bool is_packet(const char *name, size_t size)
{
    static const char *const homes[] = {"aten.", "quantized_decomposed."};
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
        const size_t n = strlen(homes[i]);
        if (has_prefix(name, size, homes[i]))
            return !memchr(name + n, '.', size - n);
    }
    return false;
}

/* "aten.add" is what its commonest overload is. */
static cfxi_op_name lookup_packet(const char *name, size_t size)
{
    static const char *const overloads[] = {".default", ".Tensor", ".int", ".self", ".tensor"};
    cfxi_op_name found = {CFX_OPID_NONE, NULL};
    char text[CFX_SPELLING_SIZE];
    for (size_t i = 0; i < sizeof overloads / sizeof *overloads && !found.op; i++) {
        size_t more = strlen(overloads[i]);
        if (size + more >= sizeof text)
            break;
        memcpy(text, name, size);
        memcpy(text + size, overloads[i], more);
        found = lookup_short(text, size + more);
    }
    return found;
}

/* "__add__" is operator.add, "__and__" is operator.and_; `name` is what is between the lines. */
static cfxi_op_name lookup_magic(const char *name, size_t size)
{
    char text[CFX_SPELLING_SIZE];
    cfxi_op_name found = {CFX_OPID_NONE, NULL};
    size_t n = swap_prefix(name, size, 0, "operator.", text);
    if (n == 0 || n + 1 >= sizeof text)
        return found;
    found = lookup_short(text, n);
    if (found.op)
        return found;
    text[n] = '_';
    return lookup_short(text, n + 1);
}

cfxi_op_name cfxi_ops_op_lookup_method(const char *name, size_t size)
{
    char text[CFX_SPELLING_SIZE];
    size_t n = swap_prefix(name, size, 0, ".", text);
    cfxi_op_name found = lookup_short(text, n);
    bool magic = size > 4 && memcmp(name, "__", 2) == 0 && memcmp(name + size - 2, "__", 2) == 0;
    return found.op || !magic ? found : lookup_magic(name + 2, size - 4);
}

/* "cfx.ops.max_dim" is the row itself, as lowered graphs call it: a spelling without letters. */
static cfxi_op_name lookup_row(const char *id, size_t size)
{
    cfxi_op_name found = lookup_short(id, size);
    if (found.spelling)
        found.op = CFX_OPID_NONE;
    found.spelling = found.op ? "" : NULL;
    return found;
}

cfxi_op_name cfxi_ops_op_lookup(const char *name, size_t size)
{
    static const char row[] = "cfx.ops.";
    char text[CFX_SPELLING_SIZE];
    if (has_prefix(name, size, row))
        return lookup_row(name + sizeof row - 1, size - (sizeof row - 1));
    size_t n = cfxi_ops_shorten(name, size, text);
    if (n > 0 && text[0] == '.')
        return cfxi_ops_op_lookup_method(text + 1, n - 1);
    cfxi_op_name found = lookup_short(text, n);
    return found.op || !is_packet(text, n) ? found : lookup_packet(text, n);
}

cfx_operator cfx_operator_parse(const char *name)
{
    return cfxi_ops_op_lookup(name, strlen(name)).op;
}

cfx_operator cfx_operator_find(const char *name, size_t size)
{
    cfxi_op_name found = cfxi_ops_op_lookup(name, size);
    return found.spelling ? found.op : CFX_OPID_NONE;
}

cfx_operator cfxi_ops_of_method(const char *name, size_t size)
{
    return cfxi_ops_op_lookup_method(name, size).op;
}

cfx_operator cfxi_ops_of_class(const char *name)
{
    cfxi_op_name found = cfxi_ops_op_lookup(name, strlen(name));
    bool module = found.spelling && has_prefix(found.spelling, strlen(found.spelling), "nn.");
    return module ? found.op : CFX_OPID_NONE;
}
