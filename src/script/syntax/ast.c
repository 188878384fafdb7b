/* ast.c - the description of the node classes, from ast.def. */
#include "ast.h"

static const char names[CFXI_AST_COUNT][17] = {
#define CFX_AST(class, fields) #class,
#define CFX_AST_BARE CFX_AST
#include "ast.def"
#undef CFX_AST
#undef CFX_AST_BARE
};

static const bool located[CFXI_AST_COUNT] = {
#define CFX_AST(class, fields) true,
#define CFX_AST_BARE(class, fields) false,
#include "ast.def"
#undef CFX_AST
#undef CFX_AST_BARE
};

const char *cfxi_syntax_ast_name(cfxi_ast_kind kind) { return names[kind]; }
bool cfxi_syntax_ast_located(cfxi_ast_kind kind) { return located[kind]; }

#define FIELD(kind, name) {#name, CFXI_FIELD_##kind, offsetof(self, name)},
#define AST_NODE(name) FIELD(NODE, name)
#define AST_OPT(name) FIELD(OPT, name)
#define AST_LIST(name) FIELD(LIST, name)
#define AST_OP(name) FIELD(OP, name)
#define AST_OPS(name) FIELD(OPS, name)
#define AST_NAME(name) FIELD(NAME, name)
#define AST_OPTNAME(name) FIELD(OPTNAME, name)
#define AST_NAMES(name) FIELD(NAMES, name)
#define AST_INT(name) FIELD(INT, name)
#define AST_VALUE(name) FIELD(VALUE, name)

/* A block for each class, so that each has a `self` of its own; the last row ends the table. */
const cfxi_ast_field *cfxi_syntax_ast_fields(cfxi_ast_kind kind, size_t *n)
{
    switch (kind) {
#define CFX_AST(class, fields)                                                                     \
    case CFXI_AST_##class: {                                                                       \
        typedef cfxi_##class self;                                                                 \
        static const cfxi_ast_field rows[] = {fields {"", 0, sizeof(self)}};                       \
        *n = sizeof rows / sizeof *rows - 1;                                                       \
        return rows;                                                                               \
    }
#define CFX_AST_BARE CFX_AST
#include "ast.def"
#undef CFX_AST
#undef CFX_AST_BARE
    case CFXI_AST_COUNT:
        break;
    }
    *n = 0;
    return NULL;
}
