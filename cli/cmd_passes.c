/* cmd_passes.c - cfx passes: lists the passes, or explains one. */
#include "cli.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { PASSES_JSON };

static const cli_option verb_options[] = {
    [PASSES_JSON] = {"--json", NULL, false, "everything, as JSON", false},
    {NULL, NULL, false, NULL, false},
};

int cli_unknown_pass(const cli_args *args, const char *name)
{
    enum { MOST = 64 };
    const char *names[MOST];
    size_t n = 0;
    for (const cfx_pass *pass; n < MOST && (pass = cfx_pass_get(n)) != NULL; n++)
        names[n] = pass->name;
    const char *near = cli_nearest(name, names, sizeof *names, n);
    if (near)
        return cli_usage_error(args->verb, "there is no pass '%s'; did you mean %s?", name, near);
    return cli_usage_error(args->verb, "there is no pass '%s'; cfx passes lists them", name);
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

/* The names of set bits, in lower case, as a list. */
static void json_flags(const char *key, unsigned bits, const char *(*name_of)(unsigned bit))
{
    const char *comma = "";
    printf(", \"%s\": [", key);
    for (unsigned bit = 0; name_of(bit); bit++) {
        if (!(bits & 1u << bit))
            continue;
        printf("%s\"", comma);
        for (const char *p = name_of(bit); *p; p++)
            putchar(tolower((unsigned char)*p));
        printf("\"");
        comma = ", ";
    }
    printf("]");
}

static void json_pass(const cfx_pass *pass)
{
    char words[CFX_PASS_WORDS_SIZE];
    json_field(true, "name", pass->name);
    json_field(false, "summary", pass->summary);
    json_field(false, "needs", cfx_pass_needs_words(pass->needs, words));
    json_field(false, "keeps", cfx_pass_keeps_words(pass->keeps, words));
    json_flags("needs_flags", pass->needs, cfx_pass_need_name);
    json_flags("keeps_flags", pass->keeps, cfx_pass_keep_name);
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

static int cmd_passes(const cli_args *args)
{
    size_t width = 0;
    char words[CFX_PASS_WORDS_SIZE];
    const cfx_pass *one = args->word ? cfx_pass_find(args->word) : NULL;
    if (args->word && !one)
        return cli_unknown_pass(args, args->word);
    if (args->values[PASSES_JSON])
        return json_passes(one);
    if (one) {
        printf("%s: %s\n\nneeds  %s\n", one->name, one->summary,
               cfx_pass_needs_words(one->needs, words));
        printf("keeps  %s\n", cfx_pass_keeps_words(one->keeps, words));
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

const cli_verb verb_passes = {
    .name = "passes",
    .summary = "list the passes that opt can run, or explain one",
    .operands = CLI_PASS_NAME,
    .options = verb_options,
    .examples =
        "  cfx passes\n  cfx passes fuse_bn                what it needs and what it preserves\n  "
        "cfx passes --json\n",
    .run = cmd_passes,
};
