/* main.c - makes the files that follow from the tables ops.def and nn.def, and from prelude.py.
 *
 *     generate FOLDER PRELUDE HEADER...
 *
 *     FOLDER/include/cfx/operators.h    a C function for each operator
 *     FOLDER/include/cfx/layers.h       a C function for each class of torch.nn
 *     FOLDER/generated/ops_index.inc    the names of the operators, sorted, for src/ops/op_table.c
 *     FOLDER/generated/c_names.inc      the operators whose function is not called cfx_<id>
 *     FOLDER/generated/prelude.inc      the text of PRELUDE, for src/script/evaluate/prelude.c
 *
 * The HEADERs are the public headers: a function must not take a name that one of them uses. A file
 * whose text does not change is left alone, so nothing is rebuilt without need. The program runs
 * once and exits, so it frees no memory.
 */
#include "generate.h"

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("usage: generate FOLDER PRELUDE HEADER...\n", stderr);
        return 2;
    }
    const char *folder = argv[1];
    const names used = read_headers(argv + 3, argc - 3);
    write_file(folder, "include/cfx/operators.h", operators_h(&used));
    write_file(folder, "include/cfx/layers.h", layers_h());
    write_file(folder, "generated/ops_index.inc", ops_index_inc());
    write_file(folder, "generated/c_names.inc", c_names_inc(&used));
    write_file(folder, "generated/prelude.inc", bytes_inc(argv[2]));
    return 0;
}
