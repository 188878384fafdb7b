/* cmodel.c - cfx_model: the function that makes the module, with what the graph calls and reads.
 *
 *     cfx_module *cfx_model(cfx_scope *s)
 *     {
 *         cfx_module *self = cfx_module_new(s, &model_class);
 *         cfx_module *layers = cfx_module_add(s, self, "layers", cfx_module_new(s, NULL));
 *         cfx_module_add(s, layers, "0", cfx_nn_linear(s, 784, 512));
 *         return self;
 *     }
 *
 * If it is very long, functions model_1, model_2, ... have its statements, and it calls them.
 */
#include "ccode_impl.h"

#include <stdio.h>

enum { SECTION = 100 };  /* statements of one of the functions */

/* What is being written. */
typedef struct c_model {
    cfxi_ccode *c;
    cfx_namespace *ns;   /* of the variables, of all functions */
    bool is_long;
    size_t section;      /* the function, from 1 on */
    size_t statements;   /* it has so many */
} c_model;

/* ---- constructors -------------------------------------------------------------------------- */

/* Whether C can say the argument: a tensor or a module it cannot, so that such a one is lowered. */
static cfx_status can_say(void *ctx, const cfx_schema_param *param, bool keyword, cfx_value v,
                          cfx_error *err)
{
    (void)ctx, (void)keyword, (void)err;
    return v.kind == CFX_KIND_HOST || strncmp(param->type, "Module", 6) == 0 ? CFX_E_TYPE : CFX_OK;
}

bool cfxi_emit_c_keep(void *ctx, const cfx_node *n, const char *class_name)
{
    cfxi_ccode *c = ctx;
    const cfx_nn nn = cfxi_ops_nn_find(class_name);
    const char *path = n->callee->ref->name->data;
    return nn && cfxi_ops_nn_function(nn) && (!n->kwargs || n->kwargs->size == 0) &&
           cfxi_ops_nn_each_arg(c->modules, n->graph, path, nn, can_say, NULL, NULL) == CFX_OK;
}

/* "int[2]": (3, 3) is 3, as most people write it; likewise "Any padding=0" of a convolution. */
static cfx_value without_repeats(const cfx_schema_param *param, cfx_value v)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    const bool any = strcmp(param->type, "Any") == 0 && cfxi_ops_text_is_word(param->value, "0");
    const bool sized = any || (strncmp(param->type, "int[", 4) == 0 &&
                               cfxi_base_is_digit(param->type[4]));
    for (size_t i = 0; sized && i < n; i++)
        if (items[i].kind != CFX_KIND_INT || items[i].as.i != items[0].as.i)
            return v;
    return sized && n > 0 ? items[0] : v;
}

/* What must be given stands by position, the rest by name. */
static cfx_status put_argument(void *ctx, const cfx_schema_param *param, bool keyword, cfx_value v,
                               cfx_error *err)
{
    cfxi_ccode *c = ctx;
    char name[CFX_SPELLING_SIZE];
    (void)keyword;
    (void)err;
    v = without_repeats(param, v);
    cfxi_emit_c_comma(c);
    if (param->value.text)
        cfxi_emit_c_printf(c, ".%s = ", cfxi_ops_param_c_name(param, name));
    cfxi_emit_c_value(c, NULL, v, param->type, param->value.text ? CFXI_C_VAR : CFXI_C_BARE);
    return CFX_OK;
}

static cfx_status put_constructor(cfxi_ccode *c, const cfxi_part *part, cfx_error *err)
{
    cfx_buffer class_name;
    cfx_buffer_init(&class_name, c->allocator);
    cfx_status status = cfxi_ops_module_class(c->modules, part->path, &class_name, err);
    const cfx_nn nn = status == CFX_OK ? cfxi_ops_nn_find(class_name.data) : CFX_NN_NONE;
    cfx_buffer_free(&class_name);
    CFX_TRY(status);
    cfxi_emit_c_printf(c, "cfx_nn_%s(s", cfxi_ops_nn_function(nn));
    CFX_TRY(cfxi_ops_nn_each_arg(c->modules, c->g, part->path, nn, put_argument, c, err));
    cfxi_emit_c_text(c, ")");
    return CFX_OK;
}

