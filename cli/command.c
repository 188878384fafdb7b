/* command.c - finds the verb and runs it. */
#include "command.h"
#include "cli.h"

#include <string.h>

static const cli_verb *const verbs[] = {
#define CLI_VERB(name) &verb_##name,
#include "verbs.def"
#undef CLI_VERB
};

enum { VERB_COUNT = sizeof verbs / sizeof *verbs };

const cli_verb *cli_verb_at(size_t i) { return i < VERB_COUNT ? verbs[i] : NULL; }

static const cli_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

/* ---- dispatch ------------------------------------------------------------------------------ */

static int unknown_verb(const char *word)
{
    const char *words[VERB_COUNT + 3] = {"help", "--help", "--version"};
    for (size_t i = 0; i < VERB_COUNT; i++)
        words[i + 3] = verbs[i]->name;
    const char *near = cli_nearest(word, words, sizeof *words, VERB_COUNT + 3);
    fprintf(stderr, "cfx: there is no verb '%s'%s%s%s\n", word, near ? "; did you mean " : "",
            near ? near : "", near ? "?" : "");
    fprintf(stderr, "usage: cfx VERB [OPTION...] [FILE]\nSee: cfx --help\n");
    return CLI_BAD_USAGE;
}

static bool is_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run(int argc, char **argv)
{
    cli_args args;
    if (argc < 2)
        return cli_help(stderr, CLI_BAD_USAGE);
    if (is_help(argv[1]) && argc == 2)
        return cli_help(stdout, CLI_OK);
    if (strcmp(argv[1], "--version") == 0 && argc == 2) {
        printf("cfx %s\n", cfx_version());
        return CLI_OK;
    }
    if (is_help(argv[1]) && strcmp(argv[2], "--man") == 0)
        return cli_help_man();
    if (is_help(argv[1]) && is_help(argv[2]))
        return cli_help(stdout, CLI_OK);
    const char *name = argv[is_help(argv[1]) ? 2 : 1];
    const cli_verb *verb = find_verb(name);
    if (!verb)
        return unknown_verb(name);
    if (is_help(argv[1]))
        return cli_help_verb(verb);
    int code = cli_parse(verb, argc - 2, argv + 2, &args);
    if (code != CLI_OK)
        return code;
    return args.help ? cli_help_verb(verb) : verb->run(&args);
}

int cli_command(int argc, char **argv) { return cli_finish(run(argc, argv)); }
