/* cmd_opt.c - cfx opt: runs passes over a graph; cfx passes: lists them. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_PASS, OPT_DUMP };

const cli_option opt_options[] = {
    [OPT_PASS] = {"--pass", "A,B,...", false, "the passes to run: NAME, NAME=N, NAME:OPTION=N"},
    [OPT_DUMP] = {"--dump-after", "PASS", true, "print the graph to stderr after PASS or each"},
    {NULL, NULL, false, NULL},
};

/* ---- names of passes ----------------------------------------------------------------------- */

enum { MAX_PASSES = 64 };

enum { MAX_SETTINGS = 8 };

/* A pass, and options that it is given. */
typedef struct step {
    const cfx_pass *pass;
    cfx_pass_setting settings[MAX_SETTINGS];
    size_t n;
} step;

typedef struct plan {
    step steps[MAX_PASSES];
    size_t n;
} plan;

const cli_option passes_options[] = {
    {"--json", NULL, false, "everything, as JSON", false},
    {NULL, NULL, false, NULL, false},
};

static int unknown_pass(const cli_args *args, const char *name)
{
    const char *names[MAX_PASSES];
    size_t n = 0;
    for (const cfx_pass *pass; n < MAX_PASSES && (pass = cfx_pass_get(n)) != NULL; n++)
        names[n] = pass->name;
    const char *near = cli_nearest(name, names, sizeof *names, n);
    if (near)
        return cli_usage_error(args->verb, "there is no pass '%s'; did you mean %s?", name, near);
    return cli_usage_error(args->verb, "there is no pass '%s'; cfx passes lists them", name);
}

static int unknown_option(const cli_args *args, const cfx_pass *pass, const char *name)
{
    char all[200] = "";
    const cfx_pass_option *option;
    for (size_t i = 0; (option = cfx_pass_get_option(pass, i)) != NULL; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", option->name);
    if (!all[0])
        return cli_usage_error(args->verb, "the pass %s has no options", pass->name);
    return cli_usage_error(args->verb, "the pass %s has no option '%s'; it has %s", pass->name,
                           name, all);
}

/* A number, or nothing, which switches a flag on. */
static bool read_number(const char *text, const cfx_pass_option *option, uint64_t *value)
{
    char *end = NULL;
    *value = 1;
    if (!text)
        return option->is_flag;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return *end == '\0' && errno == 0 && (!option->is_flag || *value < 2);
}

/* "max_turns=4", or of the first option "4" alone. */
static int read_setting(const cli_args *args, step *s, char *text, bool unnamed)
{
    char *value = unnamed ? text : strchr(text, '=');
    const cfx_pass_option *option = NULL;
    if (value && !unnamed)
        *value++ = '\0';
    for (size_t i = 0; (option = cfx_pass_get_option(s->pass, i)) != NULL; i++)
        if (unnamed || strcmp(option->name, text) == 0)
            break;
    if (!option)
        return unknown_option(args, s->pass, text);
    if (s->n == MAX_SETTINGS)
        return cli_usage_error(args->verb, "more than %d options", MAX_SETTINGS);
    cfx_pass_setting *setting = &s->settings[s->n++];
    setting->name = option->name;
    if (read_number(value, option, &setting->value))
        return CLI_OK;
    return cli_usage_error(args->verb, "the option %s of the pass %s is a %s, not '%s'",
                           option->name, s->pass->name, option->is_flag ? "flag: 0 or 1" : "number",
                           value ? value : "");
}

/* "unroll", "unroll=4", "unroll:max_turns=4:max_nodes=99" */
static int read_step(const cli_args *args, step *s, char *text)
{
    char *colon = strchr(text, ':');
    int code = CLI_OK;
    if (colon)
        *colon = '\0';
    char *value = strchr(text, '=');
    if (value)
        *value++ = '\0';
    s->n = 0;
    s->pass = cfx_pass_find(text);
    if (!s->pass)
        return unknown_pass(args, text);
    if (value)
        code = read_setting(args, s, value, true);
    for (char *next; colon && code == CLI_OK; colon = next) {
        next = strchr(colon + 1, ':');
        if (next)
            *next = '\0';
        code = read_setting(args, s, colon + 1, false);
    }
    return code;
}

/* Fills the plan from "a,b=2,c:x=1". */
static int read_plan(const cli_args *args, plan *p)
{
    char text[201];
    const char *list = args->values[OPT_PASS];
    p->n = 0;
    if (!list)
        return cli_usage_error(args->verb, "which pass? Give --pass; cfx passes lists them");
    for (;;) {
        const size_t size = strcspn(list, ",");
        snprintf(text, sizeof text, "%.*s", size > 200 ? 200 : (int)size, list);
        if (p->n == MAX_PASSES)
            return cli_usage_error(args->verb, "more than %d passes", MAX_PASSES);
        const int code = read_step(args, &p->steps[p->n++], text);
        if (code != CLI_OK || !list[size])
            return code;
        list += size + 1;
    }
}

static int check_dump(const cli_args *args, const plan *p)
{
    const char *dump = args->values[OPT_DUMP];
    if (!dump || !*dump)
        return CLI_OK;
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->steps[i].pass->name, dump) == 0)
            return CLI_OK;
    if (!cfx_pass_find(dump))
        return unknown_pass(args, dump);
    return cli_usage_error(args->verb, "--dump-after=%s, but %s is not among the passes to run",
                           dump, dump);
}