/* ---- parameters ---------------------------------------------------------------------------- */

/* A tensor of zeros, of the type and shape that the graph was made for. */
static cfx_status put_tensor(cfxi_ccode *c, const cfxi_part *part, cfx_error *err)
{
    cfx_value dtype;
    cfx_value shape;
    CFX_TRY(cfxi_ops_module_attr(c->modules, c->g, part->path, "dtype", &dtype, err));
    CFX_TRY(cfxi_ops_module_attr(c->modules, c->g, part->path, "shape", &shape, err));
    if (shape.kind != CFX_KIND_TUPLE && shape.kind != CFX_KIND_LIST) {
        cfx_value_discard(c->g, shape);
        cfxi_emit_c_refuse(c, part->node, "the shape of '%.100s' is not known", part->path);
        return CFX_OK;
    }
    cfxi_emit_c_text(c, "cfx_var_tensor(s, cfx_zeros(s, ");
    cfxi_emit_c_value(c, part->node, shape, "int[]", CFXI_C_BARE);
    cfx_value_discard(c->g, shape);
    if (dtype.kind == CFX_KIND_DTYPE && dtype.as.i != CFX_DTYPE_FLOAT32) {
        cfxi_emit_c_comma(c);
        cfxi_emit_c_text(c, ".dtype = ");
        cfxi_emit_c_value(c, part->node, dtype, NULL, CFXI_C_VAR);
    }
    cfxi_emit_c_text(c, "))");
    return CFX_OK;
}

/* ---- parts --------------------------------------------------------------------------------- */

static void put_owner(cfxi_ccode *c, const char *call, const cfxi_part *part)
{
    c->scope_used = true;
    cfxi_emit_c_printf(c, "%s(s, ", call);
    cfxi_emit_c_text(c, part->parent ? part->parent->label : "self");
    cfxi_emit_c_comma(c);
    cfxi_emit_c_string(c, part->name, strlen(part->name));
}

static void put_child(cfxi_ccode *c, const cfxi_part *part)
{
    cfxi_emit_c_text(c, "cfx_module_child(self, ");
    cfxi_emit_c_string(c, part->path, strlen(part->path));
    cfxi_emit_c_text(c, ")");
}

/* The tensor that a part is, or that it has: `cfx_module_param(s, self, "embed.weight")`. */
static void put_twin(cfxi_ccode *c, const cfxi_part *twin, const char *inside)
{
    cfx_buffer path;
    cfx_buffer_init(&path, c->allocator);
    cfx_buffer_append(&path, twin->path, strlen(twin->path));
    cfx_buffer_append(&path, ".", inside[0] != '\0');
    if (cfx_buffer_append(&path, inside, strlen(inside)) != CFX_OK)
        c->nomem = true;
    cfxi_emit_c_text(c, "cfx_module_param(s, self, ");
    cfxi_emit_c_string(c, path.data, path.size);
    cfxi_emit_c_text(c, ")");
    cfx_buffer_free(&path);
}

static cfx_status put_value_part(cfxi_ccode *c, const cfxi_part *part, cfx_error *err)
{
    bool buffer;
    if (!c->modules) {
        put_owner(c, "cfx_module_declare", part);
        cfxi_emit_c_text(c, ");");
        return CFX_OK;
    }
    CFX_TRY(cfxi_emit_is_buffer(c->modules, c->g, part->path, &buffer, err));
    put_owner(c, buffer ? "cfx_module_add_buffer" : "cfx_module_add_parameter", part);
    cfxi_emit_c_comma(c);
    if (part->twin) {
        cfxi_emit_c_text(c, "cfx_var_tensor(s, ");
        put_twin(c, part->twin, part->inside);
        cfxi_emit_c_text(c, ")");
    } else {
        CFX_TRY(put_tensor(c, part, err));
    }
    cfxi_emit_c_text(c, ");");
    return CFX_OK;
}

