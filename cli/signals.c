/* signals.c - what Ctrl-C, crashes and exit() do while code of the user's runs, and what has to be
 * removed then.
 *
 * The first Ctrl-C asks to stop, and everything that computes looks at it. Code that does not, such
 * as a loop of the user's own, is ended after some seconds; by a second Ctrl-C at once.
 */
#define _XOPEN_SOURCE 700  /* sigaltstack */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 2 };  /* seconds */

static volatile sig_atomic_t interrupted;
static const char *volatile running;  /* the file whose code runs; NULL: none */
static volatile pid_t compiler;       /* 0: none */
static pid_t this_process;

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return;
}

/* ---- the scratch folder --------------------------------------------------------------------- */

static struct {
    char folder[4096];
    char source[4096 + 16];
    char object[4096 + 16];
    volatile sig_atomic_t made;
} scratch;

const cli_scratch *cli_scratch_begin(void)
{
    static const cli_scratch paths = {scratch.folder, scratch.source, scratch.object};
    const char *given = getenv("TMPDIR");
    const char *parent = given && *given ? given : "/tmp";
    if (snprintf(scratch.folder, sizeof scratch.folder, "%s/cfx-XXXXXX", parent) >=
        (int)sizeof scratch.folder)
        errno = ENAMETOOLONG;
    else if (mkdtemp(scratch.folder)) {
        snprintf(scratch.source, sizeof scratch.source, "%s/model.c", scratch.folder);
        snprintf(scratch.object, sizeof scratch.object, "%s/model.so", scratch.folder);
        scratch.made = 1;
        return &paths;
    }
    fprintf(stderr, "%.200s: cannot create a directory there: %s; set TMPDIR\n", parent,
            strerror(errno));
    return NULL;
}

/* From a signal handler: only what one may call. */
static void drop_scratch(void)
{
    if (!scratch.made)
        return;
    scratch.made = 0;
    unlink(scratch.source);
    unlink(scratch.object);
    rmdir(scratch.folder);
}

/* With whatever else the compiler left there: notes for coverage, its temporary files. */
void cli_scratch_end(void)
{
    DIR *folder = scratch.made ? opendir(scratch.folder) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    drop_scratch();
}

/* ---- Ctrl-C -------------------------------------------------------------------------------- */

bool cli_interrupted(void *ctx)
{
    (void)ctx;
    return interrupted != 0;
}

static void on_late(int number)
{
    (void)number;
    say(running ? running : "cfx");
    say(": interrupted; the model's code did not stop, so the process was ended\n");
    drop_scratch();
    _exit(CLI_INTERRUPTED);
}

/* The signal's own effect, once the handler has returned. */
static void end_by(int number)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    drop_scratch();
    sigemptyset(&usual.sa_mask);
    sigaction(number, &usual, NULL);
    raise(number);
}

static void on_interrupt(int number)
{
    struct sigaction late = {.sa_handler = on_late};
    const int saved = errno;
    if (compiler > 0)
        kill(compiler, number);
    if (interrupted || number == SIGQUIT) {
        end_by(number);
        return;
    }
    interrupted = 1;
    sigemptyset(&late.sa_mask);
    if (running && sigaction(SIGALRM, &late, NULL) == 0)
        alarm(PATIENCE);
    errno = saved;
}

void cli_watch_interrupts(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = on_interrupt};
    struct sigaction old;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)  /* nohup */
            sigaction(signals[i], &action, NULL);
}

void cli_watch_compiler(pid_t child) { compiler = child; }

/* ---- crashes ------------------------------------------------------------------------------- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  /* they do this better */
/* Only what a signal handler may call. */
static void on_crash(int number)
{
    const char *what = number == SIGFPE ? "a division by zero or another arithmetic error"
                       : number == SIGABRT ? "it called abort"
                       : number == SIGILL ? "an illegal instruction"
                                          : "an invalid memory access";
    say(running ? running : "cfx");
    say(": the model's code crashed (");
    say(what);
    say("); to find where, run: gdb --args cfx trace --cflags -g ");
    say(running ? running : "FILE");
    say("\n");
    drop_scratch();
    _exit(CLI_BAD_INPUT);
}

/* On a stack of its own: recursion without an end is a crash, too. */
static void watch_crashes(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static char memory[1 << 16];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    if (sigaltstack(&stack, NULL) != 0)
        return;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}
#else
static void watch_crashes(void) {}
#endif

/* ---- exit ---------------------------------------------------------------------------------- */

/* Nobody else exits while the code runs; but a process that it started may. */
static void on_exit_inside(void)
{
    if (!running || getpid() != this_process)
        return;
    fflush(NULL);
    cli_progress_end();
    fprintf(stderr, "%s: its code called exit, so that nothing could be made of it; to say what is "
            "wrong, call cfx_scope_fail and return\n", running);
    cli_scratch_end();
    _exit(interrupted ? CLI_INTERRUPTED : CLI_BAD_INPUT);
}

void cli_watch_code(const char *name)
{
    static bool watched;
    running = name;
    if (!name || watched)
        return;
    watched = true;
    this_process = getpid();
    watch_crashes();
    atexit(on_exit_inside);
}