/* ---- running ------------------------------------------------------------------------------- */

/* IR text has names of modules, but no modules: who asked for more than that shall know. */
static void note_idle(const cfx_pass *pass)
{
    if (strncmp(pass->needs, "the ", 4) == 0)
        fprintf(stderr, "cfx opt: %s changed nothing: it needs %.*s, which IR text does not have; "
                        "run it from C or Python\n",
                pass->name, (int)strcspn(pass->needs, ","), pass->needs);
}

static cfx_status run_pass(const cli_args *args, const step *s, const cli_input *in,
                           cfx_error *err)
{
    const cfx_pass *pass = s->pass;
    const char *dump = args->values[OPT_DUMP];
    size_t before = cfx_graph_size(in->graph);
    bool changed = false;
    cli_progress(pass->name, in->size);
    cli_working(pass->name);
    cfx_status status = cfx_pass_run_with(pass, in->graph, NULL, s->settings, s->n, &changed, err);
    cli_progress_end();
    if (status == CFX_OK && !changed)
        note_idle(pass);
    if (status || !dump || (*dump && strcmp(dump, pass->name) != 0))
        return status;
    fprintf(stderr, "# after %s: %s, %zu -> %zu nodes\n", pass->name,
            changed ? "changed" : "unchanged", before, cfx_graph_size(in->graph));
    return cfx_graph_text(in->graph, cli_stderr(), err);
}

/* Shows all that is wrong with the graph, unless the first pass does not mind. */
static bool is_fit(const plan *p, cli_input *in)
{
    return strncmp(p->steps[0].pass->needs, "nothing", 7) == 0 ||
           cli_findings(in, cfx_graph_lint) == 0;
}

int cmd_opt(const cli_args *args)
{
    plan p;
    cli_input in;
    cfx_error err = {.status = CFX_OK};
    int code = read_plan(args, &p);
    if (code == CLI_OK)
        code = check_dump(args, &p);
    if (code != CLI_OK)
        return code;
    if (!cli_open(&in, args->file)) {
        code = CLI_UNREADABLE;
    } else if (!is_fit(&p, &in)) {
        code = CLI_BAD_INPUT;
    } else {
        cfx_status status = CFX_OK;
        for (size_t i = 0; i < p.n && status == CFX_OK; i++)
            status = run_pass(args, &p.steps[i], &in, &err);
        if (status == CFX_OK)
            status = cfx_graph_text(in.graph, cli_stdout(), &err);
        if (status != CFX_OK)
            code = cli_failed(&in, &err);
    }
    cli_close(&in);
    return code;
}

static void json_field(bool first, const char *key, const char *text)
{
    printf("%s\"%s\": ", first ? "{" : ", ", key);
    cfx_json_write_string(text, strlen(text), cli_stdout());
}

/* What an option is if it is not given. Good until the next call. */
static const char *json_default(const cfx_pass_option *option)
{
    static char text[24];
    if (option->is_flag)
        return option->default_value ? "true" : "false";
    snprintf(text, sizeof text, "%llu", (unsigned long long)option->default_value);
    return text;
}

static void json_pass(const cfx_pass *pass)
{
    json_field(true, "name", pass->name);
    json_field(false, "summary", pass->summary);
    json_field(false, "needs", pass->needs);
    json_field(false, "keeps", pass->keeps);
    printf(", \"options\": {");
    const cfx_pass_option *option;
    for (size_t i = 0; (option = cfx_pass_get_option(pass, i)) != NULL; i++)
        printf("%s\"%s\": %s", i ? ", " : "", option->name, json_default(option));
    printf("}}");
}

static int json_passes(const cfx_pass *only)
{
    if (only) {
        json_pass(only);
        printf("\n");
        return CLI_OK;
    }
    for (size_t i = 0; cfx_pass_get(i); i++) {
        printf(i == 0 ? "[" : ",\n ");
        json_pass(cfx_pass_get(i));
    }
    printf("]\n");
    return CLI_OK;
}

static void print_options(const cfx_pass *pass)
{
    const cfx_pass_option *option;
    for (size_t i = 0; (option = cfx_pass_get_option(pass, i)) != NULL; i++)
        printf("%s%-7s  %s (%s): %s\n", i ? "" : "\n", i ? "" : "options", option->name,
               json_default(option), option->summary);
}

int cmd_passes(const cli_args *args)
{
    size_t width = 0;
    const cfx_pass *one = args->word ? cfx_pass_find(args->word) : NULL;
    if (args->word && !one)
        return unknown_pass(args, args->word);
    if (args->values[0])
        return json_passes(one);
    if (one) {
        printf("%s: %s\n\nneeds  %s\nkeeps  %s\n", one->name, one->summary, one->needs, one->keeps);
        print_options(one);
        return CLI_OK;
    }
    for (size_t i = 0; cfx_pass_get(i); i++)
        width = strlen(cfx_pass_get(i)->name) > width ? strlen(cfx_pass_get(i)->name) : width;
    for (size_t i = 0; cfx_pass_get(i); i++)
        printf("%s%-*s%s  %s\n", cli_ink_on(stdout, CLI_BOLD), (int)width, cfx_pass_get(i)->name,
               cli_ink_on(stdout, CLI_PLAIN), cfx_pass_get(i)->summary);
    return CLI_OK;
}
