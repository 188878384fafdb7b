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
    fprintf(stderr, "\nusage: cfx %s%s%s\nSee: cfx help %s\n", verb->name, *verb->usage ? " " : "",
            verb->usage, verb->name);
    return CLI_BAD_USAGE;
}

/* ---- nearest word -------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* How many letters to insert, drop, change or swap with their neighbour; words are short. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 40 };
    size_t rows[3][MAX + 1];
    size_t m = strlen(a);
    size_t n = strlen(b);
    if (m > MAX || n > MAX)
        return MAX;
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        const size_t *two_up = rows[(i + 1) % 3];
        const size_t *up = rows[(i + 2) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            row[j] = least(least(up[j], row[j - 1]) + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two_up[j - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

const char *cli_nearest(const char *word, const char *const *words, size_t stride, size_t n)
{
    const char *best = NULL;
    size_t size = strlen(word);
    size_t limit = size > 5 ? size / 3 + 1 : 2; /* what is nearer than that is near */
    for (size_t i = 0; i < n; i++) {
        const char *other = *(const char *const *)((const char *)words + i * stride);
        size_t d = size > 2 && strncmp(word, other, size) == 0 ? 1 : distance(word, other);
        if (d < limit) {
            best = other;
            limit = d;
        }
    }
    return best;
}

/* ---- options ------------------------------------------------------------------------------- */

static size_t count_options(const cli_verb *verb)
{
    size_t n = 0;
    while (verb->options && verb->options[n].name)
        n++;
    return n;
}

/* `size` is that of the name alone, without "=VALUE". */
static int unknown_option(const cli_verb *verb, const char *word, size_t size)
{
    char name[41];
    snprintf(name, sizeof name, "%.*s", size > 40 ? 40 : (int)size, word);
    const char *near = verb->options ? cli_nearest(name, &verb->options->name, sizeof(cli_option),
                                                   count_options(verb))
                                     : NULL;
    if (near)
        return cli_usage_error(verb, "there is no option %s; did you mean %s?", name, near);
    return cli_usage_error(verb, "there is no option %s", name);
}

/* Takes the option `word`, and its value from `next` if it needs one. Sets *used to how many
 * words that were. */
static int take_option(const char *word, const char *next, cli_args *args, int *used)
{
    const cli_verb *verb = args->verb;
    size_t size = strcspn(word, "=");
    const char *value = word[size] ? word + size + 1 : NULL;
    size_t n = count_options(verb);
    size_t i = 0;
    while (i < n && (strlen(verb->options[i].name) != size ||
                     memcmp(verb->options[i].name, word, size) != 0))
        i++;
    if (i == n)
        return unknown_option(verb, word, size);
    const cli_option *option = &verb->options[i];
    *used = 1;
    if (!option->value && value)
        return cli_usage_error(verb, "%s takes no value", option->name);
    if (option->value && !option->may_omit && !value) {
        if (!next)
            return cli_usage_error(verb, "%s needs a value: %s %s", option->name, option->name,
                                   option->value);
        value = next;
        *used = 2;
    }
    if (option->repeats) {
        if (args->num_repeated == CLI_MAX_REPEATED)
            return cli_usage_error(verb, "%s is given too often", option->name);
        args->repeated[args->num_repeated++] = value;
    } else if (args->values[i]) {
        return cli_usage_error(verb, "%s is given twice; give it once", option->name);
    }
    args->values[i] = value ? value : "";
    return CLI_OK;
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

/* A verb takes a FILE, a [NAME], or nothing. */
static int take_file(const char *word, cli_args *args)
{
    if (strstr(args->verb->usage, "[NAME]") && !args->word) {
        args->word = word;
        return CLI_OK;
    }
    if (!strstr(args->verb->usage, "FILE"))
        return cli_usage_error(args->verb, "'%s' is one word too many", word);
    if (args->file)
        return cli_usage_error(args->verb, "'%s' is a second file; give one at a time", word);
    args->file = word;
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
        else if (options && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0))
            args->help = true;
        else if (options && is_option(word))
            status = take_option(word, i + 1 < argc ? argv[i + 1] : NULL, args, &used);
        else
            status = take_file(word, args);
        if (status != CLI_OK)
            return status;
    }
    if (args->help || args->file || !strstr(verb->usage, "FILE"))
        return CLI_OK;
    if (isatty(STDIN_FILENO))
        return cli_usage_error(verb, "which file? Give its name, or - for standard input");
    args->file = "-";
    return CLI_OK;
}
