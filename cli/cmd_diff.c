/* cmd_diff.c - cfx diff: what differs between two graphs. */
#include "cli.h"

#include <string.h>

enum { DIFF_JSON, DIFF_NAMES, DIFF_ALL };

static const cli_option verb_options[] = {
    [DIFF_JSON] = {"--json", NULL, false, "the differences as JSON", false},
    [DIFF_NAMES] = {"--names", NULL, false, "another name is a difference, too", false},
    [DIFF_ALL] = {"--all", NULL, false, "also show what is the same", false},
    {NULL, NULL, false, NULL, false},
};

typedef struct differ {
    const cli_args *args;
    cfx_sink out;
    cfx_error *err;
    size_t added, removed, changed, moved, renamed, same;
    unsigned ignored;         /* flags that are no difference */
    const cfx_node *owner;    /* whose region the last line was about */
    size_t region;
    size_t listed;            /* JSON: how many so far */
} differ;

static bool is_different(const differ *d)
{
    return d->added || d->removed || d->changed || d->moved ||
           (d->renamed && !(d->ignored & CFX_CHANGE_NAME));
}

/* Counts it, and tells whether it is a difference. */
static bool count(differ *d, const cfx_change *change)
{
    const unsigned small = CFX_CHANGE_NAME | CFX_CHANGE_MOVED;
    d->added += !change->a;
    d->removed += !change->b;
    if (!change->a || !change->b)
        return true;
    d->changed += (change->flags & ~small) != 0;
    d->moved += (change->flags & CFX_CHANGE_MOVED) != 0;
    d->renamed += (change->flags & CFX_CHANGE_NAME) != 0;
    d->same += change->flags == 0;
    return (change->flags & ~d->ignored) != 0;
}

/* ---- text ---------------------------------------------------------------------------------- */

static cfx_status print_flags(unsigned flags)
{
    const char *comma = "";
    printf("  %s# ", cli_ink_on(stdout, CLI_DIM));
    for (unsigned bit = 0; cfx_change_flag_name(bit); bit++)
        if (flags & 1u << bit) {
            printf("%s%s", comma, cfx_change_flag_name(bit));
            comma = ", ";
        }
    printf("%s", cli_ink_on(stdout, CLI_PLAIN));
    return CFX_OK;
}

/* "- %a = call_function[target=torch.neg](%x)", and what differs behind the last line of a pair. */
static cfx_status print_line(const differ *d, const cfx_change *change, char sign, cfx_node *n,
                             unsigned flags)
{
    const cli_ink ink = sign == '-' ? CLI_RED : sign == '+' ? CLI_GREEN
                        : sign == ' ' ? CLI_PLAIN : CLI_YELLOW;
    printf("%*s%s%c ", (int)(2 * change->depth), "", cli_ink_on(stdout, ink), sign);
    cfx_status status = cfx_node_text(n, d->out, d->err);
    if (status != CFX_OK)
        return status;
    printf("%s", cli_ink_on(stdout, CLI_PLAIN));
    if (flags)
        print_flags(flags);
    return d->out.write(d->out.ctx, "\n", 1);
}

/* The nodes of a region come below a line that says which. */
static void print_region(differ *d, const cfx_change *change)
{
    if (change->owner && (change->owner != d->owner || change->region != d->region))
        printf("%*s%sin region %zu of %%%s:%s\n", (int)(2 * change->depth), "",
               cli_ink_on(stdout, CLI_BOLD), change->region + 1,
               cfx_node_name(change->owner, NULL), cli_ink_on(stdout, CLI_PLAIN));
    d->owner = change->owner;
    d->region = change->region;
}

static cfx_status print_change(void *ctx, const cfx_change *change)
{
    differ *d = ctx;
    const unsigned lines = CFX_CHANGE_OPCODE | CFX_CHANGE_TARGET | CFX_CHANGE_ARGS |
                           CFX_CHANGE_KWARGS | CFX_CHANGE_TYPE;
    if (!count(d, change) && !d->args->values[DIFF_ALL])
        return CFX_OK;
    print_region(d, change);
    if (!change->a)
        return print_line(d, change, '+', change->b, 0);
    if (!change->b)
        return print_line(d, change, '-', change->a, 0);
    if (!change->flags)
        return print_line(d, change, ' ', change->a, 0);
    if (!(change->flags & lines))
        return print_line(d, change, '~', change->b, change->flags);
    cfx_status status = print_line(d, change, '-', change->a, 0);
    return status ? status : print_line(d, change, '+', change->b, change->flags);
}

static void print_count(size_t n, const char *what, const char **comma)
{
    if (n)
        printf("%s%zu %s", *comma, n, what);
    *comma = n ? ", " : *comma;
}

