/* random_control.c - random programs with branches and loops: see random_control.h.
 *
 * Text is the simplest way to write regions. A block knows the values that it can use, by kind:
 * what a kind is asked for that there is no value of, a literal or a new call gives it.
 */
#include "random_control.h"

#include <stdio.h>
#include <string.h>

enum { MOST_VALUES = 64, MOST_DEPTH = 4, MOST_STATE = 5, TEXT = 64 };

/* Tensor, integer, float, bool (also a tensor of one), pair of tensor and integer, list of two
 * tensors. */
static const char kinds[] = "TTTNNFBPL";

typedef struct value {
    char kind;
    char text[TEXT];  /* "%v12", or a literal */
} value;

/* A graph that is being written. */
typedef struct block {
    struct block *parent;
    cfx_buffer *out;
    random_source *r;
    int *names;       /* how many there are */
    value values[MOST_VALUES];
    size_t n;
    int depth;
    bool writes;
    char last[400];   /* the last plain statement, to be said again */
    char last_kind;
} block;

static void put(block *b, const char *text)
{
    (void)cfx_buffer_append(b->out, text, strlen(text));  /* tests have memory */
}

static size_t below(block *b, size_t n) { return random_below(b->r, n); }

static void remember(block *b, char kind, const char *text)
{
    const size_t at = b->n < MOST_VALUES ? b->n++ : below(b, MOST_VALUES);
    b->values[at].kind = kind;
    snprintf(b->values[at].text, TEXT, "%s", text);
}

/* Begins "%v12 = " and says so in `name`. */
static void name_next(block *b, char name[TEXT])
{
    char text[TEXT + 8];
    snprintf(name, TEXT, "%%v%d", (*b->names)++);
    snprintf(text, sizeof text, "%s = ", name);
    put(b, text);
}

static void pick(block *b, char kind, char out[TEXT]);

/* "%v12 = call_function[target=torch.add](...)", remembered as a value of `kind`. */
static void call(block *b, char kind, const char *target, const char *args)
{
    char name[TEXT];
    char text[4 * TEXT + 32];
    const bool method = target[0] == '.';
    name_next(b, name);
    snprintf(text, sizeof text, "call_%s[target=%s](%s)\n", method ? "method" : "function",
             target + method, args);
    put(b, text);
    remember(b, kind, name);
    if (strchr(target, '_') == NULL) {  /* what writes is not said twice */
        snprintf(b->last, sizeof b->last, "%s", text);
        b->last_kind = kind;
    }
}

/* ---- values -------------------------------------------------------------------------------- */

static void make(block *b, char kind, char out[TEXT])
{
    char tensor[TEXT];
    switch (kind) {
    case 'T':
        call(b, 'T', "torch.full", "(2, 3), 0.5");
        snprintf(out, TEXT, "%s", b->values[b->n - 1].text);
        break;
    case 'N':
        snprintf(out, TEXT, "%d", (int)below(b, 5));
        break;
    case 'F':
        snprintf(out, TEXT, "%d.5", (int)below(b, 3));
        break;
    case 'B':
        snprintf(out, TEXT, "%s", below(b, 2) ? "True" : "False");
        break;
    default:
        pick(b, 'T', tensor);
        snprintf(out, TEXT, kind == 'P' ? "(%.20s, 3)" : "[%.20s, %.20s]", tensor, tensor);
    }
}

/* A value of a kind: mostly a recent one, sometimes a literal. */
static void pick(block *b, char kind, char out[TEXT])
{
    size_t found[MOST_VALUES];
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (b->values[i].kind == kind)
            found[n++] = i;
    if (n == 0 || (kind != 'T' && random_chance(b->r, 15))) {
        make(b, kind, out);
        return;
    }
    const size_t a = below(b, n);
    const size_t c = below(b, n);
    snprintf(out, TEXT, "%s", b->values[found[a > c ? a : c]].text);
}

