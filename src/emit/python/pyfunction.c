/* pyfunction.c - drives the generation of a Python function: body, head, line map.
 *
 * The body is written first, since only it tells which globals, parameters and return type there
 * are. Without a transformer its lines are indented as they are written, and the line map is kept
 * beside them. With one, the body is a list of pieces in torch.fx's form, and indentation and line
 * map are made from what the transformer returns.
 */
#include "pycode_impl.h"

enum { INDENT = 4 };

/* ---- lines --------------------------------------------------------------------------------- */

void cfxi_emit_py_put_slow(cfx_pycode *gen, const char *text, size_t size)
{
    /* The fast way leaves the terminator out; appending does not miss it. */
    if (!gen->nomem && cfx_buffer_append(&gen->body, text, size))
        gen->nomem = true;
}

/* One more line of the current node. */
static void note_line(cfx_pycode *gen)
{
    cfxi_vec *lines = &gen->memory->lines;
    if (lines->size == lines->capacity &&
        !cfxi_base_vec_reserve(lines, 1, sizeof(uint32_t), gen->allocator)) {
        gen->nomem = true;
        return;
    }
    ((uint32_t *)lines->data)[lines->size++] = gen->node;
}

void cfxi_emit_py_end_piece(cfx_pycode *gen)
{
    if (!gen->use_pieces || gen->nomem)
        return;
    if (!cfxi_base_vec_reserve(&gen->pieces, 1, sizeof(size_t), gen->allocator)) {
        gen->nomem = true;
        return;
    }
    ((size_t *)gen->pieces.data)[gen->pieces.size++] = gen->body.size;
}

void cfxi_emit_py_begin_line(cfx_pycode *gen)
{
    static const char spaces[] = "                                ";
    uint32_t n = gen->use_pieces ? gen->indent - INDENT : gen->indent;
    for (; n > sizeof spaces - 1; n -= sizeof spaces - 1)
        cfxi_emit_py_put(gen, spaces, sizeof spaces - 1);
    cfxi_emit_py_put(gen, spaces, n);
}

void cfxi_emit_py_end_line(cfx_pycode *gen)
{
    cfxi_emit_py_char(gen, '\n');
    if (gen->use_pieces)
        cfxi_emit_py_end_piece(gen);
    else
        note_line(gen);
}

void cfxi_emit_py_put_text(cfx_pycode *gen, const char *text, size_t size)
{
    while (!gen->raw && !gen->use_pieces) {
        const char *newline = memchr(text, '\n', size);
        if (!newline)
            break;
        size_t line = (size_t)(newline - text);
        cfxi_emit_py_put(gen, text, line);
        cfxi_emit_py_end_line(gen);
        cfxi_emit_py_begin_line(gen);
        text += line + 1;
        size -= line + 1;
    }
    cfxi_emit_py_put(gen, text, size);
}

/* Whole lines. */
static void put_lines(cfx_pycode *gen, const char *text, size_t size)
{
    if (gen->use_pieces) {
        cfxi_emit_py_put(gen, text, size);
        cfxi_emit_py_end_piece(gen);
        return;
    }
    while (size > 0) {
        const char *newline = memchr(text, '\n', size);
        size_t line = newline ? (size_t)(newline - text) : size;
        cfxi_emit_py_begin_line(gen);
        cfxi_emit_py_put(gen, text, line);
        cfxi_emit_py_end_line(gen);
        text += line + (newline != NULL);
        size -= line + (newline != NULL);
    }
}

void cfxi_emit_py_one_line(cfx_buffer *text)
{
    for (size_t i = 0; i < text->size; i++)
        if (text->data[i] == '\n' || text->data[i] == '\r' || text->data[i] == '\0')
            text->data[i] = ' ';
}

/* ---- the body ------------------------------------------------------------------------------ */

