/* function_scopes.c - the functions of a source, and whose the names in them are, by Python's
 * rules.
 *
 * One walk over the tree finds what has names of its own (functions, lambdas, classes,
 * comprehensions) and what is bound and read in each. Reads are noted, and resolved once all
 * bindings are known: a function can read what the one around it binds only later.
 * Annotations are skipped: they are never evaluated.
 */
#include "evaluate_impl.h"

#include "ir/text_lex_impl.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- sets of names ------------------------------------------------------------------------- */

uint32_t cfxi_eval_name_set_find(const cfxi_name_set *set, const char *name)
{
    const uint64_t *number = cfxi_base_map_find(&set->numbers, name, sizeof *number);
    return number ? (uint32_t)*number : CFXI_NO_SLOT;
}

static bool grow_items(cfxi_name_set *set, cfxi_arena *arena)
{
    const uint32_t capacity = set->capacity ? set->capacity * 2 : 4;
    const char **items = cfxi_base_arena_zeros(arena, capacity, sizeof *items);
    if (!items)
        return false;
    if (set->count > 0)
        memcpy(items, set->items, set->count * sizeof *items);
    cfxi_base_arena_free(arena, set->items, set->capacity * sizeof *items);
    set->items = items;
    set->capacity = capacity;
    return true;
}

static bool add_name(cfxi_name_set *set, const char *name, cfxi_arena *arena)
{
    const cfx_allocator in_arena = cfxi_base_arena_allocator(arena);
    if (cfxi_eval_name_set_find(set, name) != CFXI_NO_SLOT)
        return true;
    if (set->count == set->capacity && !grow_items(set, arena))
        return false;
    uint64_t *number = cfxi_base_map_add(&set->numbers, name, sizeof *number, &in_arena);
    if (!number)
        return false;
    set->items[set->count] = name;
    *number = set->count++;
    return true;
}

/* ---- building ------------------------------------------------------------------------------ */

typedef struct name_read {
    cfx_script_def *def;
    const char *name;
    uint64_t place;
} name_read;

/* `for k in d`, in a loop or a comprehension that is being visited. */
typedef struct going_over {
    const struct going_over *outer;
    const cfxi_ast *target, *iter;
} going_over;

typedef struct builder {
    cfx_script *script;
    cfxi_arena *arena;
    const cfx_allocator *allocator;
    cfx_script_def *at;  /* the innermost def */
    uint32_t loops;   /* around this place, in that def */
    const going_over *over;  /* all loops around it */
    cfxi_vec defs;    /* of cfx_script_def * */
    cfxi_vec reads;   /* of name_read */
    cfxi_vec writes;  /* of name_read */
    cfx_error *err;
} builder;

static bool visit(builder *b, const cfxi_ast *node);

static bool out_of_memory(builder *b)
{
    cfxi_base_nomem(b->err);
    return false;
}

static bool fail_syntax(builder *b, const cfxi_ast *at, const char *format, const char *name)
{
    const cfxi_script *tree = b->script->tree;
    cfxi_lexer lex = {.text = tree->text, .size = tree->size, .err = b->err};
    char what[160];
    snprintf(what, sizeof what, format, name);
    cfxi_ir_lex_error(&lex, cfxi_syntax_script_offset(tree, at->line, at->column), CFX_E_SYNTAX,
                      "%s", what);
    return false;
}

static cfx_script_def *new_def(builder *b, cfxi_def_kind kind, const cfxi_ast *ast,
                               const char *name)
{
    cfx_script_def *def = cfxi_base_arena_zeros(b->arena, 1, sizeof *def);
    if (!def || !cfxi_base_vec_reserve(&b->defs, 1, sizeof def, b->allocator)) {
        out_of_memory(b);
        return NULL;
    }
    ((cfx_script_def **)b->defs.data)[b->defs.size++] = def;
    def->kind = kind;
    def->ast = ast;
    def->name = name;
    def->line = ast->line;
    def->script = b->script;
    def->outer = b->at;
    return def;
}

