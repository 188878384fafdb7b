/* cmd_pack.c - cfx pack: a graph and its weights, or a folder of cfx unpack, as one .cfx file. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PACK_WEIGHTS, PACK_NAME, PACK_OUTPUT };
enum { PATH_ROOM = 4096 };

static const cli_option verb_options[] = {
    [PACK_WEIGHTS] = {"--weights", "FILE", false,
                      "the parameters: {tensors}; the default is beside a graph", true},
    [PACK_NAME] = {"--name", "NAME", false, "the name of the model's class", false},
    [PACK_OUTPUT] = {"--output", "FILE", false, "the .cfx file to write; or -o FILE", false},
    {NULL, NULL, false, NULL, false},
};

/* ---- weights ------------------------------------------------------------------------------- */

static cfx_status add_weights(cfx_state *all, const char *path, cfx_error *err)
{
    cfx_state *some = cfx_state_load(path, NULL, err);
    cfx_status status = some ? CFX_OK : err->status;
    for (size_t i = 0; status == CFX_OK && i < cfx_state_size(some); i++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(some, i, &t);
        if (cfx_state_get(all, name))
            status = cfx_error_set(err, CFX_E_VALUE, "'%.150s': another file of weights has a "
                                   "tensor '%.100s', too", path, name);
        else
            status = cfx_state_set(all, name, t, err);
    }
    cfx_state_free(some);
    return status;
}

/* Those that are given, or those of `beside`, if there is such a file. */
static cfx_state *read_weights(const cli_args *args, const char *beside, cfx_error *err)
{
    cfx_state *all = cfx_state_new(NULL, err);
    cfx_status status = all ? CFX_OK : err->status;
    for (size_t i = 0; status == CFX_OK && i < args->num_repeated; i++)
        status = add_weights(all, args->repeated[i], err);
    if (status == CFX_OK && args->num_repeated == 0 && access(beside, F_OK) == 0)
        status = add_weights(all, beside, err);
    if (status == CFX_OK)
        return all;
    cfx_state_free(all);
    return NULL;
}

/* ---- a graph ------------------------------------------------------------------------------- */

/* Layers have settings, which IR text does not have; and tensors must be there. */
static cfx_status check_names(const cfx_graph *g, const cfx_state *weights, cfx_error *err)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        const char *target = cfx_node_target(n, NULL, NULL);
        if (cfx_node_op(n) == CFX_OP_CALL_MODULE)
            return cfx_error_set(err, CFX_E_VALUE, "%%%s calls the layer '%.80s', whose settings IR"
                                 " text does not have; capture the model with -o FILE.cfx, or "
                                 "without --keep-modules", cfx_node_name(n, NULL), target);
        if (cfx_node_op(n) == CFX_OP_GET_ATTR && !cfx_state_get(weights, target))
            return cfx_error_set(err, CFX_E_KEY, "%%%s reads the tensor '%.80s', which is not among"
                                 " the weights; give the file that has it with --weights FILE",
                                 cfx_node_name(n, NULL), target);
    }
    return CFX_OK;
}

static cfx_status save_graph(const cli_args *args, const cli_input *in, const cfx_state *weights,
                             const char *model, cfx_error *err)
{
    const char *path = args->values[PACK_OUTPUT];
    cfx_status status = check_names(in->graph, weights, err);
    cfx_scope *scope = status == CFX_OK ? cfx_scope_new(NULL, err) : NULL;
    cfx_module *m = NULL;
    if (scope)
        m = cfx_module_from_weights(scope, in->graph, model, weights);
    if (m)
        cfx_module_write(scope, m, path);
    if (scope && !cfx_scope_ok(scope))
        *err = *cfx_scope_error(scope);
    cfx_state *kept = err->status == CFX_OK && m ? cfx_module_state(scope, m) : NULL;
    if (kept) {
        const size_t n = cfx_state_size(kept);
        const size_t all = cfx_state_size(weights);
        printf("%s: %zu nodes, %zu tensor%s", path, cfx_graph_size(in->graph), n,
               n == 1 ? "" : "s");
        if (n < all)
            printf("; %zu that the graph does not read %s left out", all - n,
                   all - n == 1 ? "is" : "are");
        printf("\n");
    }
    cfx_state_free(kept);
    cfx_scope_free(scope);
    return err->status;
}

