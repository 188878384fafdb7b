/* cmd_completion.c - cfx completion: scripts with which shells complete this command's words.
 *
 * All words are in the script: those of the table of verbs, of passes and of operators.
 */
#include "cli.h"

#include <string.h>

/* What an option's value, or an operand, is completed with. */
typedef enum complete {
    NOTHING, FILES, PASSES, PASS_LIST, OPERATORS, GENERATORS, WORDS
} complete;

static complete complete_option(const cli_option *option)
{
    if (!option->value)
        return NOTHING;
    if (strcmp(option->value, "PASS") == 0)
        return PASSES;
    if (strcmp(option->value, "A,B,...") == 0)
        return PASS_LIST;
    if (strcmp(option->value, "GENERATOR") == 0)
        return GENERATORS;
    if (strchr(option->value, '|'))
        return WORDS;
    return strstr(option->value, "FILE") ? FILES : NOTHING;
}

static complete complete_operand(const cli_verb *verb)
{
    switch (verb->operands) {
    case CLI_NO_OPERAND:
        break;
    case CLI_ONE_FILE:
    case CLI_TWO_FILES:
        return FILES;
    case CLI_OPERATOR:
        return OPERATORS;
    case CLI_PASS_NAME:
        return PASSES;
    case CLI_SHELL:
        return WORDS;
    }
    return NOTHING;
}

/* ---- lists of words ------------------------------------------------------------------------ */

static void print_verbs(void)
{
    for (size_t i = 0; cli_verb_at(i); i++)
        printf("%s ", cli_verb_at(i)->name);
    printf("help");
}

static void print_passes(void)
{
    for (size_t i = 0; cfx_pass_get(i); i++)
        printf("%s%s", i ? " " : "", cfx_pass_get(i)->name);
}

static void print_generators(const char *prefix)
{
    for (size_t i = 0; cfx_generator_get(i); i++)
        printf("%s%s%s", i ? " " : "", prefix, cfx_generator_get(i)->name);
}

static void print_operators(void)
{
    for (int op = 1; op < CFX_OPERATOR_COUNT; op++)
        printf("%s%s", op > 1 ? " " : "", cfx_operator_name((cfx_operator)op));
}

/* "auto|always" as "auto always" */
static void print_words(const char *words)
{
    for (; *words; words++)
        putchar(*words == '|' ? ' ' : *words);
}

static void print_names(const cli_option *options)
{
    for (; options && options->name; options++)
        printf("%s%s", options->name, options[1].name ? " " : "");
}

/* Calls `fn` for each option of the verb, for the common ones, and for its forms. */
static void each_option(const cli_verb *verb,
                        void (*fn)(const cli_verb *verb, const cli_option *option))
{
    for (const cli_option *o = verb->options; o && o->name; o++)
        fn(verb, o);
    for (const cli_option *o = cli_common_options; o->name; o++)
        fn(verb, o);
    for (size_t i = 0; verb->generator && cfx_generator_get(i); i++) {
        char name[32];
        char summary[CLI_SUMMARY_SIZE];
        const cli_option form = cli_form(verb, cfx_generator_get(i), name, summary);
        fn(verb, &form);
    }
}

/* In single quotes; `escape` (zsh's "'\\''", fish's "\\'") stands for one inside. */
static void print_quoted(const char *text, const char *escape)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'')
            printf("%s", escape);
        else
            putchar(*text);
    }
    putchar('\'');
}

/* ---- bash ---------------------------------------------------------------------------------- */

static const char bash_head[] =
    "# Completes the words of cfx in bash: source <(cfx completion bash)\n"
    "_cfx_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$cur\")); }\n"
    "_cfx_files() {\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    local IFS=$'\\n'\n"
    "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "}\n"
    "# The last of several that are joined by commas.\n"
    "_cfx_list() {\n"
    "    local before=\n"
    "    [[ $cur == *,* ]] && before=${cur%,*},\n"
    "    COMPREPLY=($(compgen -P \"$before\" -W \"$1\" -- \"${cur##*,}\"))\n"
    "    compopt -o nospace 2>/dev/null\n"
    "}\n"
    "_cfx() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local verb=${COMP_WORDS[1]}\n"
    "    COMPREPLY=()\n"
    "    # Bash takes the '=' of --name=value for a word of its own.\n"
    "    if [[ $cur == = ]]; then\n"
    "        cur=\n"
    "    elif [[ $prev == = ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n";

