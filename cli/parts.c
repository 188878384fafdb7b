/* parts.c - .cfx files that verbs write: their texts, and what a module is there. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

bool cli_is_package(const char *path)
{
    const cfx_file_format *format = cfx_file_format_of_path(path);
    return format && format->content == CFX_CONTENT_MODEL;
}

void cli_stem(const char *path, char *out, size_t room)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    size_t from = size;
    while (from > 0 && path[from - 1] != '/')
        from--;
    for (size_t i = size; i > from + 1; i--)
        if (path[i - 1] == '.') {
            size = i - 1;
            break;
        }
    snprintf(out, room, "%.*s", (int)(size - from), path + from);
}

bool cli_is_other_graph(const char *name)
{
    static const char end[] = "/graph.ir";
    const size_t size = strlen(name);
    return strncmp(name, "graphs/", 7) == 0 && size >= 7 + sizeof end &&
           strcmp(name + size + 1 - sizeof end, end) == 0;
}

size_t cli_other_graphs(const cli_input *in)
{
    size_t n = 0;
    const char *name;
    for (size_t i = 0; in->package && (name = cfx_package_entry(in->package, i, NULL)); i++)
        n += cli_is_other_graph(name);
    return n;
}

/* ---- texts --------------------------------------------------------------------------------- */

cfx_buffer *cli_parts_add(cli_parts *parts, const char *name, cfx_error *err)
{
    if (strlen(name) >= sizeof parts->items->name) {
        cfx_error_set(err, CFX_E_VALUE, "'%.60s...' is too long for the name of an entry", name);
        return NULL;
    }
    if (parts->n == parts->capacity) {
        const size_t capacity = parts->capacity ? 2 * parts->capacity : 8;
        cli_part *items = realloc(parts->items, capacity * sizeof *items);
        if (!items) {
            cfx_error_set(err, CFX_E_NOMEM, "out of memory");
            return NULL;
        }
        parts->items = items;
        parts->capacity = capacity;
    }
    cli_part *part = &parts->items[parts->n++];
    strcpy(part->name, name);
    cfx_buffer_init(&part->text, NULL);
    return &part->text;
}

void cli_parts_free(cli_parts *parts)
{
    for (size_t i = 0; i < parts->n; i++)
        cfx_buffer_free(&parts->items[i].text);
    free(parts->items);
}

/* ---- saving -------------------------------------------------------------------------------- */

static bool show_progress(void *ctx, uint64_t done, uint64_t all)
{
    (void)ctx;
    (void)done;
    cli_progress("writing", (size_t)(all / 2));
    return !cli_interrupted(NULL);
}

cfx_status cli_parts_save(const cli_parts *parts, const char *path, const char *model,
                          const cfx_state *weights, cfx_error *err)
{
    cfx_package_part *texts = calloc(parts->n + 1, sizeof *texts);
    if (!texts)
        return cfx_error_set(err, CFX_E_NOMEM, "out of memory");
    for (size_t i = 0; i < parts->n; i++)
        texts[i] = (cfx_package_part){parts->items[i].name, parts->items[i].text.data,
                                      parts->items[i].text.size};
    const cfx_package_contents contents = {.model = model, .parts = texts, .num_parts = parts->n,
                                           .weights = weights, .progress = show_progress};
    const cfx_status status = cfx_package_save(path, &contents, err);
    cli_progress_end();
    free(texts);
    return status;
}

/* ---- modules ------------------------------------------------------------------------------- */

cfx_status cli_describe(cli_described *d, cfx_module *m, cfx_error *err)
{
    cfx_buffer_init(&d->graph, NULL);
    cfx_buffer_init(&d->modules, NULL);
    d->weights = cfx_state_new(NULL, err);
    if (!d->weights)
        return err->status;
    return cfx_module_describe(m, cfx_buffer_sink(&d->graph), cfx_buffer_sink(&d->modules),
                               d->weights, err);
}

void cli_described_free(cli_described *d)
{
    cfx_buffer_free(&d->graph);
    cfx_buffer_free(&d->modules);
    cfx_state_free(d->weights);
}