cfxi_py_frame cfxi_emit_py_frame_of(cfx_graph *g, bool region)
{
    uint32_t stamp = cfxi_ir_graph_stamp(g, (uint32_t)g->size + 1);
    cfxi_py_frame frame = {g, stamp, g->stamp, 0, region, false};
    uint32_t mark = frame.stamp + (uint32_t)g->size;
    for (cfx_node *n = g->root.prev; n != &g->root; n = n->prev) {
        mark--;
        for (uint32_t i = 0; i < n->n_inputs; i++)
            if (n->inputs[i].def->mark < frame.stamp)
                n->inputs[i].def->mark = mark;
    }
    return frame;
}

/* Whether each line is a comment or blank. Lines in colour are for people. */
static bool is_comment(const cfx_pycode *gen, const cfx_buffer *text)
{
    bool begins = true;
    for (size_t i = 0; i < text->size; i++) {
        const char c = text->data[i];
        if (c == '\r' || c == '\0' || (begins && c != '#' && c != ' ' && c != '\n'))
            return gen->options->colored;
        begins = c == '\n' || (begins && c == ' ');
    }
    return true;
}

cfx_status cfxi_emit_py_comment(cfx_pycode *gen, cfx_node *n, cfx_error *err)
{
    if (!gen->options->comment)
        return CFX_OK;
    cfx_sink out = cfxi_emit_py_scratch(gen);
    CFX_TRY(gen->options->comment(gen->options->ctx, gen, n, out, err));
    if (!is_comment(gen, &gen->scratch)) {
        cfxi_emit_py_one_line(&gen->scratch);
        put_lines(gen, "\n", 1);
        cfxi_emit_py_begin_line(gen);
        CFXI_PY_LIT(gen, "# ");
        cfxi_emit_py_put(gen, gen->scratch.data, gen->scratch.size);
        cfxi_emit_py_end_line(gen);
    } else if (gen->scratch.size) {
        put_lines(gen, gen->scratch.data, gen->scratch.size);
    }
    return CFX_OK;
}

static void put_counter(cfx_pycode *gen)
{
    char digits[CFXI_NUMBER_SIZE];
    size_t size = cfxi_base_format_int(gen->node, digits);
    CFXI_PY_LIT(gen, "# COUNTER: ");
    cfxi_emit_py_put(gen, digits, size);
    cfxi_emit_py_char(gen, '\n');
    cfxi_emit_py_end_piece(gen);
}

static cfx_status write_nodes(cfx_pycode *gen, cfx_error *err)
{
    cfx_graph *g = gen->graph;
    cfxi_py_frame frame = cfxi_emit_py_frame_of(g, false);
    CFX_TRY(cfxi_emit_py_plan(gen, &frame, err));
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next, frame.index++) {
        gen->order = n->order;
        CFX_TRY(cfxi_emit_py_comment(gen, n, err));
        gen->node = frame.index;
        if (gen->use_pieces)
            put_counter(gen);
        CFX_TRY(cfxi_emit_py_statement(gen, &frame, n, err));
        if (gen->nomem)
            return cfxi_base_nomem(err);
    }
    return CFX_OK;
}

#define RECORD_GRAPH                                                                               \
    "_rf = torch._C._profiler._RecordFunctionFast('## ENTER_GRAPH_PLACEHOLDER_KEY ##'); "          \
    "_rf.__enter__()\n"
#define RECORD_GRAPH_END "_rf.__exit__(None, None, None)\n"

static cfx_status write_body(cfx_pycode *gen, cfx_error *err)
{
    if (gen->options->record_func)
        put_lines(gen, RECORD_GRAPH, sizeof RECORD_GRAPH - 1);
    CFX_TRY(write_nodes(gen, err));
    if (gen->options->record_func)
        put_lines(gen, RECORD_GRAPH_END, sizeof RECORD_GRAPH_END - 1);
    else if (gen->graph->size == 0)
        put_lines(gen, "pass\n", 5);
    return gen->nomem ? cfxi_base_nomem(err) : CFX_OK;
}

/* ---- a transformed body -------------------------------------------------------------------- */

