/* prop_c.c - random programs as C: what is generated compiles without warnings, and computes what
 * the graph computes, called and captured again. As Python it can be parsed.
 *
 *     prop_c [FIRST [COUNT]]     (40 seeds; 400 with CFX_FULL=1; a failure names its seed)
 *
 * All models are compiled at once, with CC or cc. CFX_INCLUDE is where the headers are, by default
 * build/include.
 */
#include "random_compare.h"
#include "random_program.h"

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- many models in one file --------------------------------------------------------------- */

/* Names of the file ("static cfx_var NAME(", "static const cfx_class NAME ="): calls `line` with
 * each. `forward` is also a member of a struct, so that it cannot be a macro. */
static void each_static(FILE *out, const char *code, const char *format, unsigned number)
{
    for (const char *p = strstr(code, "\nstatic "); p; p = strstr(p + 1, "\nstatic ")) {
        const char *stop = p + strcspn(p, "(=");
        while (stop[-1] == ' ')
            stop--;
        const char *start = stop;
        while (start[-1] != ' ' && start[-1] != '*')
            start--;
        const int size = (int)(stop - start);
        if (size != 7 || strncmp(start, "forward", 7) != 0)
            fprintf(out, format, size, start, size, start, number);
    }
}

static void put_code(FILE *out, const char *code, unsigned number)
{
    static const char *const forwards[] = {"static cfx_var forward(", "= forward,"};
    fprintf(out, "#define cfx_model cfx_model_%u\n", number);
    each_static(out, code, "#define %.*s %.*s_of_%u\n", number);
    while (*code) {
        const char *next = NULL;
        size_t which = 0;
        for (size_t i = 0; i < 2; i++) {
            const char *found = strstr(code, forwards[i]);
            if (found && (!next || found < next)) {
                next = found;
                which = i;
            }
        }
        if (!next) {
            fputs(code, out);
            break;
        }
        const size_t kept = strlen(forwards[which]) - 1;
        fwrite(code, 1, (size_t)(next - code) + kept, out);
        fprintf(out, "_of_%u", number);
        code = next + kept;
    }
    fprintf(out, "#undef cfx_model\n");
}

/* The macros of one model are not those of the next. */
static void end_code(FILE *out, const char *code)
{
    each_static(out, code, "#undef %.*s /* %.*s %u */\n", 0);
}

/* ---- one program --------------------------------------------------------------------------- */

static bool complain(uint64_t seed, const char *what, const char *message)
{
    printf("seed %llu: failed: %s: %s\n", (unsigned long long)seed, what, message);
    return false;
}

static size_t size_for(uint64_t seed) { return seed % 20 == 7 ? 900 : 10 + seed % 50; }

static cfx_module *make(cfx_scope *s, uint64_t seed)
{
    cfx_error err = {0};
    cfx_graph *g = random_program_new(seed, size_for(seed), &err);
    if (!g) {
        cfx_scope_fail(s, err.status, "%s", err.message);
        return NULL;
    }
    cfx_module *m = cfx_module_from_graph(s, g, "Random", random_program_modules(s));
    cfx_graph_release(g);
    if (m)
        cfx_module_train(m, false);
    return m;
}

/* Writes the program as C to `out`; as Python, only to see whether that can be parsed. */
static bool generate(FILE *out, uint64_t seed)
{
    cfx_error err = {0};
    cfx_scope *s = cfx_scope_new(NULL, &err);
    cfx_module *m = make(s, seed);
    cfx_buffer c;
    cfx_buffer python;
    bool good = m != NULL;
    cfx_buffer_init(&c, NULL);
    cfx_buffer_init(&python, NULL);
    if (!good)
        complain(seed, "is made", cfx_scope_error(s)->message);
    const cfx_module_tree tree = cfx_module_as_tree(m);
    if (good && cfx_codegen_c(cfx_module_graph(m), &tree, NULL, cfx_buffer_sink(&c), &err))
        good = complain(seed, "as C", err.message);
    if (good && cfx_codegen_python_module(cfx_module_graph(m), &tree, "Random",
                                          cfx_buffer_sink(&python), &err))
        good = complain(seed, "as Python", err.message);
    if (good && cfx_syntax_dump(python.data, python.size, NULL, NULL, &err) != CFX_OK)
        good = complain(seed, "parses as Python", err.message);
    if (good) {
        put_code(out, c.data, (unsigned)seed);
        end_code(out, c.data);
    }
    cfx_buffer_free(&c);
    cfx_buffer_free(&python);
    cfx_scope_free(s);
    return good;
}

