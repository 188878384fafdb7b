/* help.c - what the command says of itself: its help and its manual page, from the table of verbs.
 */
#include "cli.h"

#include <string.h>

static const char introduction[] =
    "Reads a graph from FILE, in IR text; - or no FILE is standard input.";

static const struct {
    int code;
    const char *meaning;
} codes[] = {
    {CLI_OK, "done; check: it is well formed; diff: they are the same"},
    {CLI_BAD_INPUT, "it cannot be done with this input; check, diff: it is not so"},
    {CLI_BAD_USAGE, "the command line is wrong"},
    {CLI_UNREADABLE, "a file cannot be read, or is no IR text"},
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
    for (size_t i = 0; i < cli_num_verbs; i++)
        entry(out, cli_verbs[i].name, cli_verbs[i].summary);
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

static void print_options(const cli_option *options)
{
    char words[48];
    for (; options && options->name; options++) {
        option_words(options, words);
        if (strlen(words) > 20)
            printf("  %s\n  %-22s", words, "");
        else
            printf("  %-22s", words);
        wrap(stdout, options->summary, 24, cli_width());
    }
}

int cli_help_verb(const cli_verb *verb)
{
    printf("%scfx %s%s: %s\n\nusage: cfx %s%s%s\n\n", cli_ink_on(stdout, CLI_BOLD), verb->name,
           cli_ink_on(stdout, CLI_PLAIN), verb->summary, verb->name, *verb->usage ? " " : "",
           verb->usage);
    print_options(verb->options);
    print_options(cli_common_options);
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
    for (; options && options->name; options++) {
        printf(".TP\n.B ");
        roff_text(option_words(options, words));
        printf("\n");
        roff_text(options->summary);
        printf("\n");
    }
}

static void man_verb(const cli_verb *verb)
{
    printf(".SS cfx %s\n", verb->name);
    roff_text(verb->summary);
    printf(".\n.PP\n.B cfx %s\n", verb->name);
    roff_usage(verb->usage);
    printf("\n");
    man_options(verb->options);
    printf(".PP\n.EX\n");
    roff_text(verb->examples);
    printf(".EE\n");
}

int cli_help_man(void)
{
    printf(".TH CFX 1 \"\" \"cfx %s\"\n.SH NAME\ncfx \\- print, check, change, compare and run "
           "graphs of neural networks\n.SH SYNOPSIS\n.B cfx\n.I verb\n[\\fIoption\\fR ...] "
           "[\\fIfile\\fR]\n.SH DESCRIPTION\n", cfx_version());
    roff_text(introduction);
    printf("\n.SH VERBS\n");
    for (size_t i = 0; i < cli_num_verbs; i++)
        man_verb(&cli_verbs[i]);
    printf(".SH OPTIONS\nEvery verb has these.\n");
    man_options(cli_common_options);
    printf(".SH PASSES\nThese are what\n.B cfx opt\\~\\-\\-pass\ncan run.\n");
    for (size_t i = 0; cfx_pass_get(i); i++) {
        printf(".TP\n.B %s\n", cfx_pass_get(i)->name);
        roff_text(cfx_pass_get(i)->summary);
        printf("\n");
    }
    printf(".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf it is set and not empty, no colours unless\n"
           ".B \\-\\-color=always\nis given.\n.SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        printf(".TP\n.B %d\n", codes[i].code);
        roff_text(codes[i].meaning);
        printf("\n");
    }
    return CLI_OK;
}