/* Whether a line is "# COUNTER: 12"; then *node is the number. */
static bool is_counter(const char *line, size_t size, uint32_t *node)
{
    static const char start[] = "# COUNTER: ";
    while (size > 0 && *line == ' ')
        line++, size--;
    if (size < sizeof start || memcmp(line, start, sizeof start - 1) != 0)
        return false;
    uint64_t number = 0;
    for (size_t i = sizeof start - 1; i < size; i++) {
        if (!cfxi_base_is_digit(line[i]) || number > UINT32_MAX)
            return false;
        number = number * 10 + (uint64_t)(line[i] - '0');
    }
    *node = (uint32_t)number;
    return true;
}

/* Replaces the body by `text`, indented, its counters turned into the line map. */
static void take_transformed(cfx_pycode *gen, const char *text, size_t size)
{
    const char *end = text + size;
    gen->body.size = 0;
    gen->use_pieces = false;
    gen->node = CFX_PYCODE_NO_NODE;
    for (;;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((newline ? newline : end) - text);
        uint32_t before = gen->node;
        if (!is_counter(text, line, &gen->node)) {
            cfxi_emit_py_begin_line(gen);
            cfxi_emit_py_put(gen, text, line);
            if (!newline)
                return; /* the last line has no newline; generate notes it */
            cfxi_emit_py_end_line(gen);
        }
        if (!newline) {
            /* A counter without a newline at the very end. */
            gen->node = before;
            if (gen->body.size)
                gen->body.size--;
            if (gen->memory->lines.size)
                gen->memory->lines.size--;
            return;
        }
        text = newline + 1;
    }
}

static cfx_status transform_body(cfx_pycode *gen, cfx_error *err)
{
    const cfx_pycode_options *options = gen->options;
    size_t n = gen->pieces.size;
    cfx_pycode_text *pieces = cfxi_base_alloc(gen->allocator, n * sizeof *pieces);
    if (!pieces)
        return cfxi_base_nomem(err);
    const size_t *ends = gen->pieces.data;
    for (size_t i = 0; i < n; i++) {
        size_t start = i ? ends[i - 1] : 0;
        pieces[i] = (cfx_pycode_text){gen->body.data + start, ends[i] - start};
    }
    cfx_buffer text;
    cfx_buffer_init(&text, gen->allocator);
    cfx_status status =
        options->transform(options->ctx, gen, pieces, n, cfx_buffer_sink(&text), err);
    cfxi_base_free(gen->allocator, pieces, n * sizeof *pieces);
    if (status == CFX_OK) {
        take_transformed(gen, text.data, text.size);
        status = gen->nomem ? cfxi_base_nomem(err) : CFX_OK;
    }
    cfx_buffer_free(&text);
    return status;
}

/* ---- the head ------------------------------------------------------------------------------ */

/* Where the comment of a parameter begins: at the first '#' outside quotes. */
static size_t comment_start(cfx_pycode_text param)
{
    char quote = '\0';
    for (size_t i = 0; i < param.size; i++) {
        char c = param.data[i];
        if (quote && c == '\\')
            i++;
        else if (quote)
            quote = c == quote ? '\0' : quote;
        else if (c == '\'' || c == '"')
            quote = c;
        else if (c == '#')
            return i;
    }
    return param.size;
}

static void expanded_param(cfxi_out *out, cfx_pycode_text param)
{
    size_t comment = comment_start(param);
    size_t size = comment;
    while (comment < param.size && size > 0 && param.data[size - 1] == ' ')
        size--;
    cfxi_base_out_str(out, "    ");
    cfxi_base_out_write(out, param.data, size);
    cfxi_base_out_char(out, ',');
    if (comment < param.size) {
        size_t text = comment + 1;
        while (text < param.size && (param.data[text] == ' ' || param.data[text] == '\t'))
            text++;
        cfxi_base_out_str(out, "  # ");
        cfxi_base_out_write(out, param.data + text, param.size - text);
    }
    cfxi_base_out_char(out, '\n');
}

