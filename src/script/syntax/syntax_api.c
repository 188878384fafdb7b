/* syntax_api.c - the public door to the parser: a source to the text of its tree. */
#include <cfx/embed/syntax.h>

#include "parse.h"

cfx_status cfx_syntax_dump(const char *source, size_t size, const cfx_syntax_style *style,
                           const cfx_sink *sink, cfx_error *err)
{
    cfx_error own;
    const cfxi_dump_style how = {style ? style->python : 13, true,
                                 style ? style->joined_positions : true};
    err = cfxi_base_error_or(err, &own);
    cfxi_script *script = cfxi_syntax_script_parse(source, size, false, NULL, err);
    if (!script)
        return err->status;
    const cfx_status status =
        sink ? cfxi_syntax_ast_dump(&script->module->ast, &how, *sink, err) : CFX_OK;
    cfxi_syntax_script_free(script);
    return status;
}
