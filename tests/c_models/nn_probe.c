/* nn_probe.c - makes modules of torch.nn as a file asks for, and writes down what they are and do;
 * tests/python/test_nn_in_c.py compares that with PyTorch.
 *
 *     nn_probe FOLDER
 *
 * Each line of FOLDER/calls.txt is a class and its arguments: "Linear in_features=2 bias=False".
 * Values are None, True, False, numbers, 'texts (one quote, no blanks), (tuples), dtype:float64 and
 * @tensors.npy. For line i it writes i.txt (a line for each class, attribute, parameter, buffer,
 * name of the state and argument, or an error), i.safetensors, and, if there are inputs i.in0.npy,
 * ..., what the module gives in i.out0.npy, ...
 */
#include "capture/capture_impl.h"

#include <cfx/embed/weights.h>
#include <cfx/layers.h>
#include <cfx/weights.h>

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 32 };

static const char *folder;
static size_t line_number;
static FILE *notes;

static const char *file(const char *ending)
{
    static char path[1200];
    snprintf(path, sizeof path, "%s/%zu.%s", folder, line_number, ending);
    return path;
}

static cfx_status write_note(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    return fwrite(data, 1, size, notes) == size ? CFX_OK : CFX_E_IO;
}

static const cfx_sink to_notes = {.write = write_note};

/* ---- arguments ----------------------------------------------------------------------------- */

static cfx_var tensor_var(cfx_scope *s, const char *path)
{
    cfx_error err = {0};
    cfx_tensor *t = cfx_tensor_load_npy(path, NULL, &err);
    cfx_var v = cfx_var_empty();
    if (t)
        v = cfx_var_from_tensor(s, t);
    else
        fprintf(stderr, "nn_probe: %s\n", err.message);
    cfx_tensor_release(t);
    return v;
}

static cfx_var scalar_var(cfx_scope *s, const char *text)
{
    char *end;
    if (strcmp(text, "None") == 0)
        return cfx_var_none();
    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
        return cfx_var_bool(text[0] == 'T');
    if (text[0] == '\'')
        return cfx_var_str(text + 1);
    if (text[0] == '@')
        return tensor_var(s, text + 1);
    for (int i = 0; i < CFX_DTYPE_COUNT; i++)
        if (strncmp(text, "dtype:", 6) == 0 && strcmp(text + 6, cfx_dtype_name((cfx_dtype)i)) == 0)
            return cfx_var_dtype((cfx_dtype)i);
    const long long i = strtoll(text, &end, 10);
    return *end == '\0' ? cfx_var_int(i) : cfx_var_float(strtod(text, NULL));
}

static cfx_var read_var(cfx_scope *s, char *text)
{
    cfx_var items[MOST];
    size_t n = 0;
    char *save = NULL;
    if (text[0] != '(')
        return scalar_var(s, text);
    for (char *item = strtok_r(text, "(,)", &save); item && n < MOST;
         item = strtok_r(NULL, "(,)", &save))
        items[n++] = scalar_var(s, item);
    return cfx_var_seq_at(CFX_HERE(s), CFX_DATUM_TUPLE, cfx_vars_make(items, n));
}

