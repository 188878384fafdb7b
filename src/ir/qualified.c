/* qualified.c - names of functions and types that come from a file: which may become part of
 * source, and which nobody but the user may bring in.
 *
 * The second is a list of what is known to run code or to reach files: a file that names one of
 * them is refused before it is resolved or written. It is not a sandbox (docs/ir.md says why).
 */
#include "graph_impl.h"

#include <cfx/embed/namespace.h>

/* ---- texts of types ------------------------------------------------------------------------ */

static bool is_sign(char c) { return c == '[' || c == ']' || c == ',' || c == '|' || c == ' '; }

/* The end of the word that begins at `at`. */
static size_t word_end(const char *text, size_t size, size_t at)
{
    while (at < size && !is_sign(text[at]))
        at++;
    return at;
}

static bool is_word(const char *text, size_t size)
{
    return cfxi_base_is_python_path(text, size) || (size == 3 && memcmp(text, "...", 3) == 0) ||
           (size == 4 && memcmp(text, "None", 4) == 0);
}

/* What a sign of a type does: `*after` tells whether a type stands before it, and `*empty` whether
 * a list has just begun, so that it may end at once. */
static bool take_sign(char sign, bool *after, bool *empty, int64_t *depth)
{
    const bool closes = sign == ']';
    if (sign == ' ')
        return true;
    if (!*after && !(sign == '[') && !(closes && *empty))
        return false;
    *empty = sign == '[' && !*after;  /* [] is a list; x[] is wrong */
    *depth += sign == '[' ? 1 : closes ? -1 : 0;
    *after = closes;
    return *depth >= 0 && (sign != ',' || *depth > 0);
}

bool cfxi_ir_is_type_text(const char *text, size_t size)
{
    bool after = false;
    bool empty = false;
    int64_t depth = 0;
    if (size == 0 || text[0] == ' ')
        return false;
    for (size_t at = 0; at < size; at++) {
        const size_t end = word_end(text, size, at);
        if (end > at) {
            if (after || !is_word(text + at, end - at) || (text[at] == '.' && depth == 0))
                return false;  /* two words need a sign between them; ... is for tuple[int, ...] */
            after = true;
            empty = false;
        }
        if (end < size && !take_sign(text[end], &after, &empty, &depth))
            return false;
        at = end;
    }
    return depth == 0 && after;
}

/* ---- names that run code ------------------------------------------------------------------- */

/* Builtins; sorted. */
static const char *const builtins[] = {
    "__import__", "breakpoint", "compile", "eval", "exec", "exit", "globals", "help", "input",
    "locals", "open", "quit", "vars",
};

/* Modules, with all that is in them, where the path begins; sorted. */
static const char *const modules[] = {
    "_ctypes", "_io", "_pickle", "_posixsubprocess", "_socket", "_thread", "asyncio", "cloudpickle",
    "code", "codeop", "dill", "ftplib", "glob", "http", "imp", "inspect", "io", "joblib",
    "multiprocessing", "nt", "pathlib", "pdb", "pip", "pkgutil", "posix", "pty", "runpy", "shelve",
    "site", "socket", "ssl", "tempfile", "threading", "timeit", "trace", "urllib", "webbrowser",
    "zipimport",
};

/* Parts of a path, wherever they stand: torch.os.system; sorted. */
static const char *const anywhere[] = {
    "__base__", "__bases__", "__builtins__", "__class__", "__closure__", "__code__", "__dict__",
    "__getattribute__", "__globals__", "__import__", "__init__", "__loader__", "__mro__",
    "__reduce__", "__reduce_ex__", "__self__", "__spec__", "__subclasses__", "builtins",
    "cpp_extension", "ctypes", "importlib", "load_library", "marshal", "os", "pickle",
    "serialization", "shutil", "subprocess", "sys",
};

/* Of these modules, what only asks; sorted. */
static const char *const harmless[] = {
    "os.getcwd", "os.getenv", "os.getloadavg", "os.getpid", "os.getppid", "os.getrandom",
    "os.times", "os.urandom",
};

/* Functions and modules of torch; sorted. */
static const char *const of_torch[] = {
    "torch.classes", "torch.compile", "torch.from_file", "torch.hub", "torch.jit.CompilationUnit",
    "torch.jit.load", "torch.jit.save", "torch.load", "torch.multiprocessing", "torch.package",
    "torch.save",
};

#define IS_OF(words, text, size)                                                                   \
    cfxi_base_is_word_of(words, sizeof(words) / sizeof *(words), text, size)

/* Whether the path up to some dot, or all of it, is one of torch's. */
static bool is_of_torch(const char *path, size_t size)
{
    for (size_t i = 0; i <= size; i++)
        if ((i == size || path[i] == '.') && IS_OF(of_torch, path, i))
            return true;
    return false;
}

static bool path_runs_code(const char *path, size_t size)
{
    static const char home[] = "builtins.";
    const size_t skip = sizeof home - 1;
    if (size > skip && memcmp(path, home, skip) == 0) {
        path += skip;
        size -= skip;
    }
    const char *end = path + size;
    if (IS_OF(harmless, path, size))
        return false;
    for (const char *part = path;; part++) {
        const char *dot = memchr(part, '.', (size_t)(end - part));
        const size_t length = (size_t)((dot ? dot : end) - part);
        if (part == path && dot ? IS_OF(modules, part, length)
                                : part == path && IS_OF(builtins, part, length))
            return true;
        if (IS_OF(anywhere, part, length))
            return true;
        if (!dot)
            return is_of_torch(path, size);
        part = dot;
    }
}

bool cfx_name_runs_code(const char *name, size_t size)
{
    for (size_t at = 0; at < size; at++) {
        const size_t end = word_end(name, size, at);
        if (end > at && path_runs_code(name + at, end - at))
            return true;
        at = end;
    }
    return false;
}