/* Binds a name in a def, unless it is declared to be another's. A module's names are globals. */
static bool bind_in(builder *b, cfx_script_def *def, const char *name)
{
    if (def->kind == CFXI_DEF_MODULE ||
        cfxi_eval_name_set_find(&def->globals, name) != CFXI_NO_SLOT ||
        cfxi_eval_name_set_find(&def->nonlocals, name) != CFXI_NO_SLOT)
        return true;
    return add_name(&def->names, name, b->arena) || out_of_memory(b);
}

static bool bind(builder *b, const char *name) { return !name || bind_in(b, b->at, name); }

static bool note(builder *b, cfxi_vec *notes, cfx_script_def *def, const char *name,
                 const cfxi_ast *at)
{
    if (!cfxi_base_vec_reserve(notes, 1, sizeof(name_read), b->allocator))
        return out_of_memory(b);
    ((name_read *)notes->data)[notes->size++] =
        (name_read){def, name, (uint64_t)at->line << 32 | at->column};
    return true;
}

static bool note_read(builder *b, const char *name, const cfxi_ast *at)
{
    return note(b, &b->reads, b->at, name, at);
}

static bool visit_list(builder *b, cfxi_ast_list list)
{
    for (size_t i = 0; i < list.count; i++) {
        if (!visit(b, list.items[i]))
            return false;
    }
    return true;
}

static bool visit_fields(builder *b, const cfxi_ast *node)
{
    size_t n;
    const cfxi_ast_field *fields = cfxi_syntax_ast_fields(node->kind, &n);
    for (size_t i = 0; i < n; i++) {
        const void *at = cfxi_syntax_ast_get(node, &fields[i]);
        bool ok = true;
        if (fields[i].kind == CFXI_FIELD_NODE || fields[i].kind == CFXI_FIELD_OPT)
            ok = visit(b, *(cfxi_ast *const *)at);
        else if (fields[i].kind == CFXI_FIELD_LIST)
            ok = visit_list(b, *(const cfxi_ast_list *)at);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- functions, classes, comprehensions ---------------------------------------------------- */

static bool add_parameter(builder *b, cfx_script_def *def, const cfxi_ast *arg)
{
    const char *name = arg ? cfxi_syntax_as_arg(arg)->arg : NULL;
    if (!name)
        return true;
    if (cfxi_eval_def_slot(def, name) != CFXI_NO_SLOT)
        return fail_syntax(b, arg, "duplicate parameter '%.60s'; rename one", name);
    def->n_params++;
    return add_name(&def->names, name, b->arena) || out_of_memory(b);
}

static bool add_parameters(builder *b, cfx_script_def *def, const cfxi_arguments *a)
{
    const cfxi_ast_list lists[] = {a->posonlyargs, a->args, a->kwonlyargs};
    def->params = a;
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < lists[k].count; i++) {
            if (!add_parameter(b, def, lists[k].items[i]))
                return false;
        }
    }
    return add_parameter(b, def, a->vararg) && add_parameter(b, def, a->kwarg);
}

/* What stands inside a def: `body`, or the `expr` of a lambda. */
static bool visit_inside(builder *b, cfx_script_def *def, cfxi_ast_list body, const cfxi_ast *expr)
{
    cfx_script_def *outer = b->at;
    const uint32_t loops = b->loops;
    b->at = def;
    b->loops = 0;
    const bool ok = visit_list(b, body) && visit(b, expr);
    b->at = outer;
    b->loops = loops;
    return ok;
}

static bool visit_defaults(builder *b, const cfxi_arguments *a)
{
    return visit_list(b, a->defaults) && visit_list(b, a->kw_defaults);
}

