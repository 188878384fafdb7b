/* model.c - models whose source is C: compiled, loaded, made.
 *
 * The compiler makes a shared object that finds the functions of cfx in this executable, which
 * exports them. It lies in a scratch folder that is gone as soon as the object is loaded.
 */
#include "cli.h"

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PATH_ROOM = 4096, MOST_WORDS = 128 };

/* ---- where the headers are ----------------------------------------------------------------- */

/* build/cfx has them in build/include, PREFIX/bin/cfx in PREFIX/include. */
static bool find_include(char out[PATH_ROOM])
{
    const char *given = getenv("CFX_INCLUDE");
    char self[PATH_ROOM - 32];
    char probe[PATH_ROOM + 16];
    if (given && *given)
        return snprintf(out, PATH_ROOM, "%s", given) < PATH_ROOM;
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size <= 0)
        return false;
    self[size] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(self, '/');
        if (!slash)
            return false;
        *slash = '\0';
        snprintf(out, PATH_ROOM, "%s/include", self);
        snprintf(probe, sizeof probe, "%s/cfx/cfx.h", out);
        if (access(probe, R_OK) == 0)
            return true;
    }
    return false;
}

/* ---- compiling ----------------------------------------------------------------------------- */

/* The words of a command. */
typedef struct command {
    char *words[MOST_WORDS + 1];
    int n;
} command;

static void add_word(command *c, const char *word)
{
    if (c->n < MOST_WORDS)
        c->words[c->n++] = (char *)word; /* posix_spawn takes them so, and leaves them alone */
}

