/* ast.h - the tree of a Python source, with the node classes and field names of Python's `ast`.
 *
 *     switch (node->kind) {
 *     case CFXI_AST_BinOp: {
 *         const cfxi_BinOp *b = cfxi_syntax_as_BinOp(node);
 *         walk(b->left); ... b->op == CFXI_AST_Add ...
 *
 * All of a tree lies in the arena of its cfxi_script (parse.h) and lives as long as that. Nodes are
 * not changed after parsing. Names are interned: equal names of one script are the same pointer.
 * How deep a tree can be is bounded (CFXI_SCRIPT_HEIGHT in parse.h), so that it can be walked by
 * recursion.
 */
#ifndef CFXI_SCRIPT_AST_H
#define CFXI_SCRIPT_AST_H

#include "base/base_impl.h"

#include <assert.h>

typedef enum cfxi_ast_kind {
#define CFX_AST(class, fields) CFXI_AST_##class,
#define CFX_AST_BARE CFX_AST
#include "ast.def"
#undef CFX_AST
#undef CFX_AST_BARE
    CFXI_AST_COUNT
} cfxi_ast_kind;

/* What every node begins with. The place is as Python gives it: lines from 1, columns in bytes of
 * UTF-8 from 0, the end one behind the last byte. All zero in classes without a place. */
typedef struct cfxi_ast {
    cfxi_ast_kind kind;
    uint32_t line, column;
    uint32_t end_line, end_column;
} cfxi_ast;

typedef struct cfxi_ast_list {
    cfxi_ast **items;
    size_t count;
} cfxi_ast_list;

typedef struct cfxi_op_list {
    cfxi_ast_kind *items;
    size_t count;
} cfxi_op_list;

typedef struct cfxi_name_list {
    const char **items;
    size_t count;
} cfxi_name_list;

typedef enum cfxi_constant_kind {
    CFXI_CONST_NONE,
    CFXI_CONST_FALSE,
    CFXI_CONST_TRUE,
    CFXI_CONST_ELLIPSIS,
    CFXI_CONST_INT,      /* text: the digits as spelled ("0xff"), without '_'; also `i` if `fits` */
    CFXI_CONST_FLOAT,    /* f */
    CFXI_CONST_COMPLEX,  /* f: the imaginary part; the real one is 0 */
    CFXI_CONST_STR,      /* text: decoded; UTF-8 in which lone surrogates may stand */
    CFXI_CONST_BYTES     /* text: decoded */
} cfxi_constant_kind;

typedef struct cfxi_constant {
    cfxi_constant_kind kind;
    bool fits;            /* an INT that `i` holds */
    union {
        int64_t i;
        double f;
    };
    const char *text;     /* not terminated; it may hold any byte */
    size_t size;
} cfxi_constant;

/* ---- the structs: cfxi_BinOp, ... ---------------------------------------------------------- */

#define AST_NODE(name) cfxi_ast *name;
#define AST_OPT(name) cfxi_ast *name;
#define AST_LIST(name) cfxi_ast_list name;
#define AST_OP(name) cfxi_ast_kind name;
#define AST_OPS(name) cfxi_op_list name;
#define AST_NAME(name) const char *name;
#define AST_OPTNAME(name) const char *name;
#define AST_NAMES(name) cfxi_name_list name;
#define AST_INT(name) int name;
#define AST_VALUE(name) cfxi_constant name;
#define CFX_AST(class, fields)                                                                     \
    typedef struct cfxi_##class {                                                                  \
        cfxi_ast ast;                                                                              \
        fields                                                                                     \
    } cfxi_##class;                                                                                \
    static inline cfxi_##class *cfxi_syntax_as_##class(const cfxi_ast *node)                       \
    {                                                                                              \
        assert(node->kind == CFXI_AST_##class);                                                    \
        return (cfxi_##class *)node;                                                               \
    }
#define CFX_AST_BARE CFX_AST
#include "ast.def"
#undef CFX_AST
#undef CFX_AST_BARE
#undef AST_NODE
#undef AST_OPT
#undef AST_LIST
#undef AST_OP
#undef AST_OPS
#undef AST_NAME
#undef AST_OPTNAME
#undef AST_NAMES
#undef AST_INT
#undef AST_VALUE

/* ---- the description, for what treats all classes alike (ast.c) ---------------------------- */

typedef enum cfxi_field_kind {
    CFXI_FIELD_NODE,
    CFXI_FIELD_OPT,
    CFXI_FIELD_LIST,
    CFXI_FIELD_OP,
    CFXI_FIELD_OPS,
    CFXI_FIELD_NAME,
    CFXI_FIELD_OPTNAME,
    CFXI_FIELD_NAMES,
    CFXI_FIELD_INT,
    CFXI_FIELD_VALUE
} cfxi_field_kind;

/* The names lie in the rows, so that the tables need no relocation. */
typedef struct cfxi_ast_field {
    char name[15];
    uint8_t kind;    /* cfxi_field_kind */
    uint16_t offset; /* of the member in the struct */
} cfxi_ast_field;

/* "BinOp". */
const char *cfxi_syntax_ast_name(cfxi_ast_kind kind);
/* Whether nodes of the class have a place in the source. */
bool cfxi_syntax_ast_located(cfxi_ast_kind kind);
/* The fields of the class in Python's order, and how many they are. */
const cfxi_ast_field *cfxi_syntax_ast_fields(cfxi_ast_kind kind, size_t *n);

/* The field of a node, as a pointer to the type that ast.def gives it. */
static inline const void *cfxi_syntax_ast_get(const cfxi_ast *node, const cfxi_ast_field *field)
{
    return (const char *)node + field->offset;
}

#endif
