/* headers.c - C functions for the operators (operators.h) and classes of torch.nn (layers.h). */
#include "generate.h"

#include <errno.h>
#include <string.h>

/* ---- a function of C ----------------------------------------------------------------------- */

typedef struct function {
    const char *name;
    const char *says;  /* the first line of its comment */
    const char *also;  /* the second, or "" */
    const char *schema;
    const char *result;  /* its type */
    const char *call;    /* what it calls, and the arguments that come first */
} function;

static void print_comment(FILE *out, const function *f)
{
    fputs("/* ", out);
    wrap(out, f->says, 94, " * ", 4);
    if (*f->also) {
        fputs("\n * ", out);
        wrap(out, f->also, 94, " * ", 4);
    }
    fputs(" */\n", out);
}

/* The struct of what has a default. */
static void print_options(FILE *out, const function *f, const params *p)
{
    text t;
    const char *comma = "";
    fprintf(begin(&t), "typedef struct %s_args { cfx_var ", f->name);
    for (size_t i = 0; i < p->count; i++)
        if (p->at[i].optional) {
            fprintf(t.out, "%s%s", comma, p->at[i].name);
            comma = ", ";
        }
    fprintf(t.out, "; } %s_args;", f->name);
    wrap_code(out, end(&t));
}

static void print_head(FILE *out, const function *f, const params *p)
{
    text t;
    fprintf(begin(&t), "static inline %s%s_at(cfx_at at", f->result, f->name);
    for (size_t i = 0; i < p->count; i++)
        if (!p->at[i].optional)
            fprintf(t.out, ", cfx_var %s", p->at[i].name);
    if (p->optional)
        fprintf(t.out, ", %s_args o", f->name);
    fputc(')', t.out);
    wrap_code(out, end(&t));
}

static void print_body(FILE *out, const function *f, const params *p)
{
    text t;
    fputs("{\n", out);
    if (p->count) {
        fputs("    const cfx_var args[] = {", begin(&t));
        for (size_t i = 0; i < p->count; i++)
            fprintf(t.out, "%s%s%s", i ? ", " : "", p->at[i].optional ? "o." : "", p->at[i].name);
        fputs("};", t.out);
        wrap_code(out, end(&t));
    }
    fprintf(out, "    return %s, %s, %zu);\n}\n", f->call, p->count ? "args" : "NULL", p->count);
}

/* The macro that calls it: options by name, numbers as they are. */
static void print_call(FILE *out, const function *f, const params *p)
{
    text head;
    text body;
    fprintf(begin(&head), "#define %s(s", f->name);
    fprintf(begin(&body), "%s_at(CFX_HERE(s)", f->name);
    for (size_t i = 0; i < p->count; i++)
        if (!p->at[i].optional) {
            fprintf(head.out, ", %s", p->at[i].name);
            fprintf(body.out, ", cfx_v(%s)", p->at[i].name);
        }
    if (p->optional) {
        fputs(", ...", head.out);
        fprintf(body.out, ", CFX_OPTIONS(%s_args, __VA_ARGS__)", f->name);
    }
    fputc(')', head.out);
    fputc(')', body.out);
    print_macro(out, end(&head), end(&body));
}

static void print_function(FILE *out, const function *f)
{
    const params p = read_params(f->schema);
    print_comment(out, f);
    if (p.optional)
        print_options(out, f, &p);
    print_head(out, f, &p);
    print_body(out, f, &p);
    print_call(out, f, &p);
}

/* ---- headers ------------------------------------------------------------------------------- */

static void begin_header(FILE *out, const char *file, const char *guard, const char *title,
                         const char *about, const char *includes)
{
    fprintf(out, "/* %s - %s; made by tools/generate.\n *\n * ", file, title);
    wrap(out, about, 97, " * ", 0);
    fprintf(out, "\n */\n#ifndef %s\n#define %s\n\n", guard, guard);
    fprintf(out, "#pragma GCC system_header /* see scope.h */\n\n%s\n", includes);
    fputs("#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n", out);
}

static void end_header(FILE *out) { fputs("\n#ifdef __cplusplus\n}\n#endif\n#endif\n", out); }

/* The size of a family's title: it ends with a full stop, a colon, the comment or the line. */
static size_t title_size(const char *title)
{
    size_t n = 0;
    while (title[n] && title[n] != '\n' && strncmp(title + n, "*/", 2) != 0 &&
           strncmp(title + n, ". ", 2) != 0 && strncmp(title + n, ": ", 2) != 0)
        n++;
    while (n > 0 && (title[n - 1] == ' ' || title[n - 1] == '.'))
        n--;
    return n;
}

/* Prints the titles of the families that ops.def names in comments, from *at, where line *line
 * begins, to the line `before`; moves *at and *line there. */
static void print_families(FILE *out, const char **at, int *line, int before)
{
    static const char mark[] = "/* ---- ";
    for (; *line < before && **at; ++*line) {
        if (strncmp(*at, mark, sizeof mark - 1) == 0) {
            const char *title = *at + sizeof mark - 1;
            const size_t size = title_size(title);
            fprintf(out, "\n%s%.*s ", mark, (int)size, title);
            for (size_t column = sizeof mark + size; column < 96; column++)
                fputc('-', out);
            fputs(" */\n", out);
        }
        *at += strcspn(*at, "\n");
        *at += **at == '\n';
    }
}

static bool begins(const char *word, const char *start)
{
    return strncmp(word, start, strlen(start)) == 0;
}

