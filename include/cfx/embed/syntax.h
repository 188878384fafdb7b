/* For language bindings and back ends; may change between versions.
 *
 * embed/syntax.h - Python source, parsed without Python.
 *
 * The trees are for the library's own use; here they can be looked at as text.
 */
#ifndef CFX_EMBED_SYNTAX_H
#define CFX_EMBED_SYNTAX_H

#include <cfx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How to write a tree: as ast.dump(tree, include_attributes=True) of a version of Python. */
typedef struct cfx_syntax_style {
    int python;             /* the minor version, as of 3.13: they differ in what is left out */
    bool joined_positions;  /* positions inside f-strings too: right for 3.12 and newer */
} cfx_syntax_style;

/* Parses the bytes of a Python file and writes its tree; `sink` may be NULL, then the source is
 * only checked. CFX_E_SYNTAX with line and column, and a message that shows the line; CFX_E_LIMIT
 * where something is nested too deeply; CFX_E_UNSUPPORTED for encodings other than UTF-8 and
 * Latin-1, and for \N{...}. `style` NULL means all positions, as of Python 3.13. */
CFX_API cfx_status cfx_syntax_dump(const char *source, size_t size, const cfx_syntax_style *style,
                                   const cfx_sink *sink, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