static cfx_module *make(cfx_scope *s, char *line)
{
    cfx_var args[MOST] = {{0}};
    cfx_schema_param param;
    char *save = NULL;
    const cfx_nn nn = cfxi_ops_nn_find(strtok_r(line, " ", &save));
    size_t n = 0;
    while (cfxi_ops_nn_param(nn, n, &param))
        n++;
    for (char *word = strtok_r(NULL, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        for (size_t i = 0; cfxi_ops_nn_param(nn, i, &param); i++)
            if (equals && param.name.size == (size_t)(equals - word) &&
                memcmp(param.name.text, word, param.name.size) == 0)
                args[i] = read_var(s, equals + 1);
    }
    return cfx_nn_make_at(CFX_HERE(s), nn, args, n);
}

/* ---- what it is ---------------------------------------------------------------------------- */

static cfx_status note_module(void *ctx, cfx_module *m, const char *path, cfx_error *err)
{
    (void)ctx;
    (void)err;
    const char *dot = path[0] ? "." : "";
    fprintf(notes, "class %s %s\n", path[0] ? path : "-", cfx_module_class_name(m));
    for (size_t i = 0; i < m->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (e->kind == CFXI_MEMBER_CHILD)
            continue;
        fprintf(notes, "%s %s%s%s ", e->kind == CFXI_MEMBER_PARAMETER ? "parameter"
                                     : e->kind == CFXI_MEMBER_BUFFER  ? "buffer"
                                                                      : "attr",
                path, dot, e->name);
        cfx_datum_print(e->value, NULL, to_notes, NULL);
        fputc('\n', notes);
    }
    return CFX_OK;
}

static cfx_status note_arg(void *ctx, const cfx_schema_param *param, bool keyword, cfx_value v,
                           cfx_error *err)
{
    (void)ctx;
    cfx_datum d = cfxi_capture_datum_of_value(v, NULL, err);
    fprintf(notes, "arg %s %.*s ", keyword ? "keyword" : "place", (int)param->name.size,
            param->name.text);
    cfx_status status = cfx_datum_print(d, NULL, to_notes, err);
    fputc('\n', notes);
    cfx_datum_release(d);
    return status;
}

static void note_args(cfx_module *m)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(NULL, &cfxi_capture_object_host, &err);
    const cfx_module_tree tree = cfx_module_as_tree(m);
    if (!g || cfxi_ops_nn_each_arg(&tree, g, "", m->nn, note_arg, g, &err) != CFX_OK)
        fprintf(notes, "noargs %s\n", err.message);
    cfx_graph_release(g);
}

static void note_state(cfx_scope *s, const cfx_module *m)
{
    cfx_state *state = cfx_module_state(s, m);
    for (size_t i = 0; state && i < cfx_state_size(state); i++)
        fprintf(notes, "state %s\n", cfx_state_entry(state, i, NULL));
    cfx_state_free(state);
}

/* ---- what it does -------------------------------------------------------------------------- */

/* Tensors in whatever it gives, one after the other. */
static void save_each(cfx_datum d, size_t *n)
{
    char ending[32];
    size_t count;
    const cfx_datum *items = cfx_datum_items(d, &count);
    for (size_t i = 0; i < count; i++)
        save_each(items[i], n);
    snprintf(ending, sizeof ending, "out%zu.npy", *n);
    if (d.kind == CFX_DATUM_TENSOR &&
        cfx_tensor_save_npy(d.as.tensor, file(ending), NULL) == CFX_OK)
        ++*n;
}

static void run(cfx_scope *s, cfx_module *m)
{
    cfx_var in[MOST];
    char ending[32];
    size_t n = 0;
    size_t outputs = 0;
    for (; n < MOST; n++) {
        snprintf(ending, sizeof ending, "in%zu.npy", n);
        FILE *there = fopen(file(ending), "rb");
        if (!there)
            break;
        fclose(there);
        in[n] = tensor_var(s, file(ending));
    }
    if (n == 0 || !cfx_scope_ok(s))
        return;
    cfx_module_train(m, false);
    cfx_datum y = cfx_var_datum(s, cfx_call_at(CFX_HERE(s), m, cfx_vars_make(in, n)));
    save_each(y, &outputs);
    cfx_datum_release(y);
}

static void probe(char *line)
{
    cfx_error err = {0};
    cfx_scope *s = cfx_scope_new(&(cfx_scope_options){.seed = 1000 + line_number}, &err);
    cfx_module *m = make(s, line);
    if (m) {
        cfxi_capture_module_each(m, note_module, NULL, &err);
        note_state(s, m);
        note_args(m);
        cfx_module_save(s, m, file("safetensors"));
        run(s, m);
    }
    if (!cfx_scope_ok(s))
        fprintf(notes, "error %s\n", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

int main(int argc, char **argv)
{
    char path[1200];
    char line[4096];
    if (argc != 2) {
        fprintf(stderr, "usage: nn_probe FOLDER\n");
        return 2;
    }
    folder = argv[1];
    snprintf(path, sizeof path, "%s/calls.txt", folder);
    FILE *calls = fopen(path, "r");
    if (!calls) {
        perror(path);
        return 1;
    }
    for (; fgets(line, sizeof line, calls); line_number++) {
        line[strcspn(line, "\n")] = '\0';
        notes = fopen(file("txt"), "w");
        if (!notes) {
            perror(file("txt"));
            break;
        }
        probe(line);
        fclose(notes);
    }
    fclose(calls);
    return 0;
}