static char any_kind(block *b) { return kinds[below(b, sizeof kinds - 1)]; }

/* ---- plain statements ---------------------------------------------------------------------- */

static void compute_tensor(block *b)
{
    static const char *const unary[] = {"torch.neg", "torch.sin", "torch.tanh", "torch.relu",
                                        "torch.exp", ".abs", ".contiguous"};
    static const char *const binary[] = {"torch.add", "torch.sub", "torch.mul", "torch.maximum",
                                         "operator.add", ".mul"};
    char x[TEXT];
    char y[TEXT];
    char args[3 * TEXT];
    pick(b, 'T', x);
    if (below(b, 5) == 0) {
        snprintf(args, sizeof args, "%s, 2, 3", x);
        call(b, 'T', ".reshape", args);
    } else if (below(b, 2)) {
        call(b, 'T', unary[below(b, 7)], x);
    } else {
        const size_t op = below(b, 6);
        pick(b, op == 3 ? 'T' : "TTTNF"[below(b, 5)], y);
        snprintf(args, sizeof args, "%s, %s", x, y);
        call(b, 'T', binary[op], args);
    }
}

/* Small, whatever a loop does with it. */
static void compute_number(block *b)
{
    static const char *const names[] = {"operator.add", "operator.sub", "operator.mul"};
    char x[TEXT];
    char y[TEXT];
    char args[3 * TEXT];
    pick(b, 'N', x);
    pick(b, 'N', y);
    snprintf(args, sizeof args, "%s, %s", x, y);
    call(b, 'N', names[below(b, 3)], args);
    snprintf(args, sizeof args, "%s, 5", b->values[b->n - 1].text);
    b->n--;
    call(b, 'N', "operator.mod", args);
}

static void compute_bool(block *b)
{
    static const char *const names[] = {"operator.lt", "operator.gt", "operator.eq"};
    char x[TEXT];
    char y[TEXT];
    char args[3 * TEXT];
    if (below(b, 4) == 0) {
        pick(b, 'B', x);
        call(b, 'B', "operator.not_", x);
    } else if (below(b, 3) == 0) {
        pick(b, 'T', x);
        call(b, 'X', "torch.sum", x);
        snprintf(args, sizeof args, "%s, 0.25", b->values[b->n - 1].text);
        call(b, 'B', "operator.gt", args);
    } else {
        pick(b, 'N', x);
        pick(b, 'N', y);
        snprintf(args, sizeof args, "%s, %s", x, y);
        call(b, 'B', names[below(b, 3)], args);
    }
}

static void write_tensor(block *b)
{
    static const char *const names[] = {".add_", ".mul_", ".sub_"};
    char x[TEXT];
    char y[TEXT];
    char args[3 * TEXT];
    pick(b, 'T', x);
    pick(b, "TF"[below(b, 2)], y);
    snprintf(args, sizeof args, "%s, %s", x, y);
    call(b, 'T', names[below(b, 3)], args);
}

static void take_item(block *b)
{
    const char kind = "PL"[below(b, 2)];
    const size_t i = below(b, 2);
    char x[TEXT];
    char args[2 * TEXT];
    pick(b, kind, x);
    snprintf(args, sizeof args, "%s, %zu", x, i);
    call(b, kind == 'P' && i == 1 ? 'N' : 'T', "operator.getitem", args);
}

static void repeat(block *b)
{
    char name[TEXT];
    if (b->last[0] == '\0')
        return;
    name_next(b, name);
    put(b, b->last);
    remember(b, b->last_kind, name);
}

static void statements(block *b, size_t n);

/* ---- regions ------------------------------------------------------------------------------- */

/* What goes in: kinds and values. */
typedef struct passed {
    value values[MOST_STATE];
    size_t n;
} passed;