/* FunctionDef and AsyncFunctionDef have the same fields. */
static bool visit_function(builder *b, const cfxi_ast *node)
{
    const cfxi_FunctionDef *f = (const cfxi_FunctionDef *)node;
    const cfxi_arguments *args = cfxi_syntax_as_arguments(f->args);
    cfx_script_def *def = new_def(b, CFXI_DEF_FUNCTION, node, f->name);
    if (!def)
        return false;
    if (f->decorator_list.count > 0)
        def->line = f->decorator_list.items[0]->line;
    if (node->kind == CFXI_AST_AsyncFunctionDef)
        def->yields = node;
    return bind(b, f->name) && visit_list(b, f->decorator_list) && visit_defaults(b, args) &&
           add_parameters(b, def, args) && visit_inside(b, def, f->body, NULL);
}

static bool visit_lambda(builder *b, const cfxi_Lambda *l)
{
    const cfxi_arguments *args = cfxi_syntax_as_arguments(l->args);
    cfx_script_def *def = new_def(b, CFXI_DEF_LAMBDA, &l->ast, "<lambda>");
    return def && visit_defaults(b, args) && add_parameters(b, def, args) &&
           visit_inside(b, def, (cfxi_ast_list){0}, l->body);
}

static bool visit_class(builder *b, const cfxi_ClassDef *c)
{
    cfx_script_def *def = new_def(b, CFXI_DEF_CLASS, &c->ast, c->name);
    if (!def)
        return false;
    if (c->decorator_list.count > 0)
        def->line = c->decorator_list.items[0]->line;
    return bind(b, c->name) && visit_list(b, c->decorator_list) && visit_list(b, c->bases) &&
           visit_list(b, c->keywords) && visit_inside(b, def, c->body, NULL);
}

/* The first iterable is evaluated outside, all else inside. */
static bool visit_comprehension(builder *b, const cfxi_ast *node, const char *name,
                                const cfxi_ast *value, const cfxi_ast *second,
                                cfxi_ast_list generators)
{
    cfx_script_def *def = new_def(b, CFXI_DEF_COMPREHENSION, node, name);
    cfx_script_def *outer = b->at;
    if (!def || !visit(b, cfxi_syntax_as_comprehension(generators.items[0])->iter))
        return false;
    b->at = def;
    bool ok = true;
    const cfxi_comprehension *first = cfxi_syntax_as_comprehension(generators.items[0]);
    const going_over over = {b->over, first->target, first->iter};
    b->over = &over;
    for (size_t i = 0; ok && i < generators.count; i++)  /* first: ':=' must not bind them */
        ok = visit(b, cfxi_syntax_as_comprehension(generators.items[i])->target);
    ok = ok && visit(b, value) && visit(b, second);
    for (size_t i = 0; ok && i < generators.count; i++) {
        const cfxi_comprehension *c = cfxi_syntax_as_comprehension(generators.items[i]);
        if (c->is_async && !def->yields)
            def->yields = node;
        ok = (i == 0 || visit(b, c->iter)) && visit_list(b, c->ifs);
    }
    b->over = over.outer;
    b->at = outer;
    return ok;
}

/* ---- what binds and reads ------------------------------------------------------------------ */

static bool visit_name(builder *b, const cfxi_Name *n)
{
    if (n->ctx == CFXI_AST_Load)
        return note_read(b, n->id, &n->ast);
    return bind(b, n->id) && (n->ctx == CFXI_AST_Store ? note(b, &b->writes, b->at, n->id, &n->ast)
                                                       : note_read(b, n->id, &n->ast));
}

/* `x = 1` need not be foreseen: if x has no other writes, its value is known at every read. */
static bool visit_assign(builder *b, const cfxi_Assign *a)
{
    const size_t writes = b->writes.size;
    if (!visit_list(b, a->targets))
        return false;
    if (a->value->kind == CFXI_AST_Constant)
        b->writes.size = writes;
    return visit(b, a->value);
}