static int pack_graph(const cli_args *args)
{
    cli_input in;
    cfx_error err = {.status = CFX_OK};
    char stem[256];
    char beside[PATH_ROOM];
    int code = CLI_OK;
    if (!cli_open(&in, args->file)) {
        cli_close(&in);
        return CLI_UNREADABLE;
    }
    cli_stem(args->file, stem, sizeof stem);
    if (!cli_beside(args->file, beside, sizeof beside))
        beside[0] = '\0';
    cfx_state *weights = in.package ? NULL : read_weights(args, beside, &err);
    if (in.package)
        cfx_error_set(&err, CFX_E_VALUE, "this is a .cfx file already; cfx unpack takes it apart");
    else if (weights)
        save_graph(args, &in, weights,
                   args->values[PACK_NAME] ? args->values[PACK_NAME]
                   : strcmp(args->file, "-") == 0 ? "Model" : stem, &err);
    if (err.status != CFX_OK)
        code = cli_failed(&in, &err);
    cfx_state_free(weights);
    cli_close(&in);
    return code;
}

/* ---- a folder ------------------------------------------------------------------------------ */

/* What cfx.json says of the file that the folder was. */
typedef struct manifest {
    cli_input file;
    cfx_graph *graph;   /* its JSON is a value of the IR, which has a parser for such things */
    cfx_value values;
} manifest;

static cfx_value field(cfx_value dict, const char *key)
{
    size_t n = 0;
    const cfx_value *items = dict.kind == CFX_KIND_DICT ? cfx_value_items(dict, &n) : NULL;
    for (size_t i = 0; i + 1 < n; i += 2)
        if (items[i].kind == CFX_KIND_STR && strcmp(cfx_value_text(items[i], NULL), key) == 0)
            return items[i + 1];
    return cfx_value_none();
}

static const char *text_field(cfx_value dict, const char *key)
{
    const cfx_value v = field(dict, key);
    return v.kind == CFX_KIND_STR ? cfx_value_text(v, NULL) : "";
}

/* False after a message. A folder without one is fine. */
static bool read_manifest(manifest *m, const char *path)
{
    cfx_buffer text;
    cfx_error err = {.status = CFX_OK};
    size_t n = 0;
    m->values = cfx_value_none();
    if (access(path, F_OK) != 0)
        return true;
    if (!cli_read(&m->file, path, "JSON"))
        return false;
    cfx_buffer_init(&text, NULL);
    if (cfx_buffer_append(&text, "graph():\n  output(", 18) == CFX_OK &&
        cfx_buffer_append(&text, m->file.text, m->file.size) == CFX_OK &&
        cfx_buffer_append(&text, ")\n", 2) == CFX_OK)
        m->graph = cfx_graph_parse(text.data, text.size, NULL, NULL, &err);
    cfx_buffer_free(&text);
    const cfx_node *output = m->graph ? cfx_graph_last(m->graph) : NULL;
    const cfx_value *args = output ? cfx_value_items(cfx_node_args(output), &n) : NULL;
    if (n == 1 && args[0].kind == CFX_KIND_DICT) {
        m->values = args[0];
        return true;
    }
    fprintf(stderr, "%s: not what cfx unpack writes; remove the file, and give --name NAME\n",
            path);
    return false;
}

static bool has_part(const cli_parts *parts, const char *name)
{
    for (size_t i = 0; i < parts->n; i++)
        if (strcmp(parts->items[i].name, name) == 0)
            return true;
    return false;
}

/* Reads FOLDER/name as a text of that name. */
static cfx_status add_file(cli_parts *parts, const char *folder, const char *name, cfx_error *err)
{
    char path[PATH_ROOM];
    cli_input in = {.text = NULL};
    cfx_status status = CFX_OK;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= PATH_ROOM || access(path, R_OK) != 0)
        return cfx_error_set(err, CFX_E_IO, "it has no readable file '%.100s', which a .cfx file "
                             "needs, or cfx.json lists", name);
    cfx_buffer *text = cli_parts_add(parts, name, err);
    if (!text || !cli_read(&in, path, "IR text"))
        status = text ? cfx_error_set(err, CFX_E_IO, "nothing was written") : err->status;
    else if (cfx_buffer_append(text, in.text, in.size) != CFX_OK)
        status = cfx_error_set(err, CFX_E_NOMEM, "out of memory");
    cli_close(&in);
    return status;
}