/* `cfx_module_set(s, cfx_module_child(self, "head"), "weight", cfx_module_param(s, self,
 * "embed.weight"));` */
static void put_ties(cfxi_ccode *c, const cfxi_part *part)
{
    for (const cfxi_tie *tie = part->ties; tie; tie = tie->next) {
        const char *dot = strchr(tie->name, '.');  /* out_proj.weight */
        const char *name = dot ? dot + 1 : tie->name;
        cfxi_emit_c_text(c, dot ? "cfx_module_set(s, cfx_module_child(" : "cfx_module_set(s, ");
        put_child(c, part);
        if (dot) {
            cfxi_emit_c_comma(c);
            cfxi_emit_c_string(c, tie->name, (size_t)(dot - tie->name));
            cfxi_emit_c_text(c, ")");
        }
        cfxi_emit_c_comma(c);
        cfxi_emit_c_string(c, name, strlen(name));
        cfxi_emit_c_comma(c);
        put_twin(c, tie->twin, tie->inside);
        cfxi_emit_c_text(c, ");");
        cfxi_emit_c_end_line(c, NULL);
    }
}

/* Ends the function that has the statements so far. */
static void end_section(c_model *m)
{
    cfxi_ccode *c = m->c;
    char head[80];
    if (m->statements == 0)
        return;
    snprintf(head, sizeof head, "\nstatic void model_%zu(cfx_scope *s, cfx_module *self)\n{\n",
             m->section++);
    cfxi_emit_c_head(c, head);
    cfxi_emit_c_unused(c, c->scope_used, "s", 1);
    cfxi_emit_c_put(c, &c->text, c->body.data, c->body.size);
    cfxi_emit_c_head(c, "}\n");
    cfxi_emit_c_begin(c);
    m->statements = 0;
}

static void count_statement(c_model *m, bool may_end)
{
    if (++m->statements >= SECTION && m->is_long && may_end)
        end_section(m);
}

/* A module of an earlier function is found by its path. */
static void know(c_model *m, cfxi_part *part)
{
    if (!part || part->known == m->section)
        return;
    part->known = m->section;
    cfxi_emit_c_text(m->c, "cfx_module *");
    cfxi_emit_c_text(m->c, part->label ? part->label : "");
    cfxi_emit_c_text(m->c, " = cfx_module_child(self,");
    cfxi_emit_c_put(m->c, &m->c->line, &(char){CFXI_C_GAP}, 1);
    cfxi_emit_c_string(m->c, part->path, strlen(part->path));
    cfxi_emit_c_text(m->c, ");");
    cfxi_emit_c_end_line(m->c, NULL);
}

/* `used`: by the next statement. Else it becomes a variable where it is. */
static void put_holder(c_model *m, cfxi_part *part, bool used)
{
    cfxi_ccode *c = m->c;
    part->label = cfxi_emit_c_name(c, m->ns, part->path, strlen(part->path));
    if (used) {
        part->known = m->section;
        cfxi_emit_c_text(c, "cfx_module *");
        cfxi_emit_c_text(c, part->label ? part->label : "");
        cfxi_emit_c_text(c, " = ");
    }
    put_owner(c, "cfx_module_add", part);
    cfxi_emit_c_comma(c);
    cfxi_emit_c_text(c, "cfx_module_new(s, NULL));");
}

static cfx_status put_module(cfxi_ccode *c, const cfxi_part *part, cfx_error *err)
{
    put_owner(c, "cfx_module_add", part);
    cfxi_emit_c_comma(c);
    if (part->twin) {
        put_child(c, part->twin);
    } else {
        CFX_TRY(put_constructor(c, part, err));
    }
    cfxi_emit_c_text(c, ");");
    return CFX_OK;
}