static bool visit_augmented(builder *b, const cfxi_AugAssign *a)
{
    const bool is_name = a->target->kind == CFXI_AST_Name;
    return visit(b, a->target) &&
           (!is_name || note_read(b, cfxi_syntax_as_Name(a->target)->id, a->target)) &&
           visit(b, a->value);
}

/* `:=` binds in what is around the comprehensions that it stands in. */
static bool visit_walrus(builder *b, const cfxi_NamedExpr *n)
{
    const char *name = cfxi_syntax_as_Name(n->target)->id;
    cfx_script_def *def = b->at;
    for (; def->kind == CFXI_DEF_COMPREHENSION; def = (cfx_script_def *)def->outer) {
        if (cfxi_eval_def_slot(def, name) != CFXI_NO_SLOT)
            return fail_syntax(b, &n->ast, "':=' cannot bind '%.60s', which is the variable of a "
                               "comprehension; use another name", name);
    }
    return bind_in(b, def, name) && note(b, &b->writes, def, name, &n->ast) && visit(b, n->value);
}

/* `import a.b` binds a, `import a.b as c` binds c. */
static bool visit_alias(builder *b, const cfxi_alias *a)
{
    const size_t first = strcspn(a->name, ".");
    if (a->asname || strcmp(a->name, "*") == 0)
        return bind(b, a->asname);
    const uint32_t number = cfxi_syntax_names_add(&b->script->tree->names, a->name, first);
    if (number == UINT32_MAX)
        return out_of_memory(b);
    return bind(b, b->script->tree->names.entries[number].text);
}

static bool declare(builder *b, const cfxi_ast *node, cfxi_name_list names, cfxi_name_set *set)
{
    for (size_t i = 0; i < names.count; i++) {
        if (cfxi_eval_def_slot(b->at, names.items[i]) != CFXI_NO_SLOT)
            return fail_syntax(b, node, "'%.60s' is a parameter or is assigned before this "
                               "declaration; move the declaration up, or "
                               "rename one", names.items[i]);
        if (!add_name(set, names.items[i], b->arena))
            return out_of_memory(b);
    }
    return true;
}

/* What a loop goes over, and with which name: d and k also of `for i, k in enumerate(d)`. */
static going_over head_of(const builder *b, const cfxi_For *f)
{
    const cfxi_Call *c = f->iter->kind == CFXI_AST_Call ? cfxi_syntax_as_Call(f->iter) : NULL;
    const cfxi_Tuple *t = f->target->kind == CFXI_AST_Tuple ? cfxi_syntax_as_Tuple(f->target)
                                                            : NULL;
    if (c && t && t->elts.count == 2 && c->args.count > 0 && c->func->kind == CFXI_AST_Name &&
        strcmp(cfxi_syntax_as_Name(c->func)->id, "enumerate") == 0)
        return (going_over){b->over, t->elts.items[1], c->args.items[0]};
    return (going_over){b->over, f->target, f->iter};
}

/* For and AsyncFor have the same fields. */
static bool visit_for(builder *b, const cfxi_For *f)
{
    if (!visit(b, f->target) || !visit(b, f->iter))
        return false;
    const going_over over = head_of(b, f);
    b->over = &over;
    b->loops++;
    const bool ok = visit_list(b, f->body);
    b->loops--;
    b->over = over.outer;
    return ok && visit_list(b, f->orelse);
}

static bool same_name(const cfxi_ast *a, const cfxi_ast *b)
{
    return a->kind == CFXI_AST_Name && b->kind == CFXI_AST_Name &&
           cfxi_syntax_as_Name(a)->id == cfxi_syntax_as_Name(b)->id;
}

/* `d[k]` inside of `for k in d`: d may be a dict. */
static bool visit_subscript(builder *b, const cfxi_Subscript *s)
{
    for (const going_over *o = b->over; o; o = o->outer) {
        if (same_name(o->iter, s->value) && same_name(o->target, s->slice) &&
            !cfxi_base_pointers_set(&b->script->keyed, o->iter, (void *)o->iter, b->allocator))
            return out_of_memory(b);
    }
    return visit_fields(b, &s->ast);
}