static void bash_complete(complete what, const char *words)
{
    switch (what) {
    case NOTHING:
        printf(":");
        break;
    case FILES:
        printf("_cfx_files");
        break;
    case PASSES:
        printf("_cfx_words \"$passes\"");
        break;
    case PASS_LIST:
        printf("_cfx_list \"$passes\"");
        break;
    case OPERATORS:
        printf("_cfx_words \"$operators\"");
        break;
    case GENERATORS:
        printf("_cfx_words \"");
        print_generators("");
        printf("\"");
        break;
    case WORDS:
        printf("_cfx_words \"");
        print_words(words);
        printf("\"");
        break;
    }
}

/* A value that may be left out stands behind '=' only: then the word before is no option. */
static void bash_option(const cli_verb *verb, const cli_option *option)
{
    if (!option->value)
        return;
    printf("    %s,%s) ", verb->name, option->name);
    if (option->may_omit)
        printf("[[ ${COMP_LINE:0:COMP_POINT} == *=* ]] && ");
    printf("{ ");
    bash_complete(complete_option(option), option->value);
    printf("; return; } ;;\n");
}

static int print_bash(void)
{
    printf("%s    local passes=\"", bash_head);
    print_passes();
    printf("\"\n    local operators=\"");
    print_operators();
    printf("\"\n    if ((COMP_CWORD == 1)); then\n        _cfx_words \"");
    print_verbs();
    printf(" --help --version\"\n        return\n    fi\n    case $verb,$prev in\n");
    for (size_t i = 0; cli_verb_at(i); i++)
        each_option(cli_verb_at(i), bash_option);
    printf("    esac\n    case $verb,$cur in\n");
    for (size_t i = 0; cli_verb_at(i); i++) {
        const cli_verb *verb = cli_verb_at(i);
        printf("    %s,-*) _cfx_words \"", verb->name);
        print_names(verb->options);
        printf(verb->options ? " " : "");
        print_names(cli_common_options);
        printf(verb->generator ? " " : "");
        if (verb->generator)
            print_generators("--");
        printf("\" ;;\n    %s,*) ", verb->name);
        bash_complete(complete_operand(verb), cli_usage(verb));
        printf(" ;;\n");
    }
    printf("    help,*) _cfx_words \"");
    print_verbs();
    printf(" --man\" ;;\n    esac\n}\ncomplete -F _cfx cfx\n");
    return CLI_OK;
}

/* ---- zsh ----------------------------------------------------------------------------------- */

/* What _arguments does for a value: ":message:action". */
static void zsh_action(complete what, const char *words)
{
    switch (what) {
    case NOTHING:
        printf(":value: ");
        break;
    case FILES:
        printf(":file:_files");
        break;
    case PASSES:
        printf(":pass:($passes)");
        break;
    case PASS_LIST:
        printf(":passes:_sequence compadd - $passes");
        break;
    case OPERATORS:
        printf(":operator:($operators)");
        break;
    case GENERATORS:
        printf(":generator:(");
        print_generators("");
        printf(")");
        break;
    case WORDS:
        printf(":word:(");
        print_words(words);
        printf(")");
        break;
    }
}

/* Inside double quotes; a colon or bracket would end the explanation. */
static void zsh_text(const char *text)
{
    for (; *text; text++) {
        if (strchr(":[]", *text))
            printf("\\\\");
        else if (strchr("\"\\$`", *text))
            printf("\\");
        putchar(*text);
    }
}

static void zsh_option(const cli_verb *verb, const cli_option *option)
{
    (void)verb;
    printf(" \\\n            \"%s%s%s[", option->repeats ? "*" : "", option->name,
           option->may_omit ? "=-" : option->value ? "=" : "");
    char summary[CLI_SUMMARY_SIZE];
    zsh_text(cli_summary(option, summary));
    printf("]%s", option->may_omit ? ":" : "");
    if (option->value)
        zsh_action(complete_option(option), option->value);
    printf("\"");
}

static void zsh_verb(const cli_verb *verb)
{
    printf("    %s)\n        _arguments", verb->name);
    each_option(verb, zsh_option);
    if (verb->operands != CLI_NO_OPERAND) {
        printf(" \\\n            \"%s", verb->operands == CLI_TWO_FILES ? "*" : "1");
        zsh_action(complete_operand(verb), cli_usage(verb));
        printf("\"");
    }
    printf(" ;;\n");
}