static void pick_passed(block *b, passed *p)
{
    p->n = 1 + below(b, MOST_STATE);
    for (size_t i = 0; i < p->n; i++) {
        p->values[i].kind = i == 0 ? 'T' : any_kind(b);
        pick(b, p->values[i].kind, p->values[i].text);
        if (i > 1 && below(b, 8) == 0)
            p->values[i] = p->values[i - 1];  /* the same twice */
    }
}

static void put_passed(block *b, const passed *p)
{
    put(b, "(");
    for (size_t i = 0; i < p->n; i++) {
        put(b, p->values[i].text);
        put(b, ", ");
    }
    put(b, ")");
}

static void begin_region(block *inner, block *b, const passed *p, bool index)
{
    *inner = (block){.parent = b, .out = b->out, .r = b->r, .names = b->names,
                     .depth = b->depth + 1, .writes = b->writes};
    put(b, "graph {\n");
    for (size_t i = 0; i < p->n + index; i++) {
        char name[TEXT];
        char text[2 * TEXT];
        name_next(inner, name);
        snprintf(text, sizeof text, "placeholder[target=%s]()\n", name + 1);
        put(inner, text);
        remember(inner, index && i == 0 ? 'N' : p->values[i - index].kind, name);
    }
}

static void end_region(block *inner, const char *what)
{
    put(inner, "output(");
    put(inner, what);
    put(inner, ")\n}, ");
}

/* Takes some of the items of the result `name`, maybe from the end. */
static void take_results(block *b, const char *name, const char *result, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char args[2 * TEXT];
        if (below(b, 3) == 0)
            continue;
        snprintf(args, sizeof args, "%s, %d", name, (int)i - (below(b, 5) ? 0 : (int)n));
        call(b, result[i], "operator.getitem", args);
        b->last[0] = '\0';
    }
}

static void put_branch(block *b, const passed *p, const char *result, bool tuple)
{
    block inner;
    char text[MOST_STATE * (TEXT + 2) + 4] = "";
    begin_region(&inner, b, p, false);
    statements(&inner, 1 + below(b, 4));
    for (size_t i = 0; result[i]; i++) {
        char one[TEXT];
        pick(&inner, result[i], one);
        strcat(text, one);
        if (tuple)
            strcat(text, ", ");
    }
    char whole[sizeof text + 4];
    snprintf(whole, sizeof whole, tuple ? "(%s)" : "%s", text);
    end_region(&inner, whole);
}

static void branch(block *b)
{
    passed p;
    char name[TEXT];
    char pred[TEXT];
    char result[MOST_STATE] = "";
    const bool tuple = below(b, 4) > 0;
    const size_t n = tuple ? 1 + below(b, MOST_STATE - 1) : 1;
    for (size_t i = 0; i < n; i++)
        result[i] = any_kind(b);
    pick(b, below(b, 4) ? 'B' : 'N', pred);
    pick_passed(b, &p);
    if (p.n > 1 && below(b, 2)) {  /* for what is decided by the same inside */
        p.values[1].kind = 'B';
        snprintf(p.values[1].text, TEXT, "%s", pred);
    }
    name_next(b, name);
    put(b, "call_function[target=cfx.cond](");
    put(b, pred);
    put(b, ", ");
    put_branch(b, &p, result, tuple);
    put_branch(b, &p, result, tuple);
    put_passed(b, &p);
    put(b, ")\n");
    if (tuple)
        take_results(b, name, result, n);
    else
        remember(b, result[0], name);
}

/* The next state: as it is, or another value of its kind; a counter is one more. */
static void put_next(block *inner, const passed *p, bool index, bool counter)
{
    char text[MOST_STATE * (TEXT + 2) + 8] = "(";
    for (size_t i = 0; i < p->n; i++) {
        char one[TEXT];
        snprintf(one, sizeof one, "%s", inner->values[i + index].text);
        if (counter && i == 1) {
            char args[TEXT + 8];
            snprintf(args, sizeof args, "%s, 1", one);
            call(inner, 'N', "operator.add", args);
            snprintf(one, sizeof one, "%s", inner->values[inner->n - 1].text);
        } else if (below(inner, 3)) {
            pick(inner, p->values[i].kind, one);
        }
        strcat(text, one);
        strcat(text, ", ");
    }
    strcat(text, ")");
    end_region(inner, text);
}

