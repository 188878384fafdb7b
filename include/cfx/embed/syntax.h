/* For language bindings and back ends; may change between versions.
 *
 * embed/syntax.h - parses Python source without Python.
 *
 * The library uses the syntax trees internally; this header writes them as text.
 */
#ifndef CFX_EMBED_SYNTAX_H
#define CFX_EMBED_SYNTAX_H

#include <cfx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How to write a tree: like ast.dump(tree, include_attributes=True) of a given Python version. */
typedef struct cfx_syntax_style {
    int python;             /* the minor version: 13 for 3.13; versions omit different fields */
    bool joined_positions;  /* also positions inside f-strings, as in 3.12 and newer */
} cfx_syntax_style;

/* Parses the bytes of a Python file and writes its tree to `sink`; if that is NULL, only checks the
 * source. `style` NULL: all positions, as in Python 3.13. CFX_E_SYNTAX with line and column, and a
 * message that shows the line; CFX_E_LIMIT if something is nested too deeply; CFX_E_UNSUPPORTED for
 * encodings other than UTF-8 and Latin-1, and for \N{...}. */
CFX_API cfx_status cfx_syntax_dump(const char *source, size_t size, const cfx_syntax_style *style,
                                   const cfx_sink *sink, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