static cfx_status put_part(c_model *m, cfxi_part *part, const cfxi_part *next, cfx_error *err)
{
    const bool used = next && next->parent == part;
    know(m, part->parent);
    switch (part->kind) {
    case CFXI_PART_VALUE: CFX_TRY(put_value_part(m->c, part, err)); break;
    case CFXI_PART_HOLDER: put_holder(m, part, used); break;
    case CFXI_PART_MODULE: CFX_TRY(put_module(m->c, part, err)); break;
    }
    cfxi_emit_c_end_line(m->c, NULL);
    put_ties(m->c, part);
    count_statement(m, !used);
    return m->c->nomem ? cfxi_base_nomem(err) : CFX_OK;
}

/* ---- training ------------------------------------------------------------------------------ */

/* The whole as it is, then those that are otherwise. */
static cfx_status put_training(c_model *m, const cfxi_parts *parts, cfx_error *err)
{
    cfxi_ccode *c = m->c;
    bool all;
    bool one;
    if (!c->modules)
        return CFX_OK;
    CFX_TRY(cfxi_emit_is_training(c->modules, c->g, "", &all, err));
    if (!all) {
        cfxi_emit_c_text(c, "cfx_module_train(self, false);");
        cfxi_emit_c_end_line(c, NULL);
        count_statement(m, true);
    }
    for (size_t i = 0; i < parts->list.size; i++) {
        const cfxi_part *part = cfxi_emit_part_at(parts, i);
        if (part->kind != CFXI_PART_MODULE)
            continue;
        CFX_TRY(cfxi_emit_is_training(c->modules, c->g, part->path, &one, err));
        if (one == all)
            continue;
        cfxi_emit_c_text(c, "cfx_module_train(cfx_module_child(self, ");
        cfxi_emit_c_string(c, part->path, strlen(part->path));
        cfxi_emit_c_text(c, one ? "), true);" : "), false);");
        cfxi_emit_c_end_line(c, NULL);
        count_statement(m, true);
    }
    return CFX_OK;
}

/* ---- the class ----------------------------------------------------------------------------- */

/* Whether a class can have it as the default of an input: see capture.h. */
static bool is_default(cfx_value v)
{
    return v.kind == CFX_KIND_NONE || v.kind == CFX_KIND_BOOL || v.kind == CFX_KIND_INT ||
           (v.kind == CFX_KIND_FLOAT && v.as.f - v.as.f == 0);
}

/* The last input that must be passed, or NULL: what comes before it must be, too. */
static const cfx_node *last_needed(const cfx_graph *g)
{
    const cfx_node *last = NULL;
    for (const cfx_node *n = cfxi_ir_next_input(g, NULL); n; n = cfxi_ir_next_input(g, n))
        last = is_default(cfx_node_arg(n, 0)) ? last : n;
    return last;
}

/* "x, mask=None" */
static cfx_status put_input_names(cfxi_ccode *c, cfx_error *err)
{
    cfx_buffer names;
    cfx_status status = CFX_OK;
    const cfx_node *needed = last_needed(c->g);
    cfx_buffer_init(&names, c->allocator);
    const cfx_sink sink = cfx_buffer_sink(&names);
    for (const cfx_node *n = c->g->root.next; status == CFX_OK && n != &c->g->root; n = n->next) {
        if (n->op != CFX_OP_PLACEHOLDER)
            continue;
        const cfx_str *name = n->callee->ref->name;
        const cfx_value value = cfx_node_arg(n, 0);
        if (name->data[0] == '*')
            cfxi_emit_c_refuse(c, n,
                               "the input '%.60s' is variadic, but a C function takes a fixed "
                               "number of inputs",
                               name->data);
        status = cfx_buffer_append(&names, ", ", names.size ? 2 : 0);
        if (status == CFX_OK)
            status = cfx_buffer_append(&names, name->data, name->size);
        if (status == CFX_OK && !needed) {
            status = cfx_buffer_append(&names, "=", 1);
            if (status == CFX_OK)
                status = cfxi_ir_value_repr(c->g, value, sink, err);
        }
        needed = n == needed ? NULL : needed;
    }
    if (status == CFX_OK)
        cfxi_emit_c_string(c, names.data, names.size);
    cfx_buffer_free(&names);
    return status == CFX_OK ? CFX_OK : cfxi_base_failed(err, status);
}

