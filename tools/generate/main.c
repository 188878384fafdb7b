/* main.c - makes the files that follow from the tables ops.def and nn.def, and from Python sources.
 *
 *     generate FOLDER FILE...
 *
 *     FOLDER/include/cfx/operators.h    a C function for each operator
 *     FOLDER/include/cfx/layers.h       a C function for each class of torch.nn
 *     FOLDER/generated/ops_index.inc    the names of the operators, sorted, for src/ops/op_table.c
 *     FOLDER/generated/c_names.inc      the operators whose function is not called cfx_<id>
 *     FOLDER/generated/NAME.inc         the text of each FILE called NAME.py, as a C array
 *
 * The other FILEs are the public headers: a function must not take a name that one of them uses. A
 * file whose text does not change is left alone, so nothing is rebuilt without need. The program
 * runs once and exits, so it frees no memory.
 */
#include "generate.h"

#include <string.h>

static bool is_python(const char *path)
{
    const size_t n = strlen(path);
    return n > 3 && strcmp(path + n - 3, ".py") == 0;
}

/* src/script/evaluate/prelude.py becomes generated/prelude.inc. */
static void write_source(const char *folder, const char *path)
{
    char name[256];
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    snprintf(name, sizeof name, "generated/%.*s.inc", (int)(strlen(base) - 3), base);
    write_file(folder, name, bytes_inc(path));
}

int main(int argc, char **argv)
{
    int n = 0;  /* of the headers, which are put at the front */
    if (argc < 3) {
        fputs("usage: generate FOLDER FILE...\n", stderr);
        return 2;
    }
    const char *folder = argv[1];
    char **headers = argv + 2;
    for (int i = 2; i < argc; i++) {
        if (is_python(argv[i]))
            write_source(folder, argv[i]);
        else
            headers[n++] = argv[i];
    }
    const names used = read_headers(headers, n);
    write_file(folder, "include/cfx/operators.h", operators_h(&used));
    write_file(folder, "include/cfx/layers.h", layers_h());
    write_file(folder, "generated/ops_index.inc", ops_index_inc());
    write_file(folder, "generated/c_names.inc", c_names_inc(&used));
    return 0;
}
