/* parse_target.c - what can be assigned to or deleted: expressions that become targets. */
#include "parse_impl.h"

const char *cfxi_syntax_expression_text(const cfxi_ast *node)
{
    switch (node->kind) {
    case CFXI_AST_Call: return "function call";
    case CFXI_AST_Constant: {
        const cfxi_constant_kind kind = cfxi_syntax_as_Constant(node)->value.kind;
        return kind == CFXI_CONST_NONE ? "None" : kind == CFXI_CONST_TRUE ? "True"
               : kind == CFXI_CONST_FALSE ? "False" : kind == CFXI_CONST_ELLIPSIS ? "ellipsis"
               : "literal";
    }
    case CFXI_AST_JoinedStr: return "f-string expression";
    case CFXI_AST_Lambda: return "lambda";
    case CFXI_AST_IfExp: return "conditional expression";
    case CFXI_AST_Compare: return "comparison";
    case CFXI_AST_BoolOp:
    case CFXI_AST_BinOp:
    case CFXI_AST_UnaryOp: return "expression";
    case CFXI_AST_GeneratorExp: return "generator expression";
    case CFXI_AST_ListComp: return "list comprehension";
    case CFXI_AST_SetComp: return "set comprehension";
    case CFXI_AST_DictComp: return "dict comprehension";
    case CFXI_AST_Dict: return "dict literal";
    case CFXI_AST_Set: return "set display";
    case CFXI_AST_Yield:
    case CFXI_AST_YieldFrom: return "yield expression";
    case CFXI_AST_Await: return "await expression";
    case CFXI_AST_NamedExpr: return "named expression";
    case CFXI_AST_Tuple: return "tuple";
    case CFXI_AST_List: return "list";
    case CFXI_AST_Starred: return "starred";
    case CFXI_AST_Attribute: return "attribute";
    case CFXI_AST_Subscript: return "subscript";
    default: return "name";
    }
}

static bool no_target(parser *p, const cfxi_ast *node, cfxi_ast_kind ctx)
{
    const char *what = cfxi_syntax_expression_text(node);
    if (ctx == CFXI_AST_Del)
        return cfxi_syntax_fail_node(p, node, "cannot delete %s", what);
    if (next_is(p, CFXI_TOK_ASSIGN))
        return cfxi_syntax_fail_node(
            p, node, "cannot assign to %s here; maybe you meant '==' instead of '='?", what);
    return cfxi_syntax_fail_node(p, node, "cannot assign to %s", what);
}

static bool set_contexts(parser *p, cfxi_ast_list list, cfxi_ast_kind ctx)
{
    for (size_t i = 0; i < list.count; i++) {
        if (!cfxi_syntax_set_context(p, list.items[i], ctx))
            return false;
    }
    return true;
}

bool cfxi_syntax_set_context(parser *p, cfxi_ast *node, cfxi_ast_kind ctx)
{
    switch (node->kind) {
    case CFXI_AST_Name:
        cfxi_syntax_as_Name(node)->ctx = ctx;
        return true;
    case CFXI_AST_Attribute:
        cfxi_syntax_as_Attribute(node)->ctx = ctx;
        return true;
    case CFXI_AST_Subscript:
        cfxi_syntax_as_Subscript(node)->ctx = ctx;
        return true;
    case CFXI_AST_Tuple:
        cfxi_syntax_as_Tuple(node)->ctx = ctx;
        return set_contexts(p, cfxi_syntax_as_Tuple(node)->elts, ctx);
    case CFXI_AST_List:
        cfxi_syntax_as_List(node)->ctx = ctx;
        return set_contexts(p, cfxi_syntax_as_List(node)->elts, ctx);
    case CFXI_AST_Starred:
        if (ctx == CFXI_AST_Del)
            return no_target(p, node, ctx);
        cfxi_syntax_as_Starred(node)->ctx = ctx;
        return cfxi_syntax_set_context(p, cfxi_syntax_as_Starred(node)->value, ctx);
    default:
        return no_target(p, node, ctx);
    }
}

/* *x or x, without comparisons: `in` ends it. */
static cfxi_ast *target(parser *p)
{
    return next_is(p, CFXI_TOK_STAR) ? cfxi_syntax_star_expression(p) : cfxi_syntax_bitwise_or(p);
}

cfxi_ast *cfxi_syntax_for_targets(parser *p)
{
    const place from = here(p);
    cfxi_ast *node = target(p);
    if (node && next_is(p, CFXI_TOK_COMMA))
        node = cfxi_syntax_tuple_rest(p, node, from, target);
    return node && cfxi_syntax_set_context(p, node, CFXI_AST_Store) ? node : NULL;
}
