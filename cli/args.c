/* args.c - the words of the command line: options, files, and what was probably meant. */
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_usage_error(const cli_verb *verb, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "cfx %s: ", verb->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    const char *usage = cli_usage(verb);
    fprintf(stderr, "\nusage: cfx %s%s%s\nSee: cfx help %s\n", verb->name, *usage ? " " : "", usage,
            verb->name);
    return CLI_BAD_USAGE;
}

/* ---- nearest word -------------------------------------------------------------------------- */

const char *cli_nearest(const char *word, const char *const *words, size_t stride, size_t n)
{
    cfx_nearest near;
    cfx_nearest_begin(&near, word);
    for (size_t i = 0; i < n; i++)
        cfx_nearest_add(&near, *(const char *const *)((const char *)words + i * stride));
    return near.best;
}

/* ---- options ------------------------------------------------------------------------------- */

const cli_option cli_common_options[] = {
    {"--color", "auto|always|never", false, "whether to use colours (auto: on a terminal)", false},
    {"--help", NULL, false, "explain this verb, with examples", false},
    {NULL, NULL, false, NULL, false},
};

static size_t count_options(const cli_option *options)
{
    size_t n = 0;
    while (options && options[n].name)
        n++;
    return n;
}

/* `size` is that of the name alone, without "=VALUE". */
static int unknown_option(const cli_verb *verb, const char *word, size_t size)
{
    char name[41];
    char forms[CLI_MAX_FORMS][32];
    char summary[CLI_SUMMARY_SIZE];
    const char *names[CLI_MAX_OPTIONS + 2 + CLI_MAX_FORMS];
    size_t n = 0;
    for (const cli_option *o = verb->options; o && o->name && n < CLI_MAX_OPTIONS; o++)
        names[n++] = o->name;
    for (const cli_option *o = cli_common_options; o->name; o++)
        names[n++] = o->name;
    for (size_t i = 0; verb->generator && i < CLI_MAX_FORMS && cfx_generator_get(i); i++)
        names[n++] = cli_form(verb, cfx_generator_get(i), forms[i], summary).name;
    snprintf(name, sizeof name, "%.*s", size > 40 ? 40 : (int)size, word);
    const char *near = cli_nearest(name, names, sizeof *names, n);
    if (near)
        return cli_usage_error(verb, "there is no option %s; did you mean %s?", name, near);
    return cli_usage_error(verb, "there is no option %s", name);
}

/* The row of an option; `size` is that of its name. Or NULL. */
static const cli_option *find_option(const cli_option *options, const char *word, size_t size)
{
    const size_t n = count_options(options);
    for (size_t i = 0; i < n; i++)
        if (strlen(options[i].name) == size && memcmp(options[i].name, word, size) == 0)
            return &options[i];
    return NULL;
}

static int set_option(const cli_option *option, const char *value, cli_args *args)
{
    const cli_verb *verb = args->verb;
    const size_t i = (size_t)(option - verb->options);
    if (option->repeats) {
        if (args->num_repeated == CLI_MAX_REPEATED)
            return cli_usage_error(verb, "%s is given too many times", option->name);
        args->repeated[args->num_repeated++] = value;
    } else if (args->values[i]) {
        return cli_usage_error(verb, "%s is given twice; give it once", option->name);
    }
    args->values[i] = value ? value : "";
    return CLI_OK;
}

static int set_common(const cli_option *option, const char *value, cli_args *args)
{
    if (!option->value)
        args->help = true;
    else if (!cli_set_colour(value))
        return cli_usage_error(args->verb, "%s must be one of %s, not '%s'", option->name,
                               option->value, value);
    return CLI_OK;
}

/* --dot as --to dot; `size` is that of the name alone. False if it is not the name of a generator,
 * or the verb takes none. */
static bool take_form(const char *word, size_t size, cli_args *args, int *code)
{
    char name[32];
    snprintf(name, sizeof name, "%.*s", size > 31 ? 31 : (int)size, word);
    const bool may_be = args->verb->generator && strncmp(name, "--", 2) == 0;
    const cfx_generator *form = may_be ? cfx_generator_find(name + 2) : NULL;
    const cli_option *option = form ? find_option(args->verb->options, "--to", 4) : NULL;
    if (!option)
        return false;
    const char **value = &args->values[option - args->verb->options];
    *code = CLI_OK;
    if (word[size])
        *code = cli_usage_error(args->verb, "%s takes no value", name);
    else if (*value)
        *code = cli_usage_error(args->verb, "give one of --%s and --%s", *value, form->name);
    *value = form->name;
    return true;
}