/* Takes `text` apart at its blanks, in place. */
static void add_words(command *c, char *text)
{
    char *rest = NULL;
    for (char *word = strtok_r(text, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
        add_word(c, word);
}

/* Runs it to its end. CLI_OK, or what the command has to exit with, after a message. */
static int run_compiler(const command *c, const char *name)
{
    pid_t child;
    int status = 0;
    fflush(NULL);
    const int failed = posix_spawnp(&child, c->words[0], NULL, NULL, c->words, environ);
    if (failed) {
        fprintf(stderr, "%s: cannot run the compiler '%s': %s; set CC to a C compiler\n",
                name, c->words[0],
                strerror(failed));
        return CLI_BAD_INPUT;
    }
    cli_watch_compiler(child);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    cli_watch_compiler(0);
    if (cli_interrupted(NULL)) {
        fprintf(stderr, "%s: interrupted\n", name);
        return CLI_INTERRUPTED;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return CLI_OK;
    fprintf(stderr, "%s: it does not compile; see the output of %s above\n", name, c->words[0]);
    return CLI_BAD_INPUT;
}

static int compile(const cli_model *m, const char *file, const char *cflags, const char *object)
{
    const char *cc = getenv("CC");
    char include[PATH_ROOM];
    char compiler[PATH_ROOM];
    char flags[PATH_ROOM];
    char dotted[PATH_ROOM] = "";
    command c = {.n = 0};
    if (!find_include(include)) {
        fprintf(stderr, "%s: cannot find cfx/cfx.h; set CFX_INCLUDE to the directory that contains "
                "it\n",
                m->name);
        return CLI_BAD_INPUT;
    }
    bool fits = snprintf(compiler, sizeof compiler, "%s", cc && *cc ? cc : "cc") < PATH_ROOM &&
                snprintf(flags, sizeof flags, "%s", cflags ? cflags : "") < PATH_ROOM;
    if (file[0] == '-' && file[1])  /* not an option */
        fits = snprintf(dotted, sizeof dotted, "./%s", file) < PATH_ROOM && fits;
    char always[] = "-O0 -fPIC -shared -I";
    char from_stdin[] = "-x c";
    add_words(&c, compiler);
    add_words(&c, always);
    add_word(&c, include);
    add_words(&c, flags);
    add_word(&c, "-o");
    add_word(&c, object);
    if (strcmp(file, "-") == 0)
        add_words(&c, from_stdin);
    add_word(&c, *dotted ? dotted : file);
    if (!fits || c.n == MOST_WORDS) {
        fprintf(stderr, "%s: CC and --cflags are too long\n", m->name);
        return CLI_BAD_INPUT;
    }
    c.words[c.n] = NULL;
    return run_compiler(&c, m->name);
}

/* ---- loading ------------------------------------------------------------------------------- */

/* Writes the text that is to be compiled, so that messages call it by its name. */
static int write_source(const cli_model *m, const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    bool good = file && fprintf(file, "#line 1 \"%s\"\n%s", m->name, text) > 0;
    good = file && fclose(file) == 0 && good;
    if (!good)
        perror(path);
    return good ? CLI_OK : CLI_BAD_INPUT;
}

static int open_object(cli_model *m, const char *object)
{
    m->library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (m->library)
        return CLI_OK;
    const char *why = dlerror();
    const size_t size = strlen(object);
    const bool prefixed = strncmp(why, object, size) == 0 && why[size] == ':';
    fprintf(stderr, "%s:%s%s\n", m->name, prefixed ? "" : " ", prefixed ? why + size + 1 : why);
    return CLI_BAD_INPUT;
}

/* Compiles and opens; leaves no file behind. */
static int load(cli_model *m, const char *file, const char *text, const char *cflags)
{
    const cli_scratch *scratch = cli_scratch_begin();
    if (!scratch)
        return CLI_BAD_INPUT;
    int code = text ? write_source(m, scratch->source, text) : CLI_OK;
    if (code == CLI_OK)
        code = compile(m, text ? scratch->source : file, cflags, scratch->object);
    cli_watch_code(m->name);  /* it may have some that runs when it is loaded */
    if (code == CLI_OK)
        code = open_object(m, scratch->object);
    cli_scratch_end();
    return code;
}

/* A function of the file: as POSIX would have it. */
static bool find(const cli_model *m, const char *name, void *function)
{
    void *symbol = dlsym(m->library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* Whether a message begins with "FILE:LINE:". */
static bool has_place(const char *message)
{
    const char *colon = strchr(message, ':');
    return colon && colon[1] >= '1' && colon[1] <= '9';
}

int cli_model_failed(const cli_model *m)
{
    const bool interrupted = cli_interrupted(NULL);
    const char *why = interrupted ? "interrupted" : cfx_scope_error(m->scope)->message;
    cli_progress_end();
    if (interrupted || !has_place(why))
        fprintf(stderr, "%s: ", m->name);
    fprintf(stderr, "%s\n", why);
    return interrupted ? CLI_INTERRUPTED : CLI_BAD_INPUT;
}

static int make(cli_model *m)
{
    cfx_module *(*model)(cfx_scope *s) = NULL;
    const cfx_runtime_options options = {.interrupted = cli_interrupted, .print = cli_stdout()};
    cfx_error err = {.status = CFX_OK};
    if (!find(m, "cfx_model", &model)) {
        fprintf(stderr, "%s: it has no function cfx_model; define one that creates the model: "
                "cfx_module *cfx_model(cfx_scope *s)\n", m->name);
        return CLI_BAD_INPUT;
    }
    find(m, "cfx_example", &m->example);
    m->rt = cfx_runtime_new(&options, &err);
    m->scope = m->rt ? cfx_scope_new(&(cfx_scope_options){.runtime = m->rt}, &err) : NULL;
    if (!m->scope) {
        fprintf(stderr, "%s: %s\n", m->name, err.message);
        return CLI_BAD_INPUT;
    }
    m->module = model(m->scope);
    if (cfx_scope_ok(m->scope) && !m->module && !cli_interrupted(NULL)) {
        fprintf(stderr, "%s: cfx_model returned NULL, not a module\n", m->name);
        return CLI_BAD_INPUT;
    }
    return cfx_scope_ok(m->scope) && !cli_interrupted(NULL) ? CLI_OK : cli_model_failed(m);
}

/* "net.py:Net", "package.module:NAME" or "net.py", and not another file. */
static bool is_python_target(const char *file)
{
    const char *colon = strrchr(file, ':');
    const size_t size = colon ? (size_t)(colon - file) : strlen(file);
    const bool is_py = size > 3 && strncmp(file + size - 3, ".py", 3) == 0;
    return is_py || (colon && size > 0 && !strchr(colon, '/') && access(file, F_OK) != 0);
}

int cli_model_begin(cli_model *m, const char *file, const char *text, const char *cflags)
{
    *m = (cli_model){.name = strcmp(file, "-") == 0 ? "<stdin>" : file};
    if (!text && is_python_target(file)) {
        fprintf(stderr, "%s: PyTorch modules are captured by the Python package: python -m cfx "
                "trace %s; cfx script captures a file's source without Python\n", file, file);
        return CLI_UNREADABLE;
    }
    if (!text && strcmp(file, "-") != 0 && access(file, R_OK) != 0) {
        fprintf(stderr, "%s: %s; give the path of a C file, or - for standard input\n", file,
                strerror(errno));
        return CLI_UNREADABLE;
    }
    cli_watch_interrupts();
    const int code = load(m, file, text, cflags);
    return code == CLI_OK ? make(m) : code;
}

void cli_model_end(cli_model *m)
{
    cfx_scope_free(m->scope); /* before the code of its modules is gone */
    cfx_runtime_free(m->rt);
    cli_watch_code(NULL);
    if (m->library)
        dlclose(m->library);
}