static int print_zsh(void)
{
    printf("#compdef cfx\n"
           "# Completes the words of cfx in zsh: cfx completion zsh >_cfx, in a folder of $fpath\n"
           "_cfx() {\n    local -a verbs passes operators\n    passes=(");
    print_passes();
    printf(")\n    operators=(");
    print_operators();
    printf(")\n    verbs=(");
    for (size_t i = 0; cli_verb_at(i); i++) {
        char text[160];
        snprintf(text, sizeof text, "%s:%s", cli_verb_at(i)->name, cli_verb_at(i)->summary);
        printf("\n        ");
        print_quoted(text, "'\\''");
    }
    printf("\n        'help:explain a verb')\n    if ((CURRENT == 2)); then\n"
           "        _describe verb verbs\n        return\n    fi\n    shift words\n"
           "    ((CURRENT--))\n    case ${words[1]} in\n");
    for (size_t i = 0; cli_verb_at(i); i++)
        zsh_verb(cli_verb_at(i));
    printf("    help)\n        _describe verb verbs ;;\n    esac\n}\n"
           "if [[ $funcstack[1] == _cfx ]]; then _cfx \"$@\"; else compdef _cfx cfx; fi\n");
    return CLI_OK;
}

/* ---- fish ---------------------------------------------------------------------------------- */

static void fish_words(complete what, const char *words)
{
    printf(what == PASS_LIST ? " -xa '(__cfx_list " : " -xa '");
    if (what == PASSES || what == PASS_LIST)
        print_passes();
    else if (what == OPERATORS)
        print_operators();
    else if (what == GENERATORS)
        print_generators("");
    else
        print_words(words);
    printf(what == PASS_LIST ? ")'" : "'");
}

static void fish_option(const cli_verb *verb, const cli_option *option)
{
    const complete what = complete_option(option);
    printf("complete -c cfx -n '__fish_seen_subcommand_from %s' -l %s -d ", verb->name,
           option->name + 2);
    char summary[CLI_SUMMARY_SIZE];
    print_quoted(cli_summary(option, summary), "\\'");
    if (what == FILES)
        printf(" -rF");
    else if (what == NOTHING && option->value)
        printf(" -x");
    else if (what != NOTHING)
        fish_words(what, option->value);
    printf("\n");
}

static void fish_verb(const cli_verb *verb)
{
    const complete what = complete_operand(verb);
    printf("complete -c cfx -n __fish_use_subcommand -xa %s -d ", verb->name);
    print_quoted(verb->summary, "\\'");
    printf("\n");
    each_option(verb, fish_option);
    if (what == NOTHING)
        return;
    printf("complete -c cfx -n '__fish_seen_subcommand_from %s'", verb->name);
    if (what == FILES)
        printf(" -F");
    else
        fish_words(what, cli_usage(verb));
    printf("\n");
}

static int print_fish(void)
{
    printf("# Completes the words of cfx in fish: cfx completion fish | source\n"
           "function __cfx_list -d 'completions of a comma-separated list'\n"
           "    set -l before (commandline -ct | string replace -r '^--[^=]*=' '' |"
           " string replace -r '[^,]*$' '')\n"
           "    for word in $argv\n        echo $before$word\n    end\nend\n");
    for (size_t i = 0; cli_verb_at(i); i++)
        fish_verb(cli_verb_at(i));
    printf("complete -c cfx -n __fish_use_subcommand -xa help -d 'explain a verb'\n"
           "complete -c cfx -n '__fish_seen_subcommand_from help' -xa '");
    print_verbs();
    printf("'\n");
    return CLI_OK;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int cmd_completion(const cli_args *args)
{
    static const struct {
        const char *name;
        int (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(args->word, shells[i].name) == 0)
            return shells[i].print();
    return cli_usage_error(args->verb, "there is no script for '%s'; choose bash, zsh or fish",
                           args->word);
}

const cli_verb verb_completion = {
    .name = "completion",
    .summary = "print a completion script for bash, zsh or fish",
    .operands = CLI_SHELL,
    .examples =
        "  source <(cfx completion bash)     for this session; or in ~/.bashrc\n"
        "  cfx completion zsh >~/.zfunc/_cfx\n"
        "  cfx completion fish >~/.config/fish/completions/cfx.fish\n",
    .run = cmd_completion,
};
