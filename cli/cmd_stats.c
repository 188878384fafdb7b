/* cmd_stats.c - cfx stats: what a graph is made of, and what it costs. */
#include "cli.h"

#include <string.h>

enum { STATS_WEIGHTS, STATS_SHAPES, STATS_JSON };

static const cli_option verb_options[] = {
    [STATS_WEIGHTS] = {"--weights", "FILE", false, "the parameters: {tensors}", false},
    [STATS_SHAPES] = {"--shapes", "x=TYPE[N,3]", false,
                      "also count operations and memory, for these inputs", false},
    [STATS_JSON] = {"--json", NULL, false, "everything, as JSON", false},
    {NULL, NULL, false, NULL, false},
};

/* ---- numbers ------------------------------------------------------------------------------- */

enum { NUMBER_SIZE = 32 };

/* 1234567 as "1,234,567". */
static const char *grouped(int64_t n, char out[NUMBER_SIZE])
{
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%lld", (long long)n);
    char *to = out;
    for (int i = 0; i < size; i++) {
        if (i > 0 && digits[i - 1] != '-' && (size - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return out;
}

/* 3639 as " (3.64 K)", of bytes as " (3.55 KiB)"; "" if it says no more than the number. */
static const char *brief(int64_t n, bool bytes, char out[NUMBER_SIZE])
{
    static const char letters[] = " KMGTPE";
    const double step = bytes ? 1024 : 1000;
    double value = (double)n;
    size_t power = 0;
    for (; value >= step && letters[power + 1]; power++)
        value /= step;
    out[0] = '\0';
    if (power > 0)
        snprintf(out, NUMBER_SIZE, " (%.*f %c%s)", value < 10 ? 2 : value < 100 ? 1 : 0, value,
                 letters[power], bytes ? "iB" : "");
    return out;
}

static bool is_number(int64_t n) { return !cfx_dim_is_symbol(n) && n != CFX_DIM_UNKNOWN; }

/* A size: a number with commas, or an expression. */
static cfx_status print_size(const cli_program *p, int64_t n, bool bytes, cfx_error *err)
{
    char number[NUMBER_SIZE];
    char rough[NUMBER_SIZE];
    const char *unit = bytes ? " bytes" : "";
    if (is_number(n)) {
        printf("%s%s%s", grouped(n, number), unit, brief(n, bytes, rough));
        return CFX_OK;
    }
    cfx_status status = cfx_dims_print(p->dims, n, cli_stdout(), err);
    printf("%s", unit);
    return status;
}

/* ---- text ---------------------------------------------------------------------------------- */

static void title(const char *text)
{
    printf("%s%-12s%s", cli_ink_on(stdout, CLI_BOLD), text, cli_ink_on(stdout, CLI_PLAIN));
}

/* The graphs of a .cfx file for other inputs, which are not counted. */
static void print_graphs(const cli_input *in)
{
    const size_t others = cli_other_graphs(in);
    if (!others)
        return;
    title("graphs");
    printf("%zu; the first is counted here\n", others + 1);
}

static void print_nodes(const cfx_stats *s)
{
    title("nodes");
    printf("%zu", s->nodes);
    if (s->regions)
        printf(", some of them in %zu region%s", s->regions, s->regions == 1 ? "" : "s");
    printf("\n");
    for (int op = 0; op < CFX_OPCODE_COUNT; op++)
        if (s->opcodes[op])
            printf("  %-14s%6zu\n", cfx_opcode_name((cfx_opcode)op), s->opcodes[op]);
}

static void print_weights(const cfx_stats *s)
{
    char number[NUMBER_SIZE];
    char rough[NUMBER_SIZE];
    size_t tensors = 0;
    int64_t elements = 0;
    for (int d = 0; d < CFX_DTYPE_COUNT; d++) {
        tensors += s->tensors[d];
        elements += s->elements[d];
    }
    if (!tensors)
        return;
    title("weights");
    printf("%s in %zu tensor%s, ", grouped(elements, number), tensors, tensors == 1 ? "" : "s");
    printf("%s bytes%s\n", grouped(s->weight_bytes, number),
           brief(s->weight_bytes, true, rough));
    for (int d = 0; d < CFX_DTYPE_COUNT; d++)
        if (s->tensors[d])
            printf("  %-14s%6zu  %s\n", cfx_dtype_name((cfx_dtype)d), s->tensors[d],
                   grouped(s->elements[d], number));
}

/* One line for each operator; what it costs only where that is known. */
static cfx_status print_rows(const cfx_stats *s, const cli_program *p, cfx_error *err)
{
    size_t width = 14;
    for (size_t i = 0; i < s->n_rows; i++) {
        size_t size = strlen(s->rows[i].name);
        width = size > width && size <= 40 ? size : width;
    }
    if (s->n_rows > 0) {
        title("calls");
        printf("%*s%s\n", (int)width - 4, "count", s->has_costs ? "  operations" : "");
    }
    for (size_t i = 0; i < s->n_rows; i++) {
        const cfx_stats_row *row = &s->rows[i];
        printf("  %-*s%6zu", (int)width, row->name, row->count ? row->count : row->calls);
        cfx_status status = CFX_OK;
        if (row->flops != 0) {
            printf("  ");
            status = print_size(p, row->flops, false, err);
        }
        if (status != CFX_OK)
            return status;
        printf("\n");
    }
    return CFX_OK;
}

static cfx_status print_costs(const cfx_stats *s, const cli_program *p, cfx_error *err)
{
    title("operations");
    cfx_status status = print_size(p, s->flops, false, err);
    if (status != CFX_OK)
        return status;
    printf("\n");
    title("results");
    status = print_size(p, s->result_bytes, true, err);
    if (status != CFX_OK)
        return status;
    printf("\n");
    title("peak");
    printf("%s", s->peak_depends ? "at least " : "");
    status = print_size(p, s->peak_bytes, true, err);
    printf("%s%s\n", s->peak_node ? ", at %" : "", s->peak_node ? s->peak_node : "");
    return status;
}

static cfx_status print_stats(const cfx_stats *s, const cli_program *p, cfx_error *err)
{
    print_nodes(s);
    print_weights(s);
    cfx_status status = print_rows(s, p, err);
    return status == CFX_OK && s->has_costs ? print_costs(s, p, err) : status;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void json_number(cfx_json *j, const char *key, size_t n)
{
    cfx_json_field(j, key);
    cfx_json_uint(j, n);
}

/* A number, or an expression as a string. */
static cfx_status json_size(cfx_json *j, const cli_program *p, const char *key, int64_t n,
                            cfx_error *err)
{
    cfx_buffer text;
    cfx_json_field(j, key);
    if (is_number(n)) {
        cfx_json_int(j, n);
        return j->status;
    }
    cfx_buffer_init(&text, NULL);
    cfx_status status = cfx_dims_print(p->dims, n, cfx_buffer_sink(&text), err);
    cfx_json_string(j, text.data, text.size);
    cfx_buffer_free(&text);
    return status ? status : j->status;
}

static cfx_status json_row(cfx_json *j, const cfx_stats_row *row, bool costs, const cli_program *p,
                           cfx_error *err)
{
    cfx_status status = CFX_OK;
    cfx_json_line(j);
    cfx_json_open(j, '{');
    cfx_json_field(j, "name");
    cfx_json_text(j, row->name);
    cfx_json_field(j, "operator");
    cfx_json_bool(j, row->op != CFX_OPID_NONE);
    json_number(j, "count", row->count);
    if (costs) {
        status = json_size(j, p, "flops", row->flops, err);
        status = status ? status : json_size(j, p, "result_bytes", row->bytes, err);
    }
    cfx_json_close(j, '}');
    return status;
}

static cfx_status json_rows(cfx_json *j, const cfx_stats *s, const cli_program *p, cfx_error *err)
{
    cfx_status status = CFX_OK;
    cfx_json_field(j, "calls");
    cfx_json_open(j, '[');
    for (size_t i = 0; status == CFX_OK && i < s->n_rows; i++)
        status = json_row(j, &s->rows[i], s->has_costs, p, err);
    if (s->n_rows > 0)
        cfx_json_line(j);
    cfx_json_close(j, ']');
    return status;
}

static void json_counts(cfx_json *j, const cfx_stats *s)
{
    json_number(j, "nodes", s->nodes);
    json_number(j, "regions", s->regions);
    cfx_json_field(j, "opcodes");
    cfx_json_open(j, '{');
    for (int op = 0; op < CFX_OPCODE_COUNT; op++)
        json_number(j, cfx_opcode_name((cfx_opcode)op), s->opcodes[op]);
    cfx_json_close(j, '}');
    cfx_json_field(j, "weights");
    cfx_json_open(j, '{');
    for (int d = 0; d < CFX_DTYPE_COUNT; d++) {
        if (!s->tensors[d])
            continue;
        cfx_json_field(j, cfx_dtype_name((cfx_dtype)d));
        cfx_json_open(j, '{');
        json_number(j, "tensors", s->tensors[d]);
        cfx_json_field(j, "elements");
        cfx_json_int(j, s->elements[d]);
        cfx_json_close(j, '}');
    }
    cfx_json_close(j, '}');
    cfx_json_field(j, "weight_bytes");
    cfx_json_int(j, s->weight_bytes);
}

static cfx_status json_costs(cfx_json *j, const cfx_stats *s, const cli_program *p, cfx_error *err)
{
    cfx_status status = json_size(j, p, "flops", s->flops, err);
    status = status ? status : json_size(j, p, "result_bytes", s->result_bytes, err);
    status = status ? status : json_size(j, p, "peak_bytes", s->peak_bytes, err);
    cfx_json_field(j, "peak_depends");
    cfx_json_bool(j, s->peak_depends);
    cfx_json_field(j, "peak_node");
    cfx_json_text(j, s->peak_node);
    return status;
}

static cfx_status json_stats(const cfx_stats *s, const cli_program *p, cfx_error *err)
{
    cfx_json j;
    cfx_json_begin(&j, cli_stdout(), false);
    cfx_json_open(&j, '{');
    json_counts(&j, s);
    cfx_status status = s->has_costs ? json_costs(&j, s, p, err) : CFX_OK;
    status = status ? status : json_rows(&j, s, p, err);
    cfx_json_close(&j, '}');
    printf("\n");
    return status ? status : j.status;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static cfx_status collect(const cli_args *args, const cli_input *in, cli_program *p, cfx_stats *s,
                          bool *told, cfx_error *err)
{
    const char *shapes = args->values[STATS_SHAPES];
    const char *weights = args->values[STATS_WEIGHTS];
    cfx_status status = shapes ? cli_program_shapes(p, in, shapes, weights, told, err)
                               : cli_program_begin(p, in, weights, NULL, err);
    if (status == CFX_OK)
        status = cfx_stats_add_graph(s, in->graph, err);
    if (status == CFX_OK)
        status = cfx_stats_add_state(s, p->state, err);
    if (status == CFX_OK && shapes)
        status = cfx_stats_add_costs(s, p->program, p->rt, p->dims, p->inputs, p->num_inputs, err);
    return status;
}

static int cmd_stats(const cli_args *args)
{
    cli_input in;
    cli_program p = {0};
    cfx_stats s;
    cfx_error err = {.status = CFX_OK};
    bool told = false;
    if (!cli_open(&in, args->file)) {
        cli_close(&in);
        return CLI_UNREADABLE;
    }
    cfx_status status = cfx_stats_init(&s, NULL, &err);
    cli_working("counting");
    if (status == CFX_OK)
        status = collect(args, &in, &p, &s, &told, &err);
    cli_progress_end();
    if (status == CFX_OK && !args->values[STATS_JSON])
        print_graphs(&in);
    if (status == CFX_OK)
        status = args->values[STATS_JSON] ? json_stats(&s, &p, &err) : print_stats(&s, &p, &err);
    int code = status == CFX_OK ? CLI_OK : told ? CLI_BAD_INPUT : cli_failed(&in, &err);
    cfx_stats_free(&s);
    cli_program_end(&p);
    cli_close(&in);
    return code;
}

const cli_verb verb_stats = {
    .name = "stats",
    .summary = "count nodes, weights, operations and memory",
    .operands = CLI_ONE_FILE,
    .options = verb_options,
    .examples =
        "  cfx stats model.ir                nodes by opcode and operator\n"
        "  cfx stats --weights model.safetensors --shapes 'x=[1, 3, 224, 224]' model.ir\n"
        "  cfx stats --weights model.safetensors --shapes 'x=[N, 3, 224, 224]' model.ir\n",
    .run = cmd_stats,
};