/* Texts in the order of cfx.json, then those that a file always has. */
static cfx_status add_files(cli_parts *parts, const char *folder, cfx_value entries,
                            cfx_error *err)
{
    static const char *const always[] = {"graph.ir", "module.ir", "signature.ir"};
    char path[PATH_ROOM];
    size_t n = 0;
    cfx_status status = CFX_OK;
    const cfx_value *items = entries.kind == CFX_KIND_DICT ? cfx_value_items(entries, &n) : NULL;
    for (size_t i = 0; status == CFX_OK && i + 1 < n; i += 2) {
        const char *name = items[i].kind == CFX_KIND_STR ? cfx_value_text(items[i], NULL) : "";
        if (strcmp(name, "weights.safetensors") != 0 && strcmp(name, "cfx.json") != 0)
            status = add_file(parts, folder, name, err);
    }
    for (size_t i = 0; status == CFX_OK && i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, always[i]);
        if (!has_part(parts, always[i]) && (i < 2 || access(path, F_OK) == 0))
            status = add_file(parts, folder, always[i], err);
    }
    return status;
}

static cfx_status save_folder(const cli_args *args, const manifest *m, cfx_error *err)
{
    cli_parts parts = {0};
    char stem[256];
    char beside[PATH_ROOM];
    const char *path = args->values[PACK_OUTPUT];
    const char *model = text_field(m->values, "model");
    const bool outside = strcmp(text_field(m->values, "weights"), "outside") == 0 &&
                         args->num_repeated == 0;
    cli_stem(args->file, stem, sizeof stem);
    if (args->values[PACK_NAME])
        model = args->values[PACK_NAME];
    else if (m->values.kind != CFX_KIND_DICT)
        model = stem;
    snprintf(beside, sizeof beside, "%s/weights.safetensors", args->file);
    cfx_state *weights = outside ? NULL : read_weights(args, beside, err);
    cfx_status status = outside || weights ? add_files(&parts, args->file,
                                                       field(m->values, "entries"), err)
                                           : err->status;
    if (status == CFX_OK)
        status = cli_parts_save(&parts, path, model, weights, err);
    if (status == CFX_OK)
        printf("%s: %zu text%s, %zu tensor%s\n", path, parts.n, parts.n == 1 ? "" : "s",
               weights ? cfx_state_size(weights) : 0,
               weights && cfx_state_size(weights) == 1 ? "" : "s");
    cfx_state_free(weights);
    cli_parts_free(&parts);
    return status;
}

static int pack_folder(const cli_args *args)
{
    manifest m = {.graph = NULL};
    char path[PATH_ROOM];
    cfx_error err = {.status = CFX_OK};
    const cli_input in = {.name = args->file};
    snprintf(path, sizeof path, "%s/cfx.json", args->file);
    int code = read_manifest(&m, path) ? CLI_OK : CLI_UNREADABLE;
    if (code == CLI_OK && save_folder(args, &m, &err) != CFX_OK)
        code = cli_failed(&in, &err);
    cfx_graph_release(m.graph);
    cli_close(&m.file);
    return code;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int cmd_pack(const cli_args *args)
{
    struct stat what;
    const char *path = args->values[PACK_OUTPUT];
    if (!path)
        return cli_usage_error(args->verb, "give the name of the file to write: -o model.cfx");
    if (!cli_is_package(path))
        return cli_usage_error(args->verb, "'%s' needs the extension .cfx", path);
    if (strcmp(args->file, "-") != 0 && stat(args->file, &what) == 0 && S_ISDIR(what.st_mode))
        return pack_folder(args);
    return pack_graph(args);
}

const cli_verb verb_pack = {
    .name = "pack",
    .summary = "put a graph and its weights, or an unpacked folder, into a .cfx file",
    .usage = "[--weights FILE]... [--name NAME] -o FILE.cfx FILE|FOLDER",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .examples =
        "  cfx pack -o net.cfx net.ir        with the weights of net.safetensors\n"
        "  cfx pack --weights trained.npz --name Net -o net.cfx net.ir\n"
        "  cfx pack -o net.cfx net/          a folder that cfx unpack wrote\n",
    .run = cmd_pack,
};