/* Prints a spelling of ops.def as Python programs write it. Prints nothing and returns false if it
 * is not a function or method that they call by name. */
static bool print_spelling(FILE *out, const char *comma, const char *word, int size)
{
    if (begins(word, "F."))
        fprintf(out, "%storch.nn.functional.%.*s", comma, size - 2, word + 2);
    else if (begins(word, "linalg."))
        fprintf(out, "%storch.%.*s", comma, size, word);
    else if (begins(word, "."))
        fprintf(out, "%sTensor%.*s", comma, size, word);
    else if (begins(word, "torch.") || begins(word, "operator.") || begins(word, "builtins."))
        fprintf(out, "%s%.*s", comma, size, word);
    else
        return false;
    return true;
}

/* The first four names that a row has in Python. */
static char *python_names(const char *spellings)
{
    text t;
    int found = 0;
    begin(&t);
    for (const char *word = spellings; *word && found < 4;) {
        const int size = (int)strcspn(word, " (");
        found += print_spelling(t.out, found ? ", " : "", word, size);
        word += strcspn(word, " ");
        word += strspn(word, " ");
    }
    return end(&t);
}

static void print_operator(FILE *out, const operator_row *row, const names *used)
{
    char name[NAME_SIZE];
    char call[NAME_SIZE];
    text says;
    if (row->host_only || strstr(row->schema, "Graph "))
        return;  /* for control flow, C has cfx_if and its like, which take functions */
    fprintf(begin(&says), "%s%s", row->id, row->schema);
    snprintf(call, sizeof call, "cfx_apply_at(at, CFX_OPID_%s", row->id);
    fputc('\n', out);
    print_function(out, &(function){.name = function_name(used, row->id, name),
                                    .says = end(&says),
                                    .also = python_names(row->spellings),
                                    .schema = row->schema,
                                    .result = "cfx_var ",
                                    .call = call});
}

char *operators_h(const names *used)
{
    static const char about[] =
        "Each takes the scope, then required arguments by position and optional ones by name. "
        "Required numbers and texts are written as they are; optional ones with cfx_v. Lists of "
        "integers are cfx_ints(s, 2, 2), other lists cfx_list(s, x, y). A function with several "
        "results returns a tuple: cfx_getitem(s, t, 0). A name that ends in '_' writes to its "
        "first argument. Where cfx already uses a name, the function ends in _row: cfx_var_row, "
        "cfx_tensor_row. In C++ before C++20 options have no names: call cfx_NAME_at with a "
        "struct.";
    text t;
    const char *at = read_file(rows->file);
    int line = 1;
    if (!at)
        fail("cannot read %s: %s; run this in the folder it was compiled in", rows->file,
             strerror(errno));
    begin_header(begin(&t), "operators.h", "CFX_OPERATORS_H", "a function for each operator", about,
                 "#include <cfx/capture.h>\n");
    for (size_t i = 0; i < row_count; i++) {
        print_families(t.out, &at, &line, rows[i].line);
        print_operator(t.out, &rows[i], used);
    }
    end_header(t.out);
    return end(&t);
}

static void print_class(FILE *out, const class_row *row)
{
    char name[NAME_SIZE];
    char call[NAME_SIZE];
    text says;
    if (strstr(row->schema, "Module "))
        return;  /* a variable cannot hold a module; other classes make these as their parts */
    snprintf(name, sizeof name, "cfx_nn_%s", row->function);
    snprintf(call, sizeof call, "cfx_nn_make_at(at, CFX_NN_%s", row->name);
    fprintf(begin(&says), "torch.nn.%s%s", row->name, row->schema);
    fputc('\n', out);
    print_function(out, &(function){name, end(&says), "", row->schema, "cfx_module *", call});
}

char *layers_h(void)
{
    static const char about[] =
        "Each makes a module of torch.nn, with its parameters initialised as PyTorch initialises "
        "them, from the scope's random numbers. Arguments as in operators.h; the attributes have "
        "the same names.";
    static const char make_says[] =
        "Makes a module of the class: `args` are by the constructor's parameters; empty ones have "
        "their defaults. NULL, and the scope fails.";
    static const char make[] =
        "CFX_API cfx_module *cfx_nn_make_at(cfx_at at, cfx_nn nn, const cfx_var *args, size_t n);";
    text t;
    begin_header(begin(&t), "layers.h", "CFX_LAYERS_H", "a function for each class of torch.nn",
                 about, "#include <cfx/capture.h>\n#include <cfx/nn.h>\n");
    fputs("\n/* ", t.out);
    wrap(t.out, make_says, 90, " * ", 0);
    fprintf(t.out, " */\n%s\n", make);
    for (size_t i = 0; i < class_count; i++)
        print_class(t.out, &classes[i]);
    end_header(t.out);
    return end(&t);
}

char *c_names_inc(const names *used)
{
    text t;
    char usual[NAME_SIZE];
    char name[NAME_SIZE];
    fputs("/* c_names.inc - made by tools/generate: names in C that are not the tables'. */\n",
          begin(&t));
    for (size_t i = 0; i < row_count; i++) {
        snprintf(usual, sizeof usual, "cfx_%s", rows[i].id);
        if (!rows[i].host_only && strcmp(function_name(used, rows[i].id, name), usual) != 0)
            fprintf(t.out, "CFXI_C_ROW(%s, \"%s\")\n", rows[i].id, name);
    }
    return end(&t);
}
