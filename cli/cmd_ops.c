/* cmd_ops.c - cfx ops: the operator table, or one operator in detail. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { OPS_JSON, OPS_WIDE, OPS_WIDTH };

static const cli_option verb_options[] = {
    [OPS_JSON] = {"--json", NULL, false, "everything, as JSON"},
    [OPS_WIDE] = {"--wide", NULL, false, "never cut the table to the terminal's width"},
    [OPS_WIDTH] = {"--width", "N", false, "cut the table to N columns, even in a file"},
    {NULL, NULL, false, NULL},
};

/* ---- what a row says ----------------------------------------------------------------------- */

enum { EFFECTS_SIZE = 200 };

static void add_word(char *text, const char *word, cfx_schema_text name)
{
    size_t used = strlen(text);
    snprintf(text + used, EFFECTS_SIZE - used, "%s%s%.*s", used ? ", " : "", word, (int)name.size,
             name.text ? name.text : "");
}

static bool is_result(cfx_operator op, char alias)
{
    cfx_schema_param result;
    for (size_t i = 0; cfx_operator_result(op, i, &result); i++)
        if (result.alias == alias)
            return true;
    return false;
}

/* "writes self, random": what it does beside computing a new value from its arguments. */
static const char *effects_of(cfx_operator op, char text[EFFECTS_SIZE])
{
    const cfx_schema_text nothing = {NULL, 0};
    cfx_schema_param param;
    text[0] = '\0';
    for (size_t i = 0; cfx_operator_param(op, i, &param); i++) {
        if (param.writes)
            add_word(text, "writes ", param.name);
        else if (param.alias && is_result(op, param.alias))
            add_word(text, "shares ", param.name);
    }
    for (unsigned bit = 0; cfx_operator_flag_name(bit); bit++)
        if (cfx_operator_flags(op) & 1u << bit)
            add_word(text, cfx_operator_flag_name(bit), nothing);
    return text;
}

/* ---- the table ----------------------------------------------------------------------------- */

static void add_spellings(cfx_operator op, cfx_buffer *line)
{
    char name[CFX_SPELLING_SIZE];
    for (size_t i = 0; cfx_operator_short_spelling(op, i, name); i++) {
        cfx_buffer_append(line, i ? " " : "", i ? 1 : 0);
        cfx_buffer_append(line, name, strlen(name));
    }
}

/* One line, cut to the width; 0 never cuts. The table is ASCII. */
static cfx_status print_row(cfx_operator op, size_t width, cfx_sink out)
{
    char effects[EFFECTS_SIZE];
    char head[512];
    cfx_buffer line;
    int n = snprintf(head, sizeof head, "%-22s %-25s %s  ", cfx_operator_name(op),
                     effects_of(op, effects), cfx_operator_schema(op));
    cfx_buffer_init(&line, NULL);
    cfx_buffer_append(&line, head, (size_t)n < sizeof head ? (size_t)n : sizeof head - 1);
    add_spellings(op, &line);
    bool cut = width > 3 && line.size > width;
    cfx_status status = out.write(out.ctx, line.data, cut ? width - 3 : line.size);
    if (status == CFX_OK)
        status = out.write(out.ctx, cut ? "...\n" : "\n", cut ? 4 : 1);
    cfx_buffer_free(&line);
    return status;
}

static int print_table(size_t width)
{
    cfx_sink out = cli_stdout();
    for (int op = 1; op < CFX_OPERATOR_COUNT; op++)
        if (print_row((cfx_operator)op, width, out) != CFX_OK)
            return CLI_BAD_INPUT;
    return CLI_OK;
}

/* ---- one operator -------------------------------------------------------------------------- */

static void print_params(cfx_operator op)
{
    cfx_schema_param p;
    for (size_t i = 0; cfx_operator_param(op, i, &p); i++)
        printf("%-12s%-16.*s %s%s%.*s%s\n", i ? "" : "parameters", (int)p.name.size, p.name.text,
               p.type, p.value.size ? " = " : "", (int)p.value.size,
               p.value.text ? p.value.text : "", p.keyword_only ? ", keyword-only" : "");
}

static void print_twin(const char *title, cfx_operator twin)
{
    if (twin)
        printf("%-12s%s%s\n", title, cfx_operator_name(twin), cfx_operator_schema(twin));
}