static void put_test(block *b, const passed *p)
{
    block test;
    char args[2 * TEXT];
    begin_region(&test, b, p, false);
    if (below(b, 3) == 0) {
        const bool writes = test.writes;
        test.writes = writes && below(b, 4) == 0;
        statements(&test, 1 + below(b, 2));
    }
    snprintf(args, sizeof args, "%s, %d", test.values[1].text, 1 + (int)below(b, 5));
    call(&test, 'B', "operator.lt", args);
    char last[TEXT];
    snprintf(last, sizeof last, "%s", test.values[test.n - 1].text);
    end_region(&test, last);
}

/* A while_loop counts in its second state, so that it ends. */
static void loop(block *b)
{
    passed p;
    block body;
    char name[TEXT];
    char count[TEXT];
    char result[MOST_STATE + 1];
    const bool counts = below(b, 2);
    do
        pick_passed(b, &p);
    while (!counts && p.n < 2);
    if (!counts) {
        p.values[1].kind = 'N';
        pick(b, 'N', p.values[1].text);
    }
    pick(b, 'N', count);
    name_next(b, name);
    put(b, "call_function[target=cfx.");
    put(b, counts ? "for_loop](" : "while_loop](");
    if (counts) {
        put(b, count);
        put(b, ", ");
    } else {
        put_test(b, &p);
    }
    begin_region(&body, b, &p, counts);
    statements(&body, 1 + below(b, 4));
    put_next(&body, &p, counts, !counts);
    put_passed(b, &p);
    put(b, ")\n");
    for (size_t i = 0; i < p.n; i++)
        result[i] = p.values[i].kind;
    take_results(b, name, result, p.n);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void statements(block *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t which = below(b, 20);
        if (which < 6)
            compute_tensor(b);
        else if (which < 9)
            compute_number(b);
        else if (which < 11)
            compute_bool(b);
        else if (which < 12)
            take_item(b);
        else if (which < 13)
            repeat(b);
        else if (which < 15 && b->writes)
            write_tensor(b);
        else if (b->depth < MOST_DEPTH && below(b, (size_t)b->depth + 1) == 0)
            below(b, 2) ? branch(b) : loop(b);
        else
            compute_tensor(b);
    }
}

cfx_status random_control_text(uint64_t seed, cfx_buffer *text)
{
    static const struct {
        const char *name, *kind;
    } inputs[] = {{"x", "T"}, {"y", "T"}, {"n", "N"}, {"p", "B"}};
    random_source r = {seed * 0x9e3779b97f4a7c15u + 1};
    int names = 0;
    block b = {.out = text, .r = &r, .names = &names, .writes = seed % 2};
    put(&b, "graph():\n");
    for (size_t i = 0; i < 4; i++) {
        char line[TEXT];
        snprintf(line, sizeof line, "%%%s = placeholder[target=%s]()\n", inputs[i].name,
                 inputs[i].name);
        put(&b, line);
        snprintf(line, sizeof line, "%%%s", inputs[i].name);
        remember(&b, inputs[i].kind[0], line);
    }
    statements(&b, 4 + below(&b, 5));
    below(&b, 2) ? branch(&b) : loop(&b);
    statements(&b, 2);
    put(&b, "output((");
    for (size_t i = 0; i < 5; i++) {
        char one[TEXT];
        const char kind = i == 0 ? 'T' : any_kind(&b);
        size_t k = b.n;  /* no new calls here */
        while (k > 0 && b.values[k - 1].kind != kind)
            k--;
        snprintf(one, sizeof one, "%s, ", k ? b.values[k - 1].text : "1");
        put(&b, one);
    }
    put(&b, "))\n");
    return CFX_OK;
}