static bool visit_while(builder *b, const cfxi_While *w)
{
    if (!visit(b, w->test))
        return false;
    b->loops++;
    const bool ok = visit_list(b, w->body);
    b->loops--;
    return ok && visit_list(b, w->orelse);
}

static bool visit_jump(builder *b, const cfxi_ast *node)
{
    const bool is_return = node->kind == CFXI_AST_Return;
    if (is_return && b->at->kind != CFXI_DEF_FUNCTION)
        return fail_syntax(b, node, "'%s' outside function", "return");
    if (!is_return && b->loops == 0)
        return fail_syntax(b, node, "'%s' outside loop",
                           node->kind == CFXI_AST_Break ? "break" : "continue");
    return visit_fields(b, node);
}

static bool note_yield(builder *b, const cfxi_ast *node)
{
    if (b->at->kind == CFXI_DEF_MODULE || b->at->kind == CFXI_DEF_CLASS)
        return fail_syntax(b, node, "'%s' outside function",
                           node->kind == CFXI_AST_Await ? "await" : "yield");
    if (!b->at->yields)
        b->at->yields = node;
    return visit_fields(b, node);
}

static bool visit(builder *b, const cfxi_ast *node)
{
    if (!node)
        return true;
    switch ((unsigned)node->kind) {
    case CFXI_AST_FunctionDef:
    case CFXI_AST_AsyncFunctionDef:
        return visit_function(b, node);
    case CFXI_AST_Lambda:
        return visit_lambda(b, cfxi_syntax_as_Lambda(node));
    case CFXI_AST_ClassDef:
        return visit_class(b, cfxi_syntax_as_ClassDef(node));
#define COMPREHENSION(class, name, value, second)                                                  \
    case CFXI_AST_##class: {                                                                       \
        const cfxi_##class *c = cfxi_syntax_as_##class(node);                                      \
        return visit_comprehension(b, node, name, value, second, c->generators);                   \
    }
    COMPREHENSION(ListComp, "<listcomp>", c->elt, NULL)
    COMPREHENSION(SetComp, "<setcomp>", c->elt, NULL)
    COMPREHENSION(GeneratorExp, "<genexpr>", c->elt, NULL)
    COMPREHENSION(DictComp, "<dictcomp>", c->key, c->value)
#undef COMPREHENSION
    case CFXI_AST_Name:
        return visit_name(b, cfxi_syntax_as_Name(node));
    case CFXI_AST_Assign:
        return visit_assign(b, cfxi_syntax_as_Assign(node));
    case CFXI_AST_AugAssign:
        return visit_augmented(b, cfxi_syntax_as_AugAssign(node));
    case CFXI_AST_NamedExpr:
        return visit_walrus(b, cfxi_syntax_as_NamedExpr(node));
    case CFXI_AST_AnnAssign:
        return visit(b, cfxi_syntax_as_AnnAssign(node)->target) &&
               visit(b, cfxi_syntax_as_AnnAssign(node)->value);
    case CFXI_AST_TypeAlias:
        return visit(b, cfxi_syntax_as_TypeAlias(node)->name);
    case CFXI_AST_alias:
        return visit_alias(b, cfxi_syntax_as_alias(node));
    case CFXI_AST_ExceptHandler:
        return bind(b, cfxi_syntax_as_ExceptHandler(node)->name) && visit_fields(b, node);
    case CFXI_AST_MatchAs:
        return bind(b, cfxi_syntax_as_MatchAs(node)->name) && visit_fields(b, node);
    case CFXI_AST_MatchStar:
        return bind(b, cfxi_syntax_as_MatchStar(node)->name);
    case CFXI_AST_MatchMapping:
        return bind(b, cfxi_syntax_as_MatchMapping(node)->rest) && visit_fields(b, node);
    case CFXI_AST_For:
    case CFXI_AST_AsyncFor:
        return visit_for(b, (const cfxi_For *)node);
    case CFXI_AST_Subscript:
        return visit_subscript(b, cfxi_syntax_as_Subscript(node));
    case CFXI_AST_While:
        return visit_while(b, cfxi_syntax_as_While(node));
    case CFXI_AST_Return:
    case CFXI_AST_Break:
    case CFXI_AST_Continue:
        return visit_jump(b, node);
    case CFXI_AST_Global:
        return declare(b, node, cfxi_syntax_as_Global(node)->names, &b->at->globals);
    case CFXI_AST_Nonlocal:
        return declare(b, node, cfxi_syntax_as_Nonlocal(node)->names, &b->at->nonlocals);
    case CFXI_AST_Yield:
    case CFXI_AST_YieldFrom:
    case CFXI_AST_Await:
        return note_yield(b, node);
    }
    return visit_fields(b, node);
}

