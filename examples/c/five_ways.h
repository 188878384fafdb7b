/* five_ways.h - the program around a model: runs it in several ways and compares what they give.
 *
 * A model's file ends with `#include "five_ways.h"`, after it has defined
 *
 *     cfx_module *cfx_model(cfx_scope *s);      makes the model, ready to be used
 *     cfx_var cfx_example(cfx_scope *s);        an input for it
 *
 * and is a program then that calls the model, captures it, transforms what was captured, writes
 * that as C, compiles and runs it; and, if it is given a folder, leaves all of it there, with a
 * Python module that is the fifth way: PROGRAM [FOLDER]. With CFX_NO_MAIN there is no program.
 */
#ifndef CFX_NO_MAIN
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char passes[] = "remove_dropout,fuse_bn,cse,dce";

/* ---- files --------------------------------------------------------------------------------- */

static const char *in_folder(const char *folder, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static cfx_status write_file(void *file, const char *data, size_t size)
{
    return fwrite(data, 1, size, file) == size ? CFX_OK : CFX_E_IO;
}

typedef cfx_status writer(cfx_module *m, cfx_sink out, cfx_error *err);

static cfx_status as_text(cfx_module *m, cfx_sink out, cfx_error *err)
{
    return cfx_graph_text(cfx_module_graph(m), out, err);
}

static cfx_status as_c(cfx_module *m, cfx_sink out, cfx_error *err)
{
    const cfx_module_tree tree = cfx_module_as_tree(m);
    return cfx_codegen_c(cfx_module_graph(m), &tree, cfx_module_class_name(m), out, err);
}

static cfx_status as_python(cfx_module *m, cfx_sink out, cfx_error *err)
{
    const cfx_module_tree tree = cfx_module_as_tree(m);
    return cfx_codegen_python_module(cfx_module_graph(m), &tree, cfx_module_class_name(m), out,
                                     err);
}

static void save(cfx_scope *s, const char *path, writer *write, cfx_module *m)
{
    cfx_error err = {0};
    FILE *file = cfx_scope_ok(s) ? fopen(path, "w") : NULL;
    if (!cfx_scope_ok(s))
        return;
    if (!file)
        cfx_scope_fail(s, CFX_E_IO, "cannot write %s", path);
    else if (write(m, (cfx_sink){write_file, file}, &err) != CFX_OK)
        cfx_scope_fail(s, err.status, "%s", err.message);
    if (file && fclose(file) != 0)
        cfx_scope_fail(s, CFX_E_IO, "cannot write %s", path);
}

static void save_tensor(cfx_scope *s, const char *path, cfx_var v)
{
    cfx_error err = {0};
    const cfx_tensor *t = cfx_var_tensor(s, v);
    if (t && cfx_tensor_save(t, path, &err) != CFX_OK)
        cfx_scope_fail(s, err.status, "%s", err.message);
}

/* ---- generated C --------------------------------------------------------------------------- */

typedef cfx_module *model_fn(cfx_scope *s);

/* Compiles the file; what is returned has to stay open while its modules are used. */
static void *compile(cfx_scope *s, const char *folder)
{
    const char *cc = getenv("CC");
    const char *include = getenv("CFX_INCLUDE");
    char command[16384];
    snprintf(command, sizeof command,
             "cd '%s' && %s -std=c11 -Wall -Wextra -Werror -O1 -fPIC -shared -I'%s' -o model.so "
             "model.c", folder, cc && *cc ? cc : "cc", include ? include : "/usr/local/include");
    if (system(command) != 0) {
        cfx_scope_fail(s, CFX_E_VALUE, "this failed, where CC and CFX_INCLUDE can be set: %s",
                       command);
        return NULL;
    }
    void *library = dlopen(in_folder(folder, "model.so"), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        cfx_scope_fail(s, CFX_E_VALUE, "%s", dlerror());
    return library;
}

/* The model that the generated C makes, with the weights of the one it was generated from. */
static cfx_module *model_of(cfx_scope *s, void *library, const cfx_module *weights)
{
    model_fn *make = NULL;
    void *symbol = library ? dlsym(library, "cfx_model") : NULL;
    if (!symbol)
        return NULL;
    *(void **)&make = symbol; /* as POSIX would have it */
    cfx_module *m = make(s);
    cfx_state *state = cfx_module_state(s, weights);
    cfx_module_load_state(s, m, state, CFX_LOAD_UNEXPECTED);
    cfx_state_free(state);
    return m;
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* Runs `m` and prints how far it is from `y`; returns that. */
static double compare(cfx_scope *s, const char *way, cfx_module *m, cfx_var x, cfx_var y)
{
    const size_t mark = cfx_scope_mark(s);
    const cfx_graph *g = m ? cfx_module_graph(m) : NULL;
    cfx_var off = cfx_sub(s, cfx_call(s, m, x), y);
    const double largest = cfx_var_number(s, cfx_max(s, cfx_abs(s, off)));
    char nodes[32] = "";
    if (g)
        snprintf(nodes, sizeof nodes, "%zu nodes", cfx_graph_size(g));
    if (cfx_scope_ok(s))
        printf("  %-12s %-10s largest difference %.1e\n", way, nodes, largest);
    cfx_scope_reset(s, mark, cfx_var_empty());
    return largest;
}

static void print_sizes(cfx_scope *s, const char *before, cfx_var v)
{
    for (size_t i = 0; i < cfx_var_ndim(s, v); i++)
        printf("%s%lld", i ? " x " : before, (long long)cfx_var_size(s, v, (int64_t)i));
}

/* The largest of all differences. */
static double five_ways(cfx_scope *s, const char *folder, void **library)
{
    cfx_module *model = cfx_model(s);
    cfx_var x = cfx_example(s);
    cfx_var y = cfx_call(s, model, x);
    cfx_module *captured = cfx_trace(s, model);
    cfx_module *transformed = cfx_trace(s, model);
    cfx_transform(s, transformed, passes);
    save(s, in_folder(folder, "model.c"), as_c, transformed);
    save(s, in_folder(folder, "model.py"), as_python, transformed);
    save(s, in_folder(folder, "model.ir"), as_text, transformed);
    cfx_module_save(s, model, in_folder(folder, "weights.safetensors"));
    cfx_module_save(s, transformed, in_folder(folder, "transformed.safetensors"));
    save_tensor(s, in_folder(folder, "x.npy"), x);
    save_tensor(s, in_folder(folder, "y.npy"), y);
    if (!cfx_scope_ok(s))
        return 1;
    printf("%s", cfx_module_class_name(model));
    print_sizes(s, ": ", x);
    print_sizes(s, " -> ", y);
    printf("\n");
    double largest[3];
    largest[0] = compare(s, "captured", captured, x, y);
    largest[1] = compare(s, "transformed", transformed, x, y);
    *library = compile(s, folder);
    largest[2] = compare(s, "as C again", model_of(s, *library, transformed), x, y);
    for (int i = 1; i < 3; i++)
        largest[0] = largest[i] > largest[0] ? largest[i] : largest[0];
    return largest[0];
}

/* ---- the program --------------------------------------------------------------------------- */

static void remove_all(const char *folder)
{
    static const char *const names[] = {
        "model.c", "model.so", "model.py", "model.ir", "x.npy", "y.npy", "weights.safetensors",
        "transformed.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remove(in_folder(folder, names[i]));
    rmdir(folder);
}

int main(int argc, char **argv)
{
    cfx_error err = {0};
    char scratch[] = "/tmp/cfx-example-XXXXXX";
    const char *folder = argc > 1 ? argv[1] : mkdtemp(scratch);
    void *library = NULL;
    cfx_scope *s = cfx_scope_new(NULL, &err);
    if (!s || !folder) {
        fprintf(stderr, "%s\n", s ? "cannot make a folder in /tmp" : err.message);
        cfx_scope_free(s);
        return 1;
    }
    const double largest = five_ways(s, folder, &library);
    const bool good = cfx_scope_ok(s) && largest < 1e-4;
    if (!cfx_scope_ok(s))
        fprintf(stderr, "%s\n", cfx_scope_error(s)->message);
    else
        printf("%s\n", good ? "All ways give the same." : "They do not give the same.");
    cfx_scope_free(s); /* before the code of its modules is gone */
    if (library)
        dlclose(library);
    if (argc < 2)
        remove_all(folder);
    return !good;
}
#endif
