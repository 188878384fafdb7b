/* main.c - makes the files that follow from the tables ops.def and nn.def.
 *
 *     generate FOLDER HEADER...
 *
 *     FOLDER/include/cfx/operators.h    a C function for each operator
 *     FOLDER/include/cfx/layers.h       a C function for each class of torch.nn
 *     FOLDER/generated/ops_index.inc    the names of the operators, sorted, for src/ops/op_table.c
 *     FOLDER/generated/c_names.inc      the operators whose function is not called cfx_<id>
 *
 * The HEADERs are the public headers: a function must not take a name that one of them uses. A file
 * whose text does not change is left alone, so nothing is rebuilt without need. The program runs
 * once and exits, so it frees no memory.
 */
#include "generate.h"

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: generate FOLDER HEADER...\n", stderr);
        return 2;
    }
    const char *folder = argv[1];
    const names used = read_headers(argv + 2, argc - 2);
    write_file(folder, "include/cfx/operators.h", operators_h(&used));
    write_file(folder, "include/cfx/layers.h", layers_h());
    write_file(folder, "generated/ops_index.inc", ops_index_inc());
    write_file(folder, "generated/c_names.inc", c_names_inc(&used));
    return 0;
}