static cfx_status put_class(cfxi_ccode *c, size_t inputs, cfx_error *err)
{
    static const char *const members[] = {"forward_n", "forward", "forward2", "forward3"};
    cfxi_emit_c_text(c, ".name = ");
    cfxi_emit_c_string(c, c->class_name, strlen(c->class_name));
    cfxi_emit_c_text(c, ",");
    cfxi_emit_c_end_line(c, NULL);
    cfxi_emit_c_text(c, ".inputs = ");
    CFX_TRY(put_input_names(c, err));
    cfxi_emit_c_text(c, ",");
    cfxi_emit_c_end_line(c, NULL);
    cfxi_emit_c_printf(c, ".%s = forward,", inputs < 4 ? members[inputs] : members[0]);
    cfxi_emit_c_end_line(c, NULL);
    static const char head[] = "\nstatic const cfx_class model_class = {\n";
    cfxi_emit_c_put(c, &c->text, head, sizeof head - 1);
    cfxi_emit_c_put(c, &c->text, c->body.data, c->body.size);
    cfxi_emit_c_put(c, &c->text, "};\n", 3);
    return CFX_OK;
}

/* All statements; those that are in functions of their own are written already. */
static cfx_status put_statements(c_model *m, const cfxi_parts *parts, cfx_error *err)
{
    cfxi_ccode *c = m->c;
    static const char make[] = "cfx_module *self = cfx_module_new(s, &model_class);";
    m->ns = cfx_namespace_new(c->allocator, err);
    cfx_status status = m->ns ? CFX_OK : CFX_E_NOMEM;
    cfxi_emit_c_text(c, m->is_long ? "" : make);
    if (!m->is_long)
        cfxi_emit_c_end_line(c, NULL);
    for (size_t i = 0; status == CFX_OK && i < parts->list.size; i++)
        status = put_part(m, cfxi_emit_part_at(parts, i),
                          i + 1 < parts->list.size ? cfxi_emit_part_at(parts, i + 1) : NULL, err);
    if (status == CFX_OK)
        status = put_training(m, parts, err);
    cfx_namespace_free(m->ns);
    if (!m->is_long || status != CFX_OK)
        return status;
    end_section(m);
    cfxi_emit_c_text(c, make);
    cfxi_emit_c_end_line(c, NULL);
    for (size_t i = 1; i < m->section; i++) {
        cfxi_emit_c_printf(c, "model_%zu(s, self);", i);
        cfxi_emit_c_end_line(c, NULL);
    }
    return CFX_OK;
}

cfx_status cfxi_emit_c_model(cfxi_ccode *c, size_t inputs, cfx_error *err)
{
    static const char tail[] = "    return self;\n}\n";
    cfxi_parts parts;
    c_model m = {.c = c, .section = 1};
    cfxi_emit_c_begin(c);
    CFX_TRY(put_class(c, inputs, err));
    cfxi_emit_c_begin(c);
    cfx_status status = cfxi_emit_parts_collect(&parts, c->g, c->modules, err);
    m.is_long = parts.list.size > CFXI_C_LONG;
    if (status == CFX_OK)
        status = put_statements(&m, &parts, err);
    cfxi_emit_parts_free(&parts);
    CFX_TRY(status);
    cfxi_emit_c_head(c, "\ncfx_module *cfx_model(cfx_scope *s)\n{\n");
    cfxi_emit_c_put(c, &c->text, c->body.data, c->body.size);
    cfxi_emit_c_put(c, &c->text, tail, sizeof tail - 1);
    return c->nomem ? cfxi_base_nomem(err) : CFX_OK;
}