static int print_operator(cfx_operator op)
{
    char effects[EFFECTS_SIZE];
    char name[CFX_SPELLING_SIZE];
    printf("%s%s\n\n", cfx_operator_name(op), cfx_operator_schema(op));
    printf("%-12s%s\n", "effects", effects_of(op, effects)[0] ? effects : "none");
    printf("%-12s%s\n", "runtime", cfx_operator_has_kernel(op)
                                      ? "has a kernel"
                                      : "has no kernel: only the host language can compute it");
    print_params(op);
    print_twin("in place", cfx_operator_in_place(op));
    print_twin("functional", cfx_operator_functional(op));
    for (size_t i = 0; cfx_operator_spelling(op, i, name, NULL); i++)
        printf("%-12s%s\n", i ? "" : "spellings", name);
    return CLI_OK;
}

/* ---- JSON: no name or schema has a character that needs an escape -------------------------- */

static void json_text(const char *key, cfx_schema_text text)
{
    if (text.text)
        printf(", \"%s\": \"%.*s\"", key, (int)text.size, text.text);
    else
        printf(", \"%s\": null", key);
}

static void json_param(const cfx_schema_param *p, bool first)
{
    const char alias[] = {p->alias, '\0'};
    printf("%s{\"type\": \"%s\"", first ? "" : ", ", p->type);
    json_text("name", p->name);
    json_text("default", p->value);
    json_text("alias", (cfx_schema_text){p->alias ? alias : NULL, 1});
    printf(", \"writes\": %s, \"keyword_only\": %s}", p->writes ? "true" : "false",
           p->keyword_only ? "true" : "false");
}

static void json_operator(cfx_operator op)
{
    char name[CFX_SPELLING_SIZE];
    cfx_schema_param p;
    const char *comma = "";
    printf("{\"name\": \"%s\", \"schema\": \"%s\", \"flags\": [", cfx_operator_name(op),
           cfx_operator_schema(op));
    for (unsigned bit = 0; cfx_operator_flag_name(bit); bit++)
        if (cfx_operator_flags(op) & 1u << bit) {
            printf("%s\"%s\"", comma, cfx_operator_flag_name(bit));
            comma = ", ";
        }
    printf("], \"kernel\": %s, \"params\": [", cfx_operator_has_kernel(op) ? "true" : "false");
    for (size_t i = 0; cfx_operator_param(op, i, &p); i++)
        json_param(&p, i == 0);
    printf("], \"results\": [");
    for (size_t i = 0; cfx_operator_result(op, i, &p); i++)
        json_param(&p, i == 0);
    printf("], \"spellings\": [");
    for (size_t i = 0; cfx_operator_spelling(op, i, name, NULL); i++)
        printf("%s\"%s\"", i ? ", " : "", name);
    printf("]}");
}

static int print_json(cfx_operator only)
{
    if (only) {
        json_operator(only);
        printf("\n");
        return CLI_OK;
    }
    for (int op = 1; op < CFX_OPERATOR_COUNT; op++) {
        printf(op == 1 ? "[" : ",\n ");
        json_operator((cfx_operator)op);
    }
    printf("]\n");
    return CLI_OK;
}

/* ---- the verb ------------------------------------------------------------------------------ */

/* The nearest name, by the last part of what was given. */
static int unknown_operator(const cli_args *args)
{
    const char *names[CFX_OPERATOR_COUNT];
    const char *dot = strrchr(args->word, '.');
    for (int op = 1; op < CFX_OPERATOR_COUNT; op++)
        names[op - 1] = cfx_operator_name((cfx_operator)op);
    const char *near = cli_nearest(dot ? dot + 1 : args->word, names, sizeof *names,
                                   CFX_OPERATOR_COUNT - 1);
    if (near)
        return cli_usage_error(args->verb, "there is no operator '%s'; did you mean %s?",
                               args->word, near);
    return cli_usage_error(args->verb, "there is no operator '%s'; cfx ops lists them", args->word);
}

static int cmd_ops(const cli_args *args)
{
    size_t width;
    cfx_operator op = args->word ? cfx_operator_parse(args->word) : CFX_OPID_NONE;
    if (!cli_table_width(args->values[OPS_WIDTH], args->values[OPS_WIDE] != NULL, &width))
        return cli_usage_error(args->verb, "--width needs a number of columns, not '%s'",
                               args->values[OPS_WIDTH]);
    if (args->word && !op)
        return unknown_operator(args);
    if (args->values[OPS_JSON])
        return print_json(op);
    return op ? print_operator(op) : print_table(width);
}

const cli_verb verb_ops = {
    .name = "ops",
    .summary = "list the operators, or explain one: parameters, effects, names",
    .usage = "[--json] [--wide | --width N] [NAME]",
    .operands = CLI_OPERATOR,
    .options = verb_options,
    .examples =
        "  cfx ops                           all of them, cut to the terminal's width\n"
        "  cfx ops F.dropout                 one, by its name or any spelling\n"
        "  cfx ops | grep random\n"
        "  cfx ops --json conv2d\n",
    .run = cmd_ops,
};