cfx_status cfx_pycode_signature(const char *function, const cfx_pycode_text *params, size_t n,
                                cfx_pycode_text returns, bool expanded, cfx_sink sink,
                                cfx_error *err)
{
    static const cfx_pycode_text self = {"self", 4};
    bool has_self = n > 0 && params[0].size == 4 && memcmp(params[0].data, "self", 4) == 0;
    cfxi_out out;
    cfxi_base_out_begin(&out, sink);
    cfxi_base_out_str(&out, "def ");
    cfxi_base_out_str(&out, function);
    cfxi_base_out_str(&out, expanded ? "(\n" : "(");
    for (size_t i = 0; i < n + !has_self; i++) {
        cfx_pycode_text param = i == 0 ? self : params[i - !has_self];
        if (expanded) {
            expanded_param(&out, param);
            continue;
        }
        if (i > 0)
            cfxi_base_out_str(&out, ", ");
        cfxi_base_out_write(&out, param.data, param.size);
    }
    cfxi_base_out_char(&out, ')');
    cfxi_base_out_write(&out, returns.data, returns.size);
    cfxi_base_out_char(&out, ':');
    return cfxi_base_out_end(&out, err);
}

static cfx_status write_head(cfx_pycode *gen, cfx_buffer *head, cfx_error *err)
{
    const cfx_pycode_options *options = gen->options;
    size_t n = gen->params.size;
    cfx_pycode_text *params = cfxi_base_alloc(gen->allocator, n * sizeof *params);
    if (!params)
        return cfxi_base_nomem(err);
    const cfxi_py_param *where = gen->params.data;
    for (size_t i = 0; i < n; i++)
        params[i] = (cfx_pycode_text){gen->params_text.data + where[i].start, where[i].size};
    cfx_pycode_text returns = {gen->returns.data, gen->returns.size};
    const char *function = options->function ? options->function : "forward";
    cfx_sink out = cfx_buffer_sink(head);
    cfx_status status =
        options->signature
            ? options->signature(options->ctx, gen, params, n, returns, out, err)
            : cfx_pycode_signature(function, params, n, returns, options->expanded_def, out, err);
    cfxi_base_free(gen->allocator, params, n * sizeof *params);
    return status;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static uint32_t count_newlines(const char *text, size_t size)
{
    uint32_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += text[i] == '\n';
    return n;
}

/* Puts what goes before the body in front of it, in the same buffer: a large body is not copied to
 * memory that was never touched before, which costs more than writing it. */
static cfx_status prepend(cfx_buffer *body, size_t skipped, const cfx_buffer *prefix,
                          cfx_error *err)
{
    const size_t size = body->size - skipped;
    if (cfx_buffer_append(body, prefix->data, prefix->size))
        return cfxi_base_nomem(err);
    memmove(body->data + prefix->size, body->data + skipped, size);
    memcpy(body->data, prefix->data, prefix->size);
    body->size = prefix->size + size;
    body->data[body->size] = '\0';
    return CFX_OK;
}

/* Head and body become the source. Blank lines in front of the body go, as torch.fx drops them;
 * the line map still counts them. */
static cfx_status join(cfx_pycode *gen, cfx_buffer *prefix, cfx_pycode_result *result,
                       cfx_error *err)
{
    static const char blank[] = "    \n";
    size_t skipped = 0;
    while (gen->body.size - skipped >= sizeof blank - 1 &&
           memcmp(gen->body.data + skipped, blank, sizeof blank - 1) == 0)
        skipped += sizeof blank - 1;
    if (cfx_buffer_append(prefix, "\n", 1) ||
        cfx_buffer_append(prefix, gen->wraps.data, gen->wraps.size) ||
        cfx_buffer_append(prefix, "\n\n", 2))
        return cfxi_base_nomem(err);
    const size_t start = prefix->size;
    result->prologue_start = count_newlines(prefix->data, start) + 1;
    CFX_TRY(write_head(gen, prefix, err));
    result->first_line = count_newlines(prefix->data + start, prefix->size - start) + 1;
    if (gen->nomem || cfx_buffer_append(prefix, "\n", 1))
        return cfxi_base_nomem(err);
    CFX_TRY(prepend(&gen->body, skipped, prefix, err));
    result->source = gen->body;
    cfx_buffer_init(&gen->body, gen->allocator);
    return CFX_OK;
}

static cfx_status finish(cfx_pycode *gen, cfx_pycode_result *result, cfx_error *err)
{
    cfxi_py_memory *memory = gen->memory;
    size_t n = gen->globals.size;
    memory->globals = cfxi_base_alloc(gen->allocator, n * sizeof *memory->globals);
    if (!memory->globals)
        return cfxi_base_nomem(err);
    memory->n_globals = n;
    const cfxi_py_global *globals = gen->globals.data;
    for (size_t i = 0; i < n; i++)
        memory->globals[i] = globals[i].entry;
    result->globals = memory->globals;
    result->n_globals = n;
    result->builtins = gen->builtins;
    result->line_nodes = memory->lines.data;
    result->n_lines = memory->lines.size;
    result->memory = memory;
    return CFX_OK;
}

/* Room for a graph of usual statements, so that a large body does not grow by copies. */
static cfx_status reserve(cfx_pycode *gen, cfx_error *err)
{
    enum { STATEMENT = 72 };
    size_t size;
    if (!cfxi_base_mul_size(gen->graph->size, STATEMENT, 256, &size))
        return cfxi_base_nomem(err);
    char *data = cfxi_base_alloc(gen->allocator, size);
    if (!data)
        return cfxi_base_nomem(err);
    gen->body.data = data;
    gen->body.capacity = size;
    if (!cfxi_base_vec_reserve(&gen->memory->lines, gen->graph->size + 2, sizeof(uint32_t),
                               gen->allocator))
        return cfxi_base_nomem(err);
    return CFX_OK;
}

static cfx_status generate(cfx_pycode *gen, cfx_buffer *prefix, cfx_pycode_result *result,
                           cfx_error *err)
{
    CFX_TRY(reserve(gen, err));
    gen->names = cfx_namespace_new(gen->allocator, err);
    if (!gen->names)
        return CFX_E_NOMEM;
    gen->use_pieces = gen->options->transform != NULL;
    gen->indent = INDENT;
    gen->node = CFX_PYCODE_NO_NODE;
    gen->order = UINT64_MAX;
    if (gen->options->begin)
        CFX_TRY(gen->options->begin(gen->options->ctx, gen, err));
    CFX_TRY(write_body(gen, err));
    if (gen->use_pieces)
        CFX_TRY(transform_body(gen, err));
    else
        cfxi_emit_py_begin_line(gen); /* what follows the last newline is a line, too */
    note_line(gen);
    CFX_TRY(join(gen, prefix, result, err));
    return finish(gen, result, err);
}

static cfxi_py_memory *memory_new(const cfx_allocator *allocator)
{
    cfxi_py_memory *memory = cfxi_base_alloc(allocator, sizeof *memory);
    if (!memory)
        return NULL;
    memset(memory, 0, sizeof *memory);
    memory->allocator = allocator;
    cfxi_base_arena_init(&memory->arena, allocator);
    return memory;
}

static void memory_free(cfxi_py_memory *memory)
{
    const cfx_allocator *allocator = memory->allocator;
    cfxi_base_free(allocator, memory->globals, memory->n_globals * sizeof *memory->globals);
    cfxi_base_vec_free(&memory->lines, sizeof(uint32_t), allocator);
    cfxi_base_arena_release(&memory->arena);
    cfxi_base_free(allocator, memory, sizeof *memory);
}

static void release(cfx_pycode *gen)
{
    const cfx_allocator *allocator = gen->allocator;
    cfx_buffer *buffers[] = {&gen->body,        &gen->scratch, &gen->type_text,
                             &gen->params_text, &gen->returns, &gen->wraps};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        cfx_buffer_free(buffers[i]);
    cfxi_base_vec_free(&gen->params, sizeof(cfxi_py_param), allocator);
    cfxi_base_vec_free(&gen->pieces, sizeof(size_t), allocator);
    cfxi_base_vec_free(&gen->globals, sizeof(cfxi_py_global), allocator);
    cfxi_base_vec_free(&gen->blocks, sizeof(const cfx_node *), allocator);
    cfxi_base_pointers_free(&gen->overrides, allocator);
    cfxi_base_pointers_free(&gen->objects, allocator);
    cfxi_base_pointers_free(&gen->callees, allocator);
    cfxi_base_pointers_free(&gen->wanted, allocator);
    cfxi_base_pointers_free(&gen->holders, allocator);
    cfxi_base_pointers_free(&gen->placed, allocator);
    cfxi_base_pointers_free(&gen->instead, allocator);
    cfxi_base_pointers_free(&gen->wishes, allocator);
    cfxi_base_pointers_free(&gen->operands, allocator);
    cfxi_base_pointers_free(&gen->growing, allocator);
    cfxi_base_set_free(&gen->by_name, allocator);
    cfx_namespace_free(gen->names);
}

/* Whether an input is called what no parameter can be: `in`, `2x`, or in a method `self`. */
static bool has_odd_inputs(const cfx_graph *g, bool is_method)
{
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        const cfx_str *target = n->op == CFX_OP_PLACEHOLDER ? n->callee->ref->name : NULL;
        if (!target)
            continue;
        const size_t stars = strspn(target->data, "*");
        const char *name = target->data + stars;
        if (stars > 2 || !cfxi_emit_py_is_plain(name, target->size - stars) ||
            (is_method && strcmp(name, "self") == 0))
            return true;
    }
    return false;
}

