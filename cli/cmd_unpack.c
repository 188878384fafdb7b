/* cmd_unpack.c - cfx unpack: the entries of a .cfx file as files of a folder. */
#include "cli.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNPACK_OUTPUT, UNPACK_FORCE };
enum { PATH_ROOM = 4096 };

static const cli_option verb_options[] = {
    [UNPACK_OUTPUT] = {"--output", "FOLDER", false,
                       "write here, not beside the file; or -o FOLDER", false},
    [UNPACK_FORCE] = {"--force", NULL, false, "write into a folder that exists, over its files",
                      false},
    {NULL, NULL, false, NULL, false},
};

/* Makes a folder; one that is there is good if it is none that leads elsewhere. */
static cfx_status make_folder(const char *path, cfx_error *err)
{
    struct stat what;
    if (mkdir(path, 0777) == 0)
        return CFX_OK;
    const int why = errno;
    if (why == EEXIST && lstat(path, &what) == 0 && S_ISDIR(what.st_mode))
        return CFX_OK;
    return cfx_error_set(err, CFX_E_IO, "cannot make the folder '%.150s': %s", path, strerror(why));
}

static cfx_status too_long(const char *name, cfx_error *err)
{
    return cfx_error_set(err, CFX_E_IO, "the path of '%.100s' is too long", name);
}

/* The folders on the way to an entry: "graphs", "graphs/1". */
static cfx_status make_way(const char *folder, const char *name, cfx_error *err)
{
    char path[PATH_ROOM];
    cfx_status status = CFX_OK;
    for (const char *slash = strchr(name, '/'); status == CFX_OK && slash;
         slash = strchr(slash + 1, '/')) {
        const int n = snprintf(path, sizeof path, "%s/%.*s", folder, (int)(slash - name), name);
        status = n < PATH_ROOM ? make_folder(path, err) : too_long(name, err);
    }
    return status;
}

/* The loader refuses names that lead out of a folder. A link that is in the way is replaced, not
 * followed. */
static cfx_status write_entry(const cfx_package *p, const char *folder, const char *name,
                              cfx_error *err)
{
    char path[PATH_ROOM];
    cfx_buffer text;
    size_t size;
    const char *data = cfx_package_text(p, name, &size);
    cfx_status status = make_way(folder, name, err);
    if (status != CFX_OK)
        return status;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= PATH_ROOM)
        return too_long(name, err);
    if (unlink(path) != 0 && errno != ENOENT)
        return cfx_error_set(err, CFX_E_IO, "cannot replace '%.150s': %s", path, strerror(errno));
    if (!data)
        return cfx_state_save_safetensors(cfx_package_weights(p), path, err);
    cfx_buffer_init(&text, NULL);
    if (cfx_buffer_append(&text, data, size) != CFX_OK)
        status = cfx_error_set(err, CFX_E_NOMEM, "out of memory");
    else if (cli_write_file(path, &text) != CLI_OK)
        status = cfx_error_set(err, CFX_E_IO, "not all of its entries are written");
    cfx_buffer_free(&text);
    return status;
}

static cfx_status unpack(const cli_args *args, const cfx_package *p, const char *folder,
                         cfx_error *err)
{
    const char *name;
    uint64_t size;
    struct stat what;
    if (lstat(folder, &what) == 0 && !args->values[UNPACK_FORCE])
        return cfx_error_set(err, CFX_E_VALUE, "'%.150s' exists; write elsewhere with -o FOLDER, or"
                             " over it with --force", folder);
    cfx_status status = cfx_package_verify(p, err);
    if (status == CFX_OK)
        status = make_folder(folder, err);
    for (size_t i = 0; status == CFX_OK && (name = cfx_package_entry(p, i, &size)); i++) {
        cli_progress("unpacking", (size_t)size);
        status = write_entry(p, folder, name, err);
        cli_progress_end();
        if (status == CFX_OK)
            printf("%s/%s: %llu bytes\n", folder, name, (unsigned long long)size);
    }
    return status;
}

/* "dir/net" for "dir/net.cfx"; false if another name has to be chosen. */
static bool folder_of(const cli_args *args, char out[PATH_ROOM])
{
    const char *given = args->values[UNPACK_OUTPUT];
    size_t size = strlen(args->file);
    if (given) {
        size = strlen(given);
        while (size > 1 && given[size - 1] == '/')
            size--;
        return snprintf(out, PATH_ROOM, "%.*s", (int)size, given) < PATH_ROOM && size > 0;
    }
    if (!cli_is_package(args->file))
        return false;
    return snprintf(out, PATH_ROOM, "%.*s", (int)size - 4, args->file) < PATH_ROOM;
}

static int cmd_unpack(const cli_args *args)
{
    cli_input in;
    char folder[PATH_ROOM];
    cfx_error err = {.status = CFX_OK};
    int code = CLI_OK;
    if (!folder_of(args, folder))
        return cli_usage_error(args->verb, "give the folder to write: -o FOLDER");
    if (!cli_open_package(&in, args->file))
        code = CLI_UNREADABLE;
    else if (unpack(args, in.package, folder, &err) != CFX_OK)
        code = cli_failed(&in, &err);
    cli_close(&in);
    return code;
}

const cli_verb verb_unpack = {
    .name = "unpack",
    .summary = "write the entries of a .cfx file into a folder",
    .usage = "[-o FOLDER] [--force] FILE.cfx",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .examples =
        "  cfx unpack net.cfx                net/graph.ir, net/weights.safetensors, ...\n"
        "  cfx unpack -o parts --force net.cfx\n"
        "  cfx pack -o new.cfx net/          the folder as a file again\n",
    .run = cmd_unpack,
};