/* "2 added, 1 changed, 14 the same" */
static void print_summary(const differ *d)
{
    const char *comma = "";
    print_count(d->added, "added", &comma);
    print_count(d->removed, "removed", &comma);
    print_count(d->changed, "changed", &comma);
    print_count(d->moved, "moved", &comma);
    print_count(d->renamed, "renamed", &comma);
    print_count(d->same, "the same", &comma);
    printf("%s\n", *comma ? "" : "both are empty");
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void json_text(const char *key, const char *text)
{
    printf("\"%s\": ", key);
    cfx_json_write_string(text, strlen(text), cli_stdout());
}

static cfx_status json_node(const differ *d, const char *key, cfx_node *n)
{
    if (!n)
        return CFX_OK;
    printf(", \"%s\": ", key);
    return cfx_codegen_node_json(n, d->out, d->err);
}

static cfx_status json_change(void *ctx, const cfx_change *change)
{
    differ *d = ctx;
    const char *comma = "";
    if (!count(d, change) && !d->args->values[DIFF_ALL])
        return CFX_OK;
    printf("%s\n {\"what\": \"%s\", \"differs\": [", d->listed++ ? "," : "",
           !change->a ? "added" : !change->b ? "removed" : change->flags ? "changed" : "same");
    for (unsigned bit = 0; cfx_change_flag_name(bit); bit++)
        if (change->flags & 1u << bit) {
            printf("%s\"%s\"", comma, cfx_change_flag_name(bit));
            comma = ", ";
        }
    printf("]");
    if (change->owner) {
        printf(", ");
        json_text("owner", cfx_node_name(change->owner, NULL));
        printf(", \"region\": %zu", change->region);
    }
    cfx_status status = json_node(d, "a", change->a);
    status = status ? status : json_node(d, "b", change->b);
    return status ? status : d->out.write(d->out.ctx, "}", 1);
}

static void json_begin(const cli_input *a, const cli_input *b)
{
    printf("{");
    json_text("a", a->name);
    printf(", ");
    json_text("b", b->name);
    printf(", \"changes\": [");
}

static void json_end(const differ *d)
{
    printf("%s], \"same\": %s, \"counts\": {\"added\": %zu, \"removed\": %zu, \"changed\": %zu, "
           "\"moved\": %zu, \"renamed\": %zu, \"same\": %zu}}\n", d->listed ? "\n" : "",
           is_different(d) ? "false" : "true", d->added, d->removed, d->changed, d->moved,
           d->renamed, d->same);
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int compare(differ *d, const cli_input *a, const cli_input *b)
{
    const bool json = d->args->values[DIFF_JSON] != NULL;
    if (json)
        json_begin(a, b);
    cfx_status status = cfx_graph_diff(a->graph, b->graph, json ? json_change : print_change, d,
                                       d->err);
    if (status != CFX_OK) {
        cli_failed(a, d->err);
        return CLI_UNREADABLE;
    }
    if (json)
        json_end(d);
    else
        print_summary(d);
    return is_different(d) ? CLI_BAD_INPUT : CLI_OK;
}

cfx_status cli_print_diff(cfx_graph *a, cfx_graph *b, cfx_error *err)
{
    const cli_args none = {.verb = NULL};
    differ d = {.args = &none, .out = cli_stdout(), .err = err, .ignored = CFX_CHANGE_NAME};
    cfx_status status = cfx_graph_diff(a, b, print_change, &d, err);
    if (status == CFX_OK)
        print_summary(&d);
    return status;
}

static int cmd_diff(const cli_args *args)
{
    cli_input a;
    cli_input b = {.name = args->other};
    cfx_error err = {.status = CFX_OK};
    differ d = {.args = args, .out = cli_stdout(), .err = &err};
    d.ignored = args->values[DIFF_NAMES] ? 0 : CFX_CHANGE_NAME;
    bool good = cli_open(&a, args->file);
    good = cli_open(&b, args->other) && good;  /* both are complained about */
    int code = good ? compare(&d, &a, &b) : CLI_UNREADABLE;
    cli_close(&a);
    cli_close(&b);
    return code;
}

const cli_verb verb_diff = {
    .name = "diff",
    .summary = "show the differences between two graphs",
    .operands = CLI_TWO_FILES,
    .options = verb_options,
    .examples =
        "  cfx diff old.ir new.ir            exits with 0 if they are the same, 1 if not\n"
        "  cfx opt --pass cse model.ir | cfx diff model.ir -\n"
        "  cfx diff --json old.ir new.ir | jq .counts\n",
    .run = cmd_diff,
};
