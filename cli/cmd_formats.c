/* cmd_formats.c - cfx formats: the file formats that the command reads and writes. */
#include "cli.h"

static int cmd_formats(const cli_args *args)
{
    (void)args;
    for (size_t i = 0; cfx_file_format_get(i); i++) {
        const cfx_file_format *f = cfx_file_format_get(i);
        printf("%s%-14s%s%-15s%s\n", cli_ink_on(stdout, CLI_BOLD), f->extension,
               cli_ink_on(stdout, CLI_PLAIN), cfx_content_words(f->content), f->summary);
    }
    return CLI_OK;
}

const cli_verb verb_formats = {
    .name = "formats",
    .summary = "list the file formats and what each can hold",
    .operands = CLI_NO_OPERAND,
    .examples =
        "  cfx formats\n"
        "  cfx formats | grep tensors        what --weights reads\n",
    .run = cmd_formats,
};
