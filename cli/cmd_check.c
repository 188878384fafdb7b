/* cmd_check.c - cfx check: whether a graph is well formed, and all that is wrong with it. */
#include "cli.h"

#include <stdio.h>

int cmd_check(const cli_args *args)
{
    cli_input in;
    int code = CLI_BAD_INPUT;
    if (cli_open(&in, args->file)) {
        size_t found = cli_findings(&in, cfx_graph_verify);
        if (found == 0) {
            size_t n = cfx_graph_size(in.graph);
            printf("%s: well formed, %zu node%s\n", in.name, n, n == 1 ? "" : "s");
            code = CLI_OK;
        } else if (found > 1) {
            fprintf(stderr, "%s: %zu findings\n", in.name, found);
        }
    }
    cli_close(&in);
    return code;
}
