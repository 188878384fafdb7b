/* fuzz_codegen.c - any bytes as IR text: every generator ends, with a text or a message. No name or
 * text of a graph gets out of its place: the Python has correct syntax and nothing but imports,
 * names and one definition at its top; in the C, quotes, comments and brackets are closed, and the
 * only directives are our two #includes; the JSON is one value. */
#include "format/format_impl.h"

#include <cfx/codegen.h>
#include <cfx/embed/syntax.h>
#include <cfx/graph.h>

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_codegen: %s\n%s\n", what, detail);
    abort();
}

/* ---- Python -------------------------------------------------------------------------------- */

/* A line that begins at the margin: "import a.b", "from math import inf", "name = a.b.c". */
static bool is_expected(const char *line, size_t size)
{
    static const char *const begins[] = {"import ", "from ", "def forward(", "class Model(", " "};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (size >= strlen(begins[i]) && memcmp(line, begins[i], strlen(begins[i])) == 0)
            return true;
    const char *equals = memchr(line, '=', size);
    return size == 0 || (equals && !memchr(line, '(', (size_t)(equals - line)));
}

static void check_python(const cfx_buffer *text)
{
    cfx_error err = {.status = CFX_OK};
    const cfx_status status = cfx_syntax_dump(text->data, text->size, NULL, NULL, &err);
    if (status != CFX_OK && status != CFX_E_LIMIT && status != CFX_E_UNSUPPORTED) {
        fprintf(stderr, "%s\n", err.message);
        fail("the Python has wrong syntax", text->data);
    }
    for (const char *line = text->data; line < text->data + text->size;) {
        const size_t size = strcspn(line, "\n");
        if (!is_expected(line, size))
            fail("a line of the Python is not one of ours", line);
        line += size + 1;
    }
}

/* ---- C ------------------------------------------------------------------------------------- */

/* The end of a text or character in quotes. */
static const char *skip_quoted(const char *at)
{
    const char quote = *at++;
    for (; *at != quote; at++) {
        if (*at == '\\')
            at++;
        if (*at == '\0' || *at == '\n')
            fail("the C has a quote that is not closed", at);
    }
    return at;
}

static void check_directive(const char *at)
{
    static const char *const ours[] = {"#include <cfx/cfx.h>\n", "#include <math.h>\n"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strncmp(at, ours[i], strlen(ours[i])) == 0)
            return;
    fail("the C has a directive of another kind", at);
}

static void check_c(const cfx_buffer *text)
{
    size_t depth = 0;
    for (const char *at = text->data; *at; at++) {
        if (*at == '"' || *at == '\'') {
            at = skip_quoted(at);
        } else if (strncmp(at, "/*", 2) == 0) {
            const char *end = strstr(at + 2, "*/");
            if (!end)
                fail("the C has a comment that is not closed", at);
            at = end + 1;
        } else if (*at == '#') {
            check_directive(at);
        } else if (strchr("({[", *at)) {
            depth++;
        } else if (strchr(")}]", *at) && depth-- == 0) {
            fail("the C closes what it did not open", at);
        } else if ((unsigned char)*at >= 0x80 || *at == '\\') {
            fail("the C has a strange character", at);
        }
    }
    if (depth != 0)
        fail("the C does not close what it opened", text->data);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void check_json(const cfx_buffer *text)
{
    cfx_error err = {.status = CFX_OK};
    cfxi_json j = {.text = text->data, .size = text->size, .what = "the JSON", .err = &err};
    cfx_buffer scratch;
    if (strstr(text->data, "\\u"))  /* what the strict reader does not take: NUL, half a pair */
        return;
    cfx_buffer_init(&scratch, NULL);
    if (cfxi_format_json_skip(&j, &scratch) == CFX_OK)
        cfxi_format_json_end(&j);
    if (j.status != CFX_OK && j.status != CFX_E_LIMIT)
        fail(err.message, text->data);
    cfx_buffer_free(&scratch);
}

/* ---- all ----------------------------------------------------------------------------------- */

/* The others are for people: they show names as they are, as torch.fx does. */
static const struct { const char *name; void (*check)(const cfx_buffer *text); } checks[] = {
    {"python", check_python}, {"c", check_c}, {"json", check_json}};

static void generate(cfx_graph *g, const cfx_generator *generator, const char *class_name)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer text;
    const cfx_generate_options options = {.class_name = class_name, .width = 60,
                                          .module_stacks = class_name != NULL};
    cfx_buffer_init(&text, NULL);
    const cfx_status status = cfx_generate(generator, g, &options, cfx_buffer_sink(&text), &err);
    if (status != CFX_OK && err.message[0] == '\0')
        fail("an error without a message", generator->name);
    for (size_t i = 0; status == CFX_OK && i < sizeof checks / sizeof *checks; i++) {
        if (strcmp(generator->name, checks[i].name) != 0)
            continue;
        if (memchr(text.data, 0, text.size))
            fail("a text has a NUL", generator->name);
        checks[i].check(&text);
    }
    cfx_buffer_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cfx_graph *g = cfx_graph_parse((const char *)data, size, NULL, NULL, NULL);
    const bool sound = g && cfx_graph_lint(g, NULL, NULL, NULL) == CFX_OK;
    const cfx_generator *generator;
    for (size_t i = 0; g && (generator = cfx_generator_get(i)) != NULL; i++) {
        if ((generator->flags & CFX_GENERATOR_LINTED) && !sound)
            continue;  /* as the command does */
        generate(g, generator, NULL);
        generate(g, generator, "Model");
    }
    cfx_graph_release(g);
    return 0;
}