/* Whether a value that may be left out is given as a word of its own all the same: --random n=8. A
 * file of that name is a file. */
static bool is_pair(const cli_option *option, const char *word)
{
    return option->may_omit && strchr(option->value, '=') && strchr(word, '=') && word[0] != '-' &&
           access(word, F_OK) != 0;
}

/* Takes the option `word`, and its value from `next` if it needs one. Sets *used to how many
 * words that were. */
static int take_option(const char *word, const char *next, cli_args *args, int *used)
{
    const cli_verb *verb = args->verb;
    word = strcmp(word, "-o") == 0 ? "--output" : word;
    size_t size = strcspn(word, "=");
    const char *value = word[size] ? word + size + 1 : NULL;
    const cli_option *own = find_option(verb->options, word, size);
    const cli_option *option = own ? own : find_option(cli_common_options, word, size);
    int code;
    *used = 1;
    if (!option && take_form(word, size, args, &code))
        return code;
    if (!option)
        return unknown_option(verb, word, size);
    if (!option->value && value)
        return cli_usage_error(verb, "%s takes no value", option->name);
    if (option->value && !option->may_omit && !value) {
        if (!next)
            return cli_usage_error(verb, "%s needs a value: %s %s", option->name, option->name,
                                   option->value);
        value = next;
        *used = 2;
    }
    if (!value && next && is_pair(option, next)) {
        value = next;
        *used = 2;
    }
    return own ? set_option(own, value, args) : set_common(option, value, args);
}

static bool is_option(const char *word) { return word[0] == '-' && word[1] != '\0'; }

bool cli_table_width(const char *given, bool wide, size_t *width)
{
    char *end;
    *width = wide ? 0 : cli_width();
    if (!given)
        return true;
    *width = strtoul(given, &end, 10);
    return *given >= '1' && *given <= '9' && *end == '\0';
}

bool cli_number(const cli_args *args, int option, uint64_t most, uint64_t *out)
{
    const char *text = args->values[option];
    char *end;
    if (!text)
        return true;
    *out = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && *out <= most)
        return true;
    cli_usage_error(args->verb, "%s needs a number, not '%s'", args->verb->options[option].name,
                    text);
    return false;
}

static int take_operand(const char *word, cli_args *args)
{
    const char **slot = NULL;
    switch (args->verb->operands) {
    case CLI_NO_OPERAND:
        break;
    case CLI_ONE_FILE:
        slot = &args->file;
        if (args->file)
            return cli_usage_error(args->verb, "'%s' is a second file; give one at a time", word);
        break;
    case CLI_TWO_FILES:
        slot = args->file ? &args->other : &args->file;
        break;
    case CLI_OPERATOR:
    case CLI_PASS_NAME:
    case CLI_SHELL:
        slot = &args->word;
        break;
    }
    if (!slot || *slot)
        return cli_usage_error(args->verb, "unexpected argument '%s'", word);
    *slot = word;
    return CLI_OK;
}

/* What is not given may be standard input. */
static int check_operands(cli_args *args)
{
    const cli_verb *verb = args->verb;
    if (args->help)
        return CLI_OK;
    if (verb->operands == CLI_TWO_FILES && (!args->file || !args->other))
        return cli_usage_error(verb, "two files are needed; one may be - for standard input");
    if (verb->operands == CLI_TWO_FILES && strcmp(args->file, "-") == 0 &&
        strcmp(args->other, "-") == 0)
        return cli_usage_error(verb, "only one of the two files can be standard input");
    if (verb->operands == CLI_SHELL && !args->word)
        return cli_usage_error(verb, "no shell is given; choose bash, zsh or fish");
    if (verb->operands != CLI_ONE_FILE || args->file)
        return CLI_OK;
    if (isatty(STDIN_FILENO))
        return cli_usage_error(verb, "no file is given; give its name, or - for standard input");
    args->file = "-";
    return CLI_OK;
}

int cli_parse(const cli_verb *verb, int argc, char **argv, cli_args *args)
{
    bool options = true;
    int used = 1;
    *args = (cli_args){.verb = verb};
    for (int i = 0; i < argc; i += used) {
        const char *word = argv[i];
        int status = CLI_OK;
        used = 1;
        if (options && strcmp(word, "--") == 0)
            options = false;
        else if (options && strcmp(word, "-h") == 0)
            args->help = true;
        else if (options && is_option(word))
            status = take_option(word, i + 1 < argc ? argv[i + 1] : NULL, args, &used);
        else
            status = take_operand(word, args);
        if (status != CLI_OK)
            return status;
    }
    return check_operands(args);
}
