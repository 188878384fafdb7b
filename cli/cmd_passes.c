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

int cli_bad_pass(const cli_args *args, const cfx_pass_step *step, const cfx_error *err)
{
    const bool advised = step->pass || strchr(err->message, ';');
    return cli_usage_error(args->verb, "%s%s", err->message,
                           advised ? "" : "; cfx passes lists them");
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void json_text(cfx_json *j, const char *key, const char *text)
{
    cfx_json_field(j, key);
    cfx_json_text(j, text);
}

/* The names of set bits, in lower case, as a list. */
static void json_flags(cfx_json *j, const char *key, unsigned bits,
                       const char *(*name_of)(unsigned bit))
{
    cfx_json_field(j, key);
    cfx_json_open(j, '[');
    for (unsigned bit = 0; name_of(bit); bit++) {
        char word[CFX_PASS_WORDS_SIZE];
        size_t size = 0;
        if (!(bits & 1u << bit))
            continue;
        for (const char *p = name_of(bit); *p && size < sizeof word; p++)
            word[size++] = (char)tolower((unsigned char)*p);
        cfx_json_string(j, word, size);
    }
    cfx_json_close(j, ']');
}

static void json_options(cfx_json *j, const cfx_pass *pass)
{
    const cfx_pass_option *option;
    cfx_json_field(j, "options");
    cfx_json_open(j, '{');
    for (size_t i = 0; (option = cfx_pass_get_option(pass, i)) != NULL; i++) {
        cfx_json_field(j, option->name);
        if (option->is_flag)
            cfx_json_bool(j, option->default_value);
        else
            cfx_json_uint(j, option->default_value);
    }
    cfx_json_close(j, '}');
}

static void json_pass(cfx_json *j, const cfx_pass *pass)
{
    char words[CFX_PASS_WORDS_SIZE];
    cfx_json_open(j, '{');
    json_text(j, "name", pass->name);
    json_text(j, "summary", pass->summary);
    json_text(j, "needs", cfx_pass_needs_words(pass->needs, words));
    json_text(j, "keeps", cfx_pass_keeps_words(pass->keeps, words));
    json_flags(j, "needs_flags", pass->needs, cfx_pass_need_name);
    json_flags(j, "keeps_flags", pass->keeps, cfx_pass_keep_name);
    json_options(j, pass);
    cfx_json_close(j, '}');
}

static void json_passes(cfx_json *j)
{
    cfx_json_open(j, '[');
    for (size_t i = 0; cfx_pass_get(i); i++) {
        if (i > 0)
            cfx_json_line(j);
        json_pass(j, cfx_pass_get(i));
    }
    cfx_json_close(j, ']');
}

static int print_json(const cfx_pass *only)
{
    cfx_json j;
    cfx_json_begin(&j, cli_stdout(), false);
    if (only)
        json_pass(&j, only);
    else
        json_passes(&j);
    printf("\n");
    return j.status ? CLI_BAD_INPUT : CLI_OK;
}

/* ---- the verb ------------------------------------------------------------------------------ */

/* What an option is if it is not given. Good until the next call. */
static const char *default_text(const cfx_pass_option *option)
{
    static char text[24];
    if (option->is_flag)
        return option->default_value ? "true" : "false";
    snprintf(text, sizeof text, "%llu", (unsigned long long)option->default_value);
    return text;
}

static void print_options(const cfx_pass *pass)
{
    const cfx_pass_option *option;
    for (size_t i = 0; (option = cfx_pass_get_option(pass, i)) != NULL; i++)
        printf("%s%-7s  %s (%s): %s\n", i ? "" : "\n", i ? "" : "options", option->name,
               default_text(option), option->summary);
}

static int cmd_passes(const cli_args *args)
{
    size_t width = 0;
    char words[CFX_PASS_WORDS_SIZE];
    cfx_pass_step step = {.pass = NULL};
    cfx_error err = {.status = CFX_OK};
    const char *list = args->word;
    if (list && cfx_pass_list_next(&list, &step, &err) != CFX_OK)
        return cli_bad_pass(args, &step, &err);
    const cfx_pass *one = step.pass;
    if (args->values[PASSES_JSON])
        return print_json(one);
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
