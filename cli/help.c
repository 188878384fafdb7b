/* help.c - what the command says of itself: its help and its manual page, from the table of verbs.
 */
#include "cli.h"

#include <string.h>

static const char introduction[] =
    "Reads a graph as IR text from FILE; - or no FILE means standard input.";

static const struct {
    int code;
    const char *meaning;
} codes[] = {
    {CLI_OK, "success; check: the graph is well formed; diff: no differences"},
    {CLI_BAD_INPUT, "failure; check: the graph is not well formed; diff: there are differences"},
    {CLI_BAD_USAGE, "the command line is wrong"},
    {CLI_UNREADABLE, "a file cannot be read or is not IR text"},
};

/* ---- help ---------------------------------------------------------------------------------- */

/* Writes words in lines of `width` columns that begin at `indent`; 0: in one line. */
static void wrap(FILE *out, const char *text, size_t indent, size_t width)
{
    size_t at = indent;
    while (*text) {
        const size_t word = strcspn(text, " ");
        if (width > indent + 10 && at > indent && at + 1 + word > width) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
        }
        at += (size_t)fprintf(out, "%s%.*s", at > indent ? " " : "", (int)word, text);
        text += word + (text[word] == ' ');
    }
    fprintf(out, "\n");
}

static void entry(FILE *out, const char *name, const char *summary)
{
    fprintf(out, "  %s%-12s%s", cli_ink_on(out, CLI_BOLD), name, cli_ink_on(out, CLI_PLAIN));
    wrap(out, summary, 14, cli_width());
}

int cli_help(FILE *out, int code)
{
    fprintf(out, "usage: cfx VERB [OPTION...] [FILE]\n\n");
    wrap(out, introduction, 0, cli_width());
    fprintf(out, "\n");
    for (size_t i = 0; cli_verb_at(i); i++)
        entry(out, cli_verb_at(i)->name, cli_verb_at(i)->summary);
    entry(out, "help", "explain a verb, with examples: cfx help show");
    entry(out, "--version", "print the version");
    fprintf(out, "\nExit status:\n");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        fprintf(out, "  %d  ", codes[i].code);
        wrap(out, codes[i].meaning, 5, cli_width());
    }
    return code;
}

/* "--dump-after[=PASS]" */
static const char *option_words(const cli_option *option, char out[48])
{
    const char *before = option->may_omit ? "[=" : option->value ? " " : "";
    snprintf(out, 48, "%s%s%s%s", option->name, before, option->value ? option->value : "",
             option->may_omit ? "]" : "");
    return out;
}

const char *cli_summary(const cli_option *option, char out[CLI_SUMMARY_SIZE])
{
    static const struct {
        const char *word;
        cfx_content content;
    } lists[] = {{"{tensor}", CFX_CONTENT_TENSOR}, {"{tensors}", CFX_CONTENT_TENSORS}};
    char list[CFX_FILE_FORMAT_LIST_SIZE];
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const char *at = strstr(option->summary, lists[i].word);
        if (!at)
            continue;
        snprintf(out, CLI_SUMMARY_SIZE, "%.*s%s%s", (int)(at - option->summary), option->summary,
                 cfx_file_format_list(lists[i].content, list), at + strlen(lists[i].word));
        return out;
    }
    return option->summary;
}

cli_option cli_form(const cli_verb *verb, const cfx_generator *generator, char name[32],
                    char summary[CLI_SUMMARY_SIZE])
{
    const bool is_default = strcmp(verb->generator, generator->name) == 0;
    snprintf(name, 32, "--%s", generator->name);
    snprintf(summary, CLI_SUMMARY_SIZE, "%s%s", generator->summary,
             is_default ? " (the default)" : "");
    return (cli_option){.name = name, .summary = summary};
}

static void print_option(const cli_option *option)
{
    enum { PLAIN_WIDTH = 80 };  /* of a file: what is longer are lists of the tables */
    char words[48];
    char summary[CLI_SUMMARY_SIZE];
    option_words(option, words);
    if (strlen(words) > 20)
        printf("  %s\n  %-22s", words, "");
    else
        printf("  %-22s", words);
    wrap(stdout, cli_summary(option, summary), 24, cli_width() ? cli_width() : PLAIN_WIDTH);
}

static void print_options(const cli_option *options)
{
    for (; options && options->name; options++)
        print_option(options);
}

static void print_forms(const cli_verb *verb)
{
    char name[32];
    char summary[CLI_SUMMARY_SIZE];
    printf("\nforms, as --to NAME or as --NAME:\n");
    for (size_t i = 0; cfx_generator_get(i); i++) {
        const cli_option form = cli_form(verb, cfx_generator_get(i), name, summary);
        print_option(&form);
    }
}

/* ---- usage --------------------------------------------------------------------------------- */

enum { USAGE_SIZE = 600, USAGE_WIDTH = 78 };

/* Appends a word, on a new line below the first if it does not fit. */
static void add_usage(char *out, const cli_verb *verb, const char *word, size_t *column)
{
    const size_t used = strlen(out);
    const int indent = (int)strlen("usage: cfx ") + (int)strlen(verb->name) + 1;
    const bool wraps = used && *column + 1 + strlen(word) > USAGE_WIDTH;
    if (!used || wraps)
        *column = (size_t)indent;
    snprintf(out + used, USAGE_SIZE - used, "%s%*s%s", wraps ? "\n" : used ? " " : "",
             wraps ? indent : 0, "", word);
    *column += strlen(word) + (used && !wraps);
}