/* ---- reads --------------------------------------------------------------------------------- */

static void read_slot(cfx_script_def *def, uint32_t slot, uint64_t place)
{
    if (def->last_read[slot] < place)
        def->last_read[slot] = place;
    if (def->first_read[slot] == 0 || place < def->first_read[slot])
        def->first_read[slot] = place;
}

/* super() reads the first parameter of the function around it; locals() reads everything. */
static void read_hidden(cfx_script_def *def, const char *name, uint64_t place)
{
    while (def->kind == CFXI_DEF_COMPREHENSION)
        def = (cfx_script_def *)def->outer;
    if (def->n_params > 0 && strcmp(name, "super") == 0)
        read_slot(def, 0, place);
    if (strcmp(name, "locals") == 0) {
        for (uint32_t i = 0; i < def->n_locals; i++)
            read_slot(def, i, place);
    }
}

static void resolve_read(const name_read *read)
{
    for (cfx_script_def *def = read->def; def; def = (cfx_script_def *)def->outer) {
        if (def->kind == CFXI_DEF_CLASS && def != read->def)
            continue;  /* functions in a class do not see its names */
        if (cfxi_eval_name_set_find(&def->globals, read->name) != CFXI_NO_SLOT)
            break;
        const uint32_t slot = cfxi_eval_def_slot(def, read->name);
        if (slot == CFXI_NO_SLOT)
            continue;
        read_slot(def, slot, read->place);
        def->read_inside[slot] = def->read_inside[slot] || def != read->def;
        if (def->kind != CFXI_DEF_CLASS)  /* else it may also mean what is around */
            return;
    }
    read_hidden(read->def, read->name, read->place);
}