cfx_status cfxi_emit_py_generate(cfx_graph *g, const cfx_pycode_options *options, bool names_only,
                                 const cfxi_py_init *init, cfx_pycode_result *result,
                                 cfx_error *err)
{
    const cfx_allocator *allocator = g->allocator;
    memset(result, 0, sizeof *result);
    cfxi_py_memory *memory = memory_new(allocator);
    if (!memory)
        return cfxi_base_nomem(err);
    cfx_pycode gen = {.graph = g,
                      .options = options,
                      .names_only = names_only,
                      .parts = init ? init->parts : NULL,
                      .is_method = names_only && !options->signature,
                      .own_params = names_only && has_odd_inputs(g, !options->signature),
                      .allocator = allocator,
                      .memory = memory};
    gen.root = options->root ? options->root : "self";
    gen.root_size = strlen(gen.root);
    cfx_buffer prefix;
    cfx_buffer *buffers[] = {&gen.body,    &gen.scratch, &gen.type_text, &gen.params_text,
                             &gen.returns, &gen.wraps,   &prefix,        &result->source};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        cfx_buffer_init(buffers[i], allocator);
    cfx_status status = generate(&gen, &prefix, result, err);
    cfx_buffer_free(&prefix);
    release(&gen);
    if (status == CFX_OK)
        return CFX_OK;
    memory_free(memory);
    cfx_buffer_free(&result->source);
    memset(result, 0, sizeof *result);
    return status;
}

cfx_status cfx_codegen_python(cfx_graph *g, const cfx_pycode_options *options,
                              cfx_pycode_result *result, cfx_error *err)
{
    static const cfx_pycode_options defaults;
    memset(result, 0, sizeof *result);
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    cfxi_ir_graph_freeze(g);
    cfx_status status = cfxi_emit_py_generate(g, options ? options : &defaults, false, NULL,
                                               result, err);
    cfxi_ir_graph_thaw(g);
    return status;
}

void cfx_pycode_free(cfx_pycode_result *result)
{
    if (!result->memory)
        return;
    memory_free(result->memory);
    cfx_buffer_free(&result->source);
    memset(result, 0, sizeof *result);
}
