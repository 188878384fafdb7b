/* parse.h - Python source to its tree (ast.h).
 *
 * The grammar is that of Python 3.8 to 3.13. What Python's compiler refuses after parsing
 * ("'return' outside function") is not looked at.
 */
#ifndef CFXI_SCRIPT_PARSE_H
#define CFXI_SCRIPT_PARSE_H

#include "ast.h"
#include "lex.h"

enum {
    /* How deep expressions can be nested; Python's limit is 200 brackets. */
    CFXI_SCRIPT_DEPTH = 300,
    /* How high the tree of an expression can become by chains like a + b + c ..., which need no
     * recursion to parse, and how long a chain of elif can be. */
    CFXI_SCRIPT_HEIGHT = 3000
};

typedef struct cfxi_script {
    const cfx_allocator *allocator;
    cfxi_arena arena;
    cfxi_names names;
    const char *text;   /* the source as it was parsed: UTF-8, '\n' line ends; see source_text.c */
    size_t size;
    cfxi_Module *module;
    size_t node_count;
} cfxi_script;

/* The tree of a source, which is copied. `is_text`: it is UTF-8 whatever a coding comment says.
 * NULL with *err set: CFX_E_SYNTAX with line and column, and a message that shows the line with a
 * caret; CFX_E_LIMIT where something is nested too deeply; CFX_E_UNSUPPORTED for what needs tables
 * that cfx does not carry; CFX_E_NOMEM. */
cfxi_script *cfxi_syntax_script_parse(const char *source, size_t size, bool is_text,
                                      const cfx_allocator *allocator, cfx_error *err);
void cfxi_syntax_script_free(cfxi_script *script);  /* NULL is allowed */

/* The offset of a place in the source; a column that its line does not have is at its end. */
size_t cfxi_syntax_script_offset(const cfxi_script *script, uint32_t line, uint32_t column);

/* How Python's ast.dump writes a tree. */
typedef struct cfxi_dump_style {
    int python;       /* the minor version: 11 has no type_params, from 13 on empty lists are left
                         out */
    bool attributes;  /* include_attributes */
    bool joined;      /* places inside f-strings too, which differ between versions of Python */
} cfxi_dump_style;

/* Writes what Python's ast.dump(node, include_attributes=...) gives. */
cfx_status cfxi_syntax_ast_dump(const cfxi_ast *node, const cfxi_dump_style *style, cfx_sink sink,
                                cfx_error *err);

#endif
