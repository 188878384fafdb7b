/* pass_table.c - the table of passes, and running one. */
#include "pass_impl.h"
#include "pass_kept_impl.h"

#include <stddef.h>
#include <stdio.h>

/* The flags as pass.def writes them. */
enum {
#define CFX_PASS_NEED(id, words) NEEDS_##id = CFX_PASS_NEEDS_##id,
#define CFX_PASS_KEEP(id, words) KEEPS_##id = CFX_PASS_KEEPS_##id,
#include <cfx/pass_flag.def>
    NOTHING = 0
};

static const cfx_pass passes[] = {
#define CFX_PASS(name, summary, needs, keeps) {#name, summary, needs, keeps, cfxi_pass_##name},
#include "pass.def"
#undef CFX_PASS
};

enum { PASS_COUNT = sizeof passes / sizeof *passes };

const cfx_pass *cfx_pass_get(size_t i) { return i < PASS_COUNT ? &passes[i] : NULL; }

const cfx_pass *cfx_pass_find(const char *name)
{
    for (size_t i = 0; i < PASS_COUNT; i++)
        if (strcmp(passes[i].name, name) == 0)
            return &passes[i];
    return NULL;
}

/* ---- what passes need and keep ------------------------------------------------------------- */

typedef struct pass_flag {
    const char *name;
    const char *words;
} pass_flag;

static const pass_flag need_flags[] = {
#define CFX_PASS_NEED(id, words) {#id, words},
#include <cfx/pass_flag.def>
};

static const pass_flag keep_flags[] = {
#define CFX_PASS_KEEP(id, words) {#id, words},
#include <cfx/pass_flag.def>
};

const char *cfx_pass_need_name(unsigned bit)
{
    return bit < CFX_PASS_NEED_COUNT ? need_flags[bit].name : NULL;
}

const char *cfx_pass_keep_name(unsigned bit)
{
    return bit < CFX_PASS_KEEP_COUNT ? keep_flags[bit].name : NULL;
}

/* Appends `size` bytes; what does not fit is cut. */
static void add(char *out, const char *text)
{
    const size_t used = strlen(out);
    snprintf(out + used, CFX_PASS_WORDS_SIZE - used, "%s", text);
}

/* Appends the words of `bits`, with `comma` between them and `last` before the last. */
static void add_words(char *out, const pass_flag *flags, unsigned bits, const char *comma,
                      const char *last)
{
    const char *between = "";
    for (unsigned bit = 0; bits; bit++) {
        if (!(bits & 1u << bit))
            continue;
        bits &= ~(1u << bit);
        add(out, *between && !bits ? last : between);
        add(out, flags[bit].words);
        between = comma;
    }
}

const char *cfx_pass_needs_words(unsigned needs, char out[CFX_PASS_WORDS_SIZE])
{
    out[0] = '\0';
    add_words(out, need_flags, needs & ((1u << CFX_PASS_NEED_COUNT) - 1), "; ", "; ");
    if (!out[0])
        add(out, "nothing");
    return out;
}

const char *cfx_pass_keeps_words(unsigned keeps, char out[CFX_PASS_WORDS_SIZE])
{
    const unsigned of_nodes = keeps & (CFX_PASS_KEEPS_NODES - 1u);
    const unsigned rest = keeps & ((1u << CFX_PASS_KEEP_COUNT) - 1) & ~of_nodes;
    const bool all = rest & CFX_PASS_KEEPS_NODES;
    out[0] = '\0';
    add_words(out, keep_flags, of_nodes, ", ", " and ");
    if (of_nodes)
        add(out, all ? " of all nodes" : " of the nodes that stay");
    const unsigned others = of_nodes ? rest & ~(unsigned)CFX_PASS_KEEPS_NODES : rest;
    if (of_nodes && others)
        add(out, "; ");
    add_words(out, keep_flags, others, "; ", "; ");
    if (!out[0])
        add(out, "nothing");
    return out;
}

/* ---- options by name ----------------------------------------------------------------------- */

enum { COUNT, FLAG };

static const cfx_pass_option options[] = {
#define CFX_PASS_OPTION(pass, name, kind, otherwise, summary)                                      \
    {#pass, #name, summary, (kind) == FLAG, offsetof(cfx_##pass##_options, name), otherwise},
#include "pass_option.def"
#undef CFX_PASS_OPTION
};

enum { OPTION_COUNT = sizeof options / sizeof *options };

const cfx_pass_option *cfx_pass_get_option(const cfx_pass *pass, size_t i)
{
    for (size_t k = 0; pass && k < OPTION_COUNT; k++)
        if (strcmp(options[k].pass, pass->name) == 0 && i-- == 0)
            return &options[k];
    return NULL;
}

/* Room for the options of any pass that has some here. */
typedef union option_room {
    char bytes[1];
#define CFX_PASS_OPTION(pass, name, kind, otherwise, summary)                                      \
    cfx_##pass##_options pass##_##name;
#include "pass_option.def"
#undef CFX_PASS_OPTION
} option_room;

static void set_option(option_room *room, const cfx_pass_option *option, uint64_t value)
{
    const bool flag = value != 0;
    const size_t count = value > SIZE_MAX ? SIZE_MAX : (size_t)value;
    if (option->is_flag)
        memcpy(room->bytes + option->offset, &flag, sizeof flag);
    else
        memcpy(room->bytes + option->offset, &count, sizeof count);
}

static cfx_status apply(option_room *room, const cfx_pass *pass, const cfx_pass_setting *s,
                        cfx_error *err)
{
    const cfx_pass_option *option;
    for (size_t i = 0; (option = cfx_pass_get_option(pass, i)) != NULL; i++)
        if (strcmp(option->name, s->name) == 0)
            break;
    if (!option)
        return cfx_error_set(err, CFX_E_KEY, "the pass %s has no option '%.60s'", pass->name,
                             s->name);
    if (option->is_flag && s->value > 1)
        return cfx_error_set(err, CFX_E_VALUE, "the option %s of the pass %s is a flag; it must be "
                             "0 or 1",
                             option->name, pass->name);
    set_option(room, option, s->value);
    return CFX_OK;
}

cfx_status cfx_pass_run_with(const cfx_pass *pass, cfx_graph *g, const cfx_module_tree *modules,
                             const cfx_pass_setting *settings, size_t n, bool *changed,
                             cfx_error *err)
{
    option_room room;
    const cfx_pass_option *option;
    CFX_TRY(cfxi_base_expect(pass, "pass", err));
    memset(&room, 0, sizeof room);
    for (size_t i = 0; (option = cfx_pass_get_option(pass, i)) != NULL; i++)
        set_option(&room, option, option->default_value);
    for (size_t i = 0; i < n; i++)
        CFX_TRY(apply(&room, pass, &settings[i], err));
    return cfx_pass_run(pass, g, modules, n ? &room : NULL, changed, err);
}

/* ---- running ------------------------------------------------------------------------------- */

cfx_status cfx_pass_run(const cfx_pass *pass, cfx_graph *g, const cfx_module_tree *modules,
                        const void *opts, bool *changed, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(pass, "pass", err));
    CFX_TRY(cfxi_base_expect(g, "graph", err));
#ifdef NDEBUG
    return pass->run(g, modules, opts, changed, err);
#else
    return cfxi_pass_run_checked(pass, g, modules, opts, changed, err);
#endif
}
