/* io.c - reads graphs, writes text and messages, and knows the terminal. */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MIB = 1 << 20, LONG_WORK = 8 * MIB };

/* ---- the terminal -------------------------------------------------------------------------- */

/* Whether the stream is a terminal that understands escape sequences. */
static bool is_smart_terminal(int stream)
{
    const char *term = getenv("TERM");
    return isatty(stream) && term && strcmp(term, "dumb") != 0;
}

size_t cli_width(void)
{
    struct winsize size = {0};
    if (!isatty(STDOUT_FILENO))
        return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER } when_colour;

bool cli_set_colour(const char *when)
{
    static const char *const words[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(when, words[i]) == 0) {
            when_colour = i;
            return true;
        }
    }
    return false;
}

bool cli_has_colour(FILE *stream)
{
    const char *no_colour = getenv("NO_COLOR");
    if (when_colour != COLOUR_AUTO)
        return when_colour == COLOUR_ALWAYS;
    return is_smart_terminal(fileno(stream)) && !(no_colour && *no_colour);
}

const char *cli_ink_on(FILE *stream, cli_ink ink)
{
    static const char *const codes[] = {
        [CLI_PLAIN] = "\033[0m", [CLI_BOLD] = "\033[1m",   [CLI_DIM] = "\033[2m",
        [CLI_RED] = "\033[31m",  [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m",
    };
    return cli_has_colour(stream) ? codes[ink] : "";
}

/* ---- progress ------------------------------------------------------------------------------ */

static volatile sig_atomic_t progress_shown;
static volatile sig_atomic_t working;
static volatile sig_atomic_t working_seconds;
static char working_on[64];

void cli_progress(const char *what, size_t bytes)
{
    if (bytes < LONG_WORK || !is_smart_terminal(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[Kcfx: %s, %zu MiB ...", what, bytes / MIB);
    progress_shown = true;
}

/* Once a second. Only what a signal handler may call. */
static void tick(int signal)
{
    char line[128] = "\r\033[Kcfx: ";
    size_t n = strlen(line);
    size_t size = strlen(working_on);
    char digits[12];
    size_t d = 0;
    const int saved = errno;
    (void)signal;
    if (!working)
        return;
    memcpy(line + n, working_on, size);
    n += size;
    line[n++] = ' ';
    for (int left = ++working_seconds; left > 0 && d < sizeof digits; left /= 10)
        digits[d++] = (char)('0' + left % 10);
    while (d > 0)
        line[n++] = digits[--d];
    memcpy(line + n, " s ...", 6);
    if (write(STDERR_FILENO, line, n + 6) > 0)
        progress_shown = true;
    alarm(1);
    errno = saved;
}

void cli_working(const char *what)
{
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    if (!is_smart_terminal(STDERR_FILENO))
        return;
    snprintf(working_on, sizeof working_on, "%s,", what);
    working_seconds = 0;
    working = true;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGALRM, &action, NULL) == 0)
        alarm(1);
}

void cli_progress_end(void)
{
    working = false;
    alarm(0);
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = false;
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool not_readable(const cli_input *in, const char *why)
{
    cli_progress_end();
    const char *colon = strcmp(in->what, "Python") == 0 ? strstr(in->name, ".py:") : NULL;
    if (colon)  /* as `cfx trace` takes it */
        fprintf(stderr, "%s: %s; write: cfx script --function %s %.*s\n", in->name, why, colon + 4,
                (int)(colon + 3 - in->name), in->name);
    else
        fprintf(stderr, "%s: %s; give the path of a file with %s, or - for standard input\n",
                in->name, why, in->what);
    return false;
}

/* Reads to the end of the stream, in steps that double. */
static bool read_all(cli_input *in, FILE *stream)
{
    size_t capacity = 0;
    size_t got;
    do {
        if (in->size == capacity) {
            capacity = capacity ? 2 * capacity : 1 << 16;
            char *text = realloc(in->text, capacity);
            if (!text)
                return not_readable(in, "it does not fit into memory");
            in->text = text;
        }
        got = fread(in->text + in->size, 1, capacity - in->size, stream);
        in->size += got;
        cli_progress("reading", in->size);
    } while (got > 0);
    return !ferror(stream) || not_readable(in, strerror(errno));
}

static bool read_file(cli_input *in, const char *file)
{
    if (strcmp(file, "-") == 0)
        return read_all(in, stdin);
    FILE *stream = fopen(file, "rb");
    if (!stream)
        return not_readable(in, strerror(errno));
    bool good = read_all(in, stream);
    fclose(stream);
    return good;
}

bool cli_read(cli_input *in, const char *file, const char *what)
{
    *in = (cli_input){.name = strcmp(file, "-") == 0 ? "<stdin>" : file, .what = what};
    return read_file(in, file);
}

/* Whether the data may be a graph; if it is in a format that holds something else, says so. */
static bool may_be_graph(const cli_input *in)
{
    char list[CFX_FILE_FORMAT_LIST_SIZE];
    const cfx_file_format *format = cfx_file_format_of_data(in->text, in->size);
    if (!format || format->content == CFX_CONTENT_GRAPH)
        return true;
    cli_progress_end();
    fprintf(stderr, "%s: this is a %s file, which holds %s; give a graph: %s\n", in->name,
            format->extension, cfx_content_words(format->content),
            cfx_file_format_list(CFX_CONTENT_GRAPH, list));
    return false;
}

/* ---- .cfx files ---------------------------------------------------------------------------- */

/* Whether a file holds a model, by its first bytes. Such a file is mapped, not read. */
static bool is_model(const char *data, size_t size)
{
    const cfx_file_format *format = cfx_file_format_of_data(data, size);
    return format && format->content == CFX_CONTENT_MODEL;
}

bool cli_names_onnx(const char *file)
{
    const size_t size = file ? strlen(file) : 0;
    return size > 5 && strcmp(file + size - 5, ".onnx") == 0;
}

static bool names_model(const char *file)
{
    char begin[64];
    if (cli_names_onnx(file))
        return true;
    FILE *stream = strcmp(file, "-") == 0 ? NULL : fopen(file, "rb");
    const size_t got = stream ? fread(begin, 1, sizeof begin, stream) : 0;
    if (stream)
        fclose(stream);
    return is_model(begin, got);
}

/* The layers and weights; a file without weights has none. */
static bool make_module(cli_input *in, cfx_error *err)
{
    if (!cfx_package_weights(in->package))
        return true;
    in->scope = cfx_scope_new(NULL, err);
    in->module = in->scope ? cfx_module_from_package(in->scope, in->package) : NULL;
    if (in->scope && !in->module)
        *err = *cfx_scope_error(in->scope);
    return in->module != NULL;
}

/* Loads the package itself: of the text that was read, or of the file. */
static bool load_package(cli_input *in, const char *file)
{
    cfx_error err = {.status = CFX_OK};
    const cfx_package_options package = {.read_only = in->read_only};
    const cfx_onnx_read_options onnx = {.read_only = in->read_only};
    in->package = in->text               ? cfx_package_read(in->text, in->size, NULL, &err)
                  : cli_names_onnx(file) ? cfx_onnx_load(file, &onnx, &err)
                                         : cfx_package_load(file, &package, &err);
    if (!in->package && in->text)
        cli_report(in, &err);
    else if (!in->package)
        fprintf(stderr, "%s\n", err.message);  /* which names the file */
    return in->package != NULL;
}

bool cli_open_package(cli_input *in, const char *file)
{
    if (names_model(file)) {
        *in = (cli_input){.name = file, .what = "a model"};
        return load_package(in, file);
    }
    if (!cli_read(in, file, "a model"))
        return false;
    if (is_model(in->text, in->size))
        return load_package(in, NULL);
    fprintf(stderr, "%s: this is not a .cfx file; cfx pack makes one\n", in->name);
    return false;
}

/* The graph of a package, as if its text had been read. */
static bool open_package(cli_input *in, const char *file)
{
    cfx_error err = {.status = CFX_OK};
    size_t size = 0;
    if (!load_package(in, file))
        return false;
    const char *text = cfx_package_text(in->package, "graph.ir", &size);
    if (!text)
        cfx_error_set(&err, CFX_E_VALUE, "the file has no entry graph.ir");
    if (text && make_module(in, &err)) {
        in->graph = cfx_graph_parse_places(text, size, NULL, NULL, &in->places, &err);
        if (in->graph)
            return true;
    }
    cli_report(in, &err);
    return false;
}

static bool open_graph(cli_input *in, const char *file, bool read_only)
{
    cfx_error err = {.status = CFX_OK};
    if (names_model(file)) {
        *in = (cli_input){.name = file, .what = "a model", .read_only = read_only};
        return open_package(in, file);
    }
    if (!cli_read(in, file, "IR text"))
        return false;
    if (is_model(in->text, in->size))
        return open_package(in, NULL);
    if (!may_be_graph(in))
        return false;
    cli_progress("parsing", in->size);
    in->graph = cfx_graph_parse_places(in->text, in->size, NULL, NULL, &in->places, &err);
    cli_progress_end();
    if (!in->graph)
        cli_report(in, &err);
    return in->graph != NULL;
}

bool cli_open(cli_input *in, const char *file) { return open_graph(in, file, false); }
bool cli_open_to_run(cli_input *in, const char *file) { return open_graph(in, file, true); }

void cli_close(cli_input *in)
{
    cfx_text_places_free(in->places);
    cfx_graph_release(in->graph);
    cfx_scope_free(in->scope);
    cfx_package_free(in->package);
    free(in->text);
}

/* ---- messages ------------------------------------------------------------------------------ */

/* A message about the text begins with its place in words, which the file's name replaces. */
void cli_report(const cli_input *in, const cfx_error *err)
{
    const char *what = err->message;
    char place[64];
    cli_progress_end();
    fprintf(stderr, "%s%s:", cli_ink_on(stderr, CLI_BOLD), in->name);
    if (err->line) {
        int size = snprintf(place, sizeof place, "line %u, column %u: ", err->line, err->column);
        if (strncmp(what, place, (size_t)size) == 0)
            what += size;
        fprintf(stderr, "%u:%u:", err->line, err->column);
    }
    fprintf(stderr, "%s %s\n", cli_ink_on(stderr, CLI_PLAIN), what);
}

/* A reader that has gone away (`cfx show x | head`) is no error worth a message; cli_finish tells
 * the others. */
int cli_failed(const cli_input *in, const cfx_error *err)
{
    if (ferror(stdout))
        return CLI_BAD_INPUT;
    cli_report(in, err);
    return err->status == CFX_E_IO ? CLI_UNREADABLE : CLI_BAD_INPUT;
}

/* ---- writing ------------------------------------------------------------------------------- */

static int write_errno; /* why standard output failed first */

static cfx_status write_stream(void *ctx, const char *data, size_t size)
{
    static size_t written;
    if (fwrite(data, 1, size, ctx) != size) {
        write_errno = write_errno ? write_errno : errno;
        return CFX_E_IO;
    }
    if ((written + size) / MIB != written / MIB && ctx == stdout && !isatty(STDOUT_FILENO))
        cli_progress("writing", written + size);
    written += size;
    return CFX_OK;
}

cfx_sink cli_stdout(void) { return (cfx_sink){write_stream, stdout}; }
cfx_sink cli_stderr(void) { return (cfx_sink){write_stream, stderr}; }

int cli_write_file(const char *path, const cfx_buffer *text)
{
    FILE *file = fopen(path, "w");
    bool good = file && fwrite(text->data, 1, text->size, file) == text->size;
    good = file && fclose(file) == 0 && good;
    if (!good)
        perror(path);
    return good ? CLI_OK : CLI_BAD_INPUT;
}

int cli_finish(int code)
{
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && !write_errno)
        write_errno = errno ? errno : EIO;
    cli_progress_end();
    if (!write_errno)
        return code;
    if (write_errno != EPIPE)
        fprintf(stderr, "cfx: cannot write the output: %s\n", strerror(write_errno));
    return CLI_BAD_INPUT;
}