typedef cfx_module *model_fn(cfx_scope *s);

static cfx_datum call(cfx_scope *s, cfx_module *m, const cfx_var *in, size_t n)
{
    return cfx_var_datum(s, cfx_call_at(CFX_HERE(s), m, cfx_vars_make(in, n)));
}

static bool compare(uint64_t seed, model_fn *model)
{
    cfx_error err = {0};
    cfx_scope *s = cfx_scope_new(NULL, &err);
    cfx_module *m = make(s, seed);
    cfx_var in[RANDOM_PROGRAM_INPUTS];
    const size_t n = m ? random_program_inputs(s, cfx_module_graph(m), seed, in) : 0;
    cfx_datum results[3] = {call(s, m, in, n), {0}, {0}};
    cfx_state *state = cfx_module_state(s, m);
    cfx_module *again = model(s);
    cfx_module_load_state(s, again, state, CFX_LOAD_UNEXPECTED);
    results[1] = call(s, again, in, n);
    results[2] = call(s, cfx_trace(s, again), in, n);
    bool good = cfx_scope_ok(s) || complain(seed, "runs", cfx_scope_error(s)->message);
    if (good && !random_same(results[0], results[1], true))
        good = complain(seed, "as C", "it computes something else");
    if (good && !random_same(results[0], results[2], true))
        good = complain(seed, "as C, captured", "it computes something else");
    for (size_t i = 0; i < 3; i++)
        cfx_datum_release(results[i]);
    cfx_state_free(state);
    cfx_scope_free(s);
    return good;
}

/* ---- all ----------------------------------------------------------------------------------- */

static void *compile(const char *folder)
{
    const char *cc = getenv("CC");
    const char *include = getenv("CFX_INCLUDE");
    char command[8192];
    char object[300];
    snprintf(object, sizeof object, "%s/all.so", folder);
    snprintf(command, sizeof command, "%s -std=c11 -Wall -Wextra -Werror -O0 -fPIC -shared -I'%s' "
             "-o '%s' '%s/all.c'", cc && *cc ? cc : "cc", include ? include : "build/include",
             object, folder);
    void *library = system(command) == 0 ? dlopen(object, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        printf("failed: %s\n", command);
    return library;
}

static bool check(void *library, uint64_t seed)
{
    char name[40];
    snprintf(name, sizeof name, "cfx_model_%u", (unsigned)seed);
    void *symbol = dlsym(library, name);
    model_fn *model;
    memcpy(&model, &symbol, sizeof model);
    return symbol && compare(seed, model);
}

static void clean_up(const char *folder, void *library, bool keep)
{
    char path[300];
    static const char *const names[] = {"all.c", "all.so"};
    if (library)
        dlclose(library);
    for (size_t i = 0; i < 2 && !keep; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    if (keep)
        printf("see %s/all.c\n", folder);
    else
        rmdir(folder);
}

int main(int argc, char **argv)
{
    const char *full = getenv("CFX_FULL");
    const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const uint64_t count = argc > 2   ? strtoull(argv[2], NULL, 10)
                           : argc > 1 ? 1
                                      : full && strcmp(full, "1") == 0 ? 400 : 40;
    char folder[] = "/tmp/cfx-prop-XXXXXX";
    char path[300];
    size_t failed = 0;
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/all.c", folder);
    FILE *out = fopen(path, "w");
    if (!out)
        return 1;
    fputs("#include <cfx/cfx.h>\n#include <math.h>\n", out);
    for (uint64_t seed = first; seed < first + count; seed++)
        failed += !generate(out, seed);
    const bool written = fclose(out) == 0;
    void *library = written && failed == 0 ? compile(folder) : NULL;
    failed += !library;
    for (uint64_t seed = first; library && seed < first + count; seed++)
        failed += !check(library, seed);
    clean_up(folder, library, failed > 0);
    printf("prop_c: %zu passed, %zu failed\n", (size_t)count - (failed < count ? failed : count),
           failed);
    return failed != 0;
}