static int by_write(const void *x, const void *y)
{
    const cfxi_write *a = x, *b = y;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Gives each def its writes, sorted: a loop looks for those inside it. */
static bool resolve_writes(builder *b)
{
    const name_read *all = b->writes.data;
    const cfx_script_def *const *defs = b->defs.data;
    for (size_t i = 0; i < b->writes.size; i++)
        all[i].def->n_writes++;
    for (size_t i = 0; i < b->defs.size; i++) {
        cfx_script_def *def = (cfx_script_def *)defs[i];
        def->writes = cfxi_base_arena_zeros(b->arena, def->n_writes, sizeof *def->writes);
        if (!def->writes && def->n_writes > 0)
            return out_of_memory(b);
        def->n_writes = 0;
    }
    for (size_t i = 0; i < b->writes.size; i++) {
        cfx_script_def *def = all[i].def;
        const uint32_t slot = cfxi_eval_def_slot(def, all[i].name);
        if (slot != CFXI_NO_SLOT)
            def->writes[def->n_writes++] = (cfxi_write){all[i].place, slot};
    }
    for (size_t i = 0; i < b->defs.size; i++)
        if (defs[i]->n_writes > 1)
            qsort(defs[i]->writes, defs[i]->n_writes, sizeof(cfxi_write), by_write);
    return true;
}

/* Every name that is declared `nonlocal` is bound by a function around. */
static bool check_nonlocals(builder *b, const cfx_script_def *def)
{
    for (uint32_t i = 0; i < def->nonlocals.count; i++) {
        const char *name = def->nonlocals.items[i];
        const cfx_script_def *of = def->outer;
        while (of && (of->kind == CFXI_DEF_CLASS || cfxi_eval_def_slot(of, name) == CFXI_NO_SLOT))
            of = of->outer;
        if (!of)
            return fail_syntax(b, def->ast, "no binding for nonlocal '%.60s' found in the "
                               "enclosing functions", name);
    }
    return true;
}

static bool finish_defs(builder *b)
{
    for (size_t i = 0; i < b->defs.size; i++) {
        cfx_script_def *def = ((cfx_script_def **)b->defs.data)[i];
        if (!check_nonlocals(b, def))
            return false;
        def->n_locals = def->names.count;
        def->locals = def->names.items;
        def->last_read = cfxi_base_arena_zeros(b->arena, def->n_locals, sizeof *def->last_read);
        def->first_read = cfxi_base_arena_zeros(b->arena, def->n_locals, sizeof *def->first_read);
        def->read_inside = cfxi_base_arena_zeros(b->arena, def->n_locals, sizeof(bool));
        if (!def->last_read || !def->first_read || !def->read_inside)
            return out_of_memory(b);
    }
    for (size_t i = 0; i < b->reads.size; i++)
        resolve_read((const name_read *)b->reads.data + i);
    return resolve_writes(b);
}

/* ---- scripts ------------------------------------------------------------------------------- */

static int by_place(const void *x, const void *y)
{
    const cfx_script_def *a = *(cfx_script_def *const *)x;
    const cfx_script_def *b = *(cfx_script_def *const *)y;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->ast->column < b->ast->column ? -1 : a->ast->column > b->ast->column;
}

static bool keep_defs(builder *b)
{
    cfx_script *script = b->script;
    script->defs = cfxi_base_arena_zeros(b->arena, b->defs.size, sizeof *script->defs);
    if (!script->defs)
        return out_of_memory(b);
    script->n_defs = b->defs.size;
    memcpy(script->defs, b->defs.data, b->defs.size * sizeof *script->defs);
    qsort(script->defs, script->n_defs, sizeof *script->defs, by_place);
    for (size_t i = 0; i < script->n_defs; i++)
        if (!cfxi_base_pointers_set(&script->by_ast, script->defs[i]->ast, script->defs[i],
                                    b->allocator))
            return out_of_memory(b);
    return true;
}

static bool build(cfx_script *script, cfx_error *err)
{
    cfxi_script *tree = script->tree;
    builder b = {.script = script, .arena = &tree->arena, .allocator = tree->allocator, .err = err};
    script->module = new_def(&b, CFXI_DEF_MODULE, &tree->module->ast, "<module>");
    const bool ok = script->module &&
                    visit_inside(&b, script->module, tree->module->body, NULL) &&
                    finish_defs(&b) && keep_defs(&b);
    cfxi_base_vec_free(&b.defs, sizeof(cfx_script_def *), tree->allocator);
    cfxi_base_vec_free(&b.reads, sizeof(name_read), tree->allocator);
    cfxi_base_vec_free(&b.writes, sizeof(name_read), tree->allocator);
    return ok;
}

static const char *copy_file(cfxi_arena *arena, const char *file)
{
    const size_t size = strlen(file) + 1;
    char *copy = cfxi_base_arena_alloc(arena, size);
    return copy ? memcpy(copy, file, size) : NULL;
}

/* Puts the file before a message that has line and column. */
static void name_file(cfx_error *err, const char *file)
{
    cfx_error own = *err;
    if (err->line == 0)
        return;
    cfx_error_set(err, own.status, "%.200s: %s", file, own.message);
    err->line = own.line;
    err->column = own.column;
}

cfx_script *cfx_script_parse(const char *source, size_t size, const char *file, bool is_text,
                             const cfx_allocator *allocator, cfx_error *err)
{
    cfx_error own;
    allocator = cfxi_base_allocator(allocator);
    err = cfxi_base_error_or(err, &own);
    file = file ? file : "<script>";
    cfxi_script *tree = cfxi_syntax_script_parse(source, size, is_text, allocator, err);
    cfx_script *script = tree ? cfxi_base_alloc(allocator, sizeof *script) : NULL;
    if (!script) {
        if (tree)
            cfxi_base_nomem(err);
        name_file(err, file);
        cfxi_syntax_script_free(tree);
        return NULL;
    }
    *script = (cfx_script){.tree = tree, .file = copy_file(&tree->arena, file)};
    atomic_init(&script->count, 1);
    if (!script->file)
        cfxi_base_nomem(err);
    if (script->file && build(script, err))
        return script;
    name_file(err, file);
    cfx_script_release(script);
    return NULL;
}

cfx_script *cfx_script_retain(cfx_script *script)
{
    atomic_fetch_add_explicit(&script->count, 1, memory_order_relaxed);
    return script;
}

void cfx_script_release(cfx_script *script)
{
    if (!script || atomic_fetch_sub_explicit(&script->count, 1, memory_order_acq_rel) != 1)
        return;
    const cfx_allocator *allocator = script->tree->allocator;
    cfxi_base_pointers_free(&script->by_ast, allocator);
    cfxi_base_pointers_free(&script->keyed, allocator);
    cfxi_syntax_script_free(script->tree);
    cfxi_base_free(allocator, script, sizeof *script);
}

const char *cfxi_eval_script_file(const cfx_script *script) { return script->file; }

/* ---- finding ------------------------------------------------------------------------------- */

const cfx_script_def *cfxi_eval_def_of(const cfx_script *script, const cfxi_ast *ast)
{
    return cfxi_base_pointers_get(&script->by_ast, ast);
}

size_t cfxi_eval_first_write(const cfx_script_def *def, uint64_t from)
{
    size_t low = 0, high = def->n_writes;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (def->writes[middle].place < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const char *cfxi_eval_script_name(const cfx_script *script, const char *name)
{
    return cfxi_syntax_names_find(&script->tree->names, name, strlen(name));
}

/* The first def that begins in the line or behind it. */
static size_t first_at(const cfx_script *script, uint32_t line)
{
    size_t low = 0;
    size_t high = script->n_defs;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (script->defs[middle]->line < line)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_meant(const cfx_script_def *def, int64_t column, const char *name)
{
    if (def->kind == CFXI_DEF_LAMBDA)
        return strcmp(name, def->name) == 0 &&
               (column < 0 || cfxi_syntax_as_Lambda(def->ast)->body->column == column);
    return def->kind == CFXI_DEF_FUNCTION && strcmp(name, def->name) == 0;
}

const cfx_script_def *cfx_script_find(const cfx_script *script, uint32_t line, int64_t column,
                                      const char *name)
{
    const cfx_script_def *found = NULL;
    for (size_t i = first_at(script, line); i < script->n_defs && script->defs[i]->line == line;
         i++) {
        if (!is_meant(script->defs[i], column, name))
            continue;
        if (found)
            return NULL;
        found = script->defs[i];
    }
    return found;
}

uint32_t cfxi_eval_def_line(const cfx_script_def *def) { return def->line; }
const char *cfxi_eval_def_name(const cfx_script_def *def) { return def->name; }

const char *cfxi_eval_def_parameter(const cfx_script_def *def, size_t i)
{
    return i < def->n_params ? def->locals[i] : NULL;
}