const char *cli_usage(const cli_verb *verb)
{
    static const char *const operands[] = {
        [CLI_NO_OPERAND] = "",   [CLI_ONE_FILE] = "FILE", [CLI_TWO_FILES] = "FILE FILE",
        [CLI_OPERATOR] = "[NAME]", [CLI_PASS_NAME] = "[NAME]", [CLI_SHELL] = "bash|zsh|fish",
    };
    static char out[USAGE_SIZE];
    char words[48];
    char word[56];
    size_t column = 0;
    if (verb->usage)
        return verb->usage;
    out[0] = '\0';
    for (const cli_option *o = verb->options; o && o->name; o++) {
        snprintf(word, sizeof word, "[%s]%s", option_words(o, words), o->repeats ? "..." : "");
        add_usage(out, verb, word, &column);
    }
    if (*operands[verb->operands])
        add_usage(out, verb, operands[verb->operands], &column);
    return out;
}

int cli_help_verb(const cli_verb *verb)
{
    const char *usage = cli_usage(verb);
    printf("%scfx %s%s: %s\n\nusage: cfx %s%s%s\n\n", cli_ink_on(stdout, CLI_BOLD), verb->name,
           cli_ink_on(stdout, CLI_PLAIN), verb->summary, verb->name, *usage ? " " : "", usage);
    print_options(verb->options);
    print_options(cli_common_options);
    if (verb->generator)
        print_forms(verb);
    printf("\nexamples:\n%s", verb->examples);
    return CLI_OK;
}

/* ---- the manual page ----------------------------------------------------------------------- */

/* Roff takes '-' for a hyphen and '\' for an escape, and a dot or an apostrophe at the start of a
 * line for a request. */
static void roff(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if ((i == 0 || text[i - 1] == '\n') && text[i] == '.')
            printf("\\&");
        if (text[i] == '-')
            printf("\\-");
        else if (text[i] == '\\')
            printf("\\e");
        else if (text[i] == '\'')
            printf("\\(aq");
        else if (text[i] == '~')
            printf("\\(ti");
        else
            putchar(text[i]);
    }
}

static void roff_text(const char *text) { roff(text, strlen(text)); }

/* Blanks and newlines as one blank: usage is wrapped for terminals. */
static void roff_usage(const char *text)
{
    while (*text) {
        size_t word = strcspn(text, " \n");
        roff(text, word);
        text += word;
        size_t gap = strspn(text, " \n");
        if (gap && text[gap])
            putchar(' ');
        text += gap;
    }
}

static void man_options(const cli_option *options)
{
    char words[48];
    char summary[CLI_SUMMARY_SIZE];
    for (; options && options->name; options++) {
        printf(".TP\n.B ");
        roff_text(option_words(options, words));
        printf("\n");
        roff_text(cli_summary(options, summary));
        printf("\n");
    }
}

static void man_verb(const cli_verb *verb)
{
    printf(".SS cfx %s\n", verb->name);
    roff_text(verb->summary);
    printf(".\n.PP\n.B cfx %s\n", verb->name);
    roff_usage(cli_usage(verb));
    printf("\n");
    man_options(verb->options);
    printf(".PP\n.EX\n");
    roff_text(verb->examples);
    printf(".EE\n");
}

static void man_entry(const char *name, const char *summary)
{
    printf(".TP\n.B ");
    roff_text(name);
    printf("\n");
    roff_text(summary);
    printf("\n");
}

int cli_help_man(void)
{
    printf(".TH CFX 1 \"\" \"cfx %s\"\n.SH NAME\ncfx \\- print, check, change, compare and run "
           "graphs of neural networks\n.SH SYNOPSIS\n.B cfx\n.I verb\n[\\fIoption\\fR ...] "
           "[\\fIfile\\fR]\n.SH DESCRIPTION\n", cfx_version());
    roff_text(introduction);
    printf("\n.SH VERBS\n");
    for (size_t i = 0; cli_verb_at(i); i++)
        man_verb(cli_verb_at(i));
    printf(".SH OPTIONS\nEvery verb takes these.\n");
    man_options(cli_common_options);
    printf(".SH FORMS\nThese are what\n.B \\-\\-to\ncan name; as options they are spelled\n"
           ".BR \\-\\-c ,\n.B \\-\\-dot\nand so on.\n");
    for (size_t i = 0; cfx_generator_get(i); i++)
        man_entry(cfx_generator_get(i)->name, cfx_generator_get(i)->summary);
    printf(".SH FILES\n");
    for (size_t i = 0; cfx_file_format_get(i); i++)
        man_entry(cfx_file_format_get(i)->extension, cfx_file_format_get(i)->summary);
    printf(".SH PASSES\nThe passes that\n.B cfx opt\\~\\-\\-pass\ncan run.\n");
    for (size_t i = 0; cfx_pass_get(i); i++)
        man_entry(cfx_pass_get(i)->name, cfx_pass_get(i)->summary);
    printf(".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf it is set and not empty, no colours unless\n"
           ".B \\-\\-color=always\nis given.\n.SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        printf(".TP\n.B %d\n", codes[i].code);
        roff_text(codes[i].meaning);
        printf("\n");
    }
    return CLI_OK;
}
