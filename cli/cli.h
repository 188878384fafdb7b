/* cli.h - what the verbs of the command share: options, input, output, messages. */
#ifndef CLI_H
#define CLI_H

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>

#include <stdio.h>
#include <sys/types.h>

/* What the command exits with: done, or yes; no, or it cannot be done with this input; the command
 * line is wrong; a file cannot be read as a graph; Ctrl-C, as shells count it. */
enum {
    CLI_OK = 0,
    CLI_BAD_INPUT = 1,
    CLI_BAD_USAGE = 2,
    CLI_UNREADABLE = 3,
    CLI_INTERRUPTED = 130
};

enum { CLI_MAX_OPTIONS = 20, CLI_MAX_REPEATED = 64, CLI_MAX_FORMS = 32 };

/* ---- verbs and options (command.c, args.c, help.c) ----------------------------------------- */

typedef struct cli_args cli_args;

/* An option of a verb; a table of them ends with a row without a name. */
typedef struct cli_option {
    const char *name;   /* "--class" */
    const char *value;  /* its value in the help; NULL for a flag. It also tells what completes it:
                           "FILE" files, "PASS" a pass, "A,B,..." some, "GENERATOR" a generator,
                           "a|b" these words */
    bool may_omit;      /* the value is given as --name=VALUE or not at all */
    const char *summary; /* {tensor} and {tensors} in it are the extensions of such files */
    bool repeats;       /* may be given several times; its values are in `repeated` */
} cli_option;

/* What follows the options. */
typedef enum cli_operands {
    CLI_NO_OPERAND,
    CLI_ONE_FILE,   /* standard input if it is not given */
    CLI_TWO_FILES,
    CLI_OPERATOR,   /* may be left out */
    CLI_PASS_NAME,  /* may be left out */
    CLI_SHELL       /* bash, zsh or fish */
} cli_operands;

/* A verb: cmd_NAME.c defines it, verbs.def lists it. */
typedef struct cli_verb {
    const char *name;
    const char *summary;
    const char *usage;         /* what follows "cfx VERB "; NULL: made from options and operands */
    cli_operands operands;
    const cli_option *options;
    const char *generator;     /* the default of one that writes a graph in any form of the table of
                                  generators: it has the option --to GENERATOR, and --NAME too */
    const char *examples;
    int (*run)(const cli_args *args);
} cli_verb;

/* What the user gave. */
struct cli_args {
    const cli_verb *verb;
    const char *file;                     /* "-" for standard input */
    const char *other;                    /* the second of two files */
    const char *word;                     /* the NAME of a verb that takes one; or NULL */
    const char *values[CLI_MAX_OPTIONS];  /* by the option's row: NULL not given, "" no value */
    const char *repeated[CLI_MAX_REPEATED];
    size_t num_repeated;
    bool help;
};

/* In the order of verbs.def; NULL past the end. (command.c) */
const cli_verb *cli_verb_at(size_t i);
#define CLI_VERB(name) extern const cli_verb verb_##name;
#include "verbs.def"
#undef CLI_VERB

extern const cli_option cli_common_options[];  /* of every verb */

/* What follows "cfx VERB " in the usage: of the verb, or made from its options and operands. Good
 * until the next call. (help.c) */
const char *cli_usage(const cli_verb *verb);
/* The summary of an option, with its formats. (help.c) */
enum { CLI_SUMMARY_SIZE = 200 };
const char *cli_summary(const cli_option *option, char out[CLI_SUMMARY_SIZE]);
/* A row of the table of generators as an option of a verb: --NAME. (help.c) */
cli_option cli_form(const cli_verb *verb, const cfx_generator *generator, char name[32],
                    char summary[CLI_SUMMARY_SIZE]);

/* What all verbs are, what one is, the manual page in roff. (help.c) They return `code` or CLI_OK.
 */
int cli_help(FILE *out, int code);
int cli_help_verb(const cli_verb *verb);
int cli_help_man(void);

/* Sorts the words after the verb into *args. CLI_OK, or CLI_BAD_USAGE after a message. */
int cli_parse(const cli_verb *verb, int argc, char **argv, cli_args *args);

/* Prints what is wrong with the command line and how the verb is used; returns CLI_BAD_USAGE. */
int cli_usage_error(const cli_verb *verb, const char *format, ...) CFX_PRINTF(2, 3);

/* How wide a table may be, from the values of --width (NULL if not given) and --wide: 0 never cuts.
 * False if --width is not a number. */
bool cli_table_width(const char *given, bool wide, size_t *width);
/* The number that an option was given; *out stays if it was not. False, after a message, if it is
 * none, or more than `most`. */
bool cli_number(const cli_args *args, int option, uint64_t most, uint64_t *out);

/* The nearest of `n` words, each at `words + i * stride`; NULL if none is near. */
const char *cli_nearest(const char *word, const char *const *words, size_t stride, size_t n);

/* ---- what verbs share ---------------------------------------------------------------------- */

/* Says why cfx_pass_list_next failed; returns CLI_BAD_USAGE. (cmd_passes.c) */
int cli_bad_pass(const cli_args *args, const cfx_pass_step *step, const cfx_error *err);
/* Prints what differs, as cfx diff does. (cmd_diff.c) */
cfx_status cli_print_diff(cfx_graph *a, cfx_graph *b, cfx_error *err);

/* ---- input (io.c) -------------------------------------------------------------------------- */

typedef struct cli_input {
    const char *name;  /* for messages: the path, or "<stdin>" */
    const char *what;  /* it should hold: "IR text" */
    char *text;
    size_t size;
    cfx_graph *graph;
    cfx_text_places *places;  /* of its nodes in the text */
    bool read_only;           /* nobody writes to its weights */
    /* Of a .cfx file, else NULL: */
    cfx_package *package;
    cfx_scope *scope;         /* which has the module */
    cfx_module *module;       /* layers and weights; NULL if the weights are kept elsewhere */
} cli_input;

/* Reads and parses `file`, IR text or the graph of a .cfx file; false after a message. Close it in
 * both cases. */
bool cli_open(cli_input *in, const char *file);
/* The same for verbs that run it and change nothing: weights of a mapped file leave memory once a
 * plan has packed them. */
bool cli_open_to_run(cli_input *in, const char *file);
/* Loads a .cfx file without a look at what it says. Likewise. */
bool cli_open_package(cli_input *in, const char *file);
/* Whether a file is an ONNX model, by its name: its bytes do not tell. */
bool cli_names_onnx(const char *file);
/* Reads `file` alone, which is to be `what`, for messages. Likewise. */
bool cli_read(cli_input *in, const char *file, const char *what);
void cli_close(cli_input *in);

/* ---- .cfx files to write (parts.c) ---------------------------------------------------------- */

/* The texts of a .cfx file, in order. All zero: none yet. */
typedef struct cli_part {
    char name[256];
    cfx_buffer text;
} cli_part;
typedef struct cli_parts {
    cli_part *items;
    size_t n;
    size_t capacity;
} cli_parts;

/* The name of a file or folder alone: "net" of "dir/net.ir" and of "dir/net/". */
void cli_stem(const char *path, char *out, size_t room);
/* Whether a path asks for a .cfx file. */
bool cli_is_package(const char *path);
/* How many graphs a .cfx file has besides graph.ir; 0 for IR text. */
size_t cli_other_graphs(const cli_input *in);
/* Whether an entry of a package is the graph for other kinds of inputs: "graphs/1/graph.ir". */
bool cli_is_other_graph(const char *name);

/* An empty text of that name at the end, until the next is added; NULL with *err set. */
cfx_buffer *cli_parts_add(cli_parts *parts, const char *name, cfx_error *err);
/* Writes the file, with a line of progress; the message names it if that fails. */
cfx_status cli_parts_save(const cli_parts *parts, const char *path, const char *model,
                          const cfx_state *weights, cfx_error *err);
void cli_parts_free(cli_parts *parts);

/* A module as a .cfx file has it. */
typedef struct cli_described {
    cfx_buffer graph;
    cfx_buffer modules;
    cfx_state *weights;
} cli_described;
/* Free it in both cases. */
cfx_status cli_describe(cli_described *d, cfx_module *m, cfx_error *err);
void cli_described_free(cli_described *d);

/* ---- programs (program.c) ------------------------------------------------------------------- */

/* A graph that can be run, and what its inputs are. */
typedef struct cli_program {
    cfx_dims *dims;
    cfx_state *state;
    cfx_program *program;
    cfx_executable *executable;      /* instead of it, of a .cfx file that cfx run loads */
    cfx_session *session;
    const cfx_signature *signature;  /* of what cfx run loads */
    cfx_runtime *rt;
    cfx_datum *inputs;
    size_t num_inputs;
    cfx_compile_options compile;  /* for what is loaded */
} cli_program;

/* Gives *p its sets and the weights of a file (NULL: those of the input, if it has any). */
cfx_status cli_program_begin(cli_program *p, const cli_input *in, const char *weights,
                             const cfx_runtime_options *options, cfx_error *err);
/* Lowers the graph; everything that is in the way is told on standard error, then *told is set. */
cfx_status cli_program_make(cli_program *p, const cli_input *in, bool *told, cfx_error *err);
/* For cfx run: makes IR text a program, or loads a .cfx file with its graphs, guards and state.
 * `weights`: some were given, which are not those of the file. */
cfx_status cli_program_load(cli_program *p, const cli_input *in, bool weights, bool *told,
                            cfx_error *err);
/* Runs what was loaded; *graph is the graph of a .cfx file that the inputs are for. */
cfx_datum cli_program_run(const cli_program *p, size_t *graph, cfx_error *err);
/* Both, for cfx run and cfx plan. End it in both cases. */
cfx_status cli_program_open(cli_program *p, const cli_input *in, const char *weights,
                            const cfx_runtime_options *options, cfx_precision precision,
                            bool *told, cfx_error *err);
/* Gives it the inputs of the command line; `random` (or NULL) is what --random says. */
cfx_status cli_program_fill(cli_program *p, const cli_input *in, const cli_args *args,
                            const char *random, cfx_error *err);
/* The plans that its runs have made. */
cfx_status cli_program_print_plans(const cli_program *p, cfx_sink out, cfx_error *err);
/* The i-th input's name; NULL past the last. */
const char *cli_program_input(const cli_program *p, size_t i);
/* Sets the input of that name. */
cfx_status cli_program_set(cli_program *p, const char *name, size_t size, cfx_datum value,
                           cfx_error *err);
void cli_program_end(cli_program *p);

/* Makes *p of the graph, with weights of a file (NULL: none), for inputs like "x=float32[N,3],
 * y=float32[N]". (shapes.c) End it in both cases. */
cfx_status cli_program_shapes(cli_program *p, const cli_input *in, const char *shapes,
                              const char *weights, bool *told, cfx_error *err);
/* Types and shapes of all nodes, for such inputs. (shapes.c) */
cfx_status cli_show_shapes(const cli_input *in, const char *shapes, const char *weights, bool *told,
                           cfx_sink out, cfx_error *err);

/* Where a value of "x=float32[N,3], y=2" ends: at a comma or semicolon outside brackets.
 * (shapes.c) */
size_t cli_end_of_value(const char *text);

/* ---- times (timing.c) ---------------------------------------------------------------------- */

/* Seconds, from some moment on. */
double cli_seconds(void);

/* Of one run, in seconds. */
typedef struct cli_times {
    double best;
    double median;
    double spread;  /* half of the distance between the quartiles */
    size_t runs;
} cli_times;
/* Runs the program for about that long, at least once. */
cfx_status cli_measure(const cli_program *p, double seconds, cli_times *out, cfx_error *err);

/* ---- inputs (inputs.c) --------------------------------------------------------------------- */

/* Sets inputs, each [NAME=]VALUE: a number, a file of a tensor, one of a file of several
 * (FILE:NAME), or raw bytes (FILE:uint8[2, 3]). A file of several is one input for each. */
cfx_status cli_give_inputs(cli_program *p, const char *const *texts, size_t n, cfx_error *err);
/* Makes those that were not given, of random numbers; `list` has sizes: "n=8, x=2x3". `g` is the
 * graph, whose defaults stay. */
cfx_status cli_random_inputs(cli_program *p, const cfx_graph *g, const char *list, cfx_error *err);

/* ---- data for many calls (calls.c) ---------------------------------------------------------- */

enum { CLI_MAX_INPUTS = 64 };

/* A folder with a file of tensors for each call, in the order of their names; or one file, which is
 * divided along the first dimension of its tensors. */
typedef struct cli_calls {
    char **files;
    size_t n;
    bool is_folder;
    int64_t batch;  /* how much of one file goes into a call */
} cli_calls;

/* Close it in both cases. */
cfx_status cli_calls_open(cli_calls *c, const char *path, int64_t batch, cfx_error *err);
void cli_calls_close(cli_calls *c);
/* Calls `fn` with the inputs of each call, which are borrowed; INVALID for one that the data does
 * not have. A file of one tensor is for the first input of `g`, others have names of inputs. Stops
 * at Ctrl-C. */
typedef cfx_status cli_call_fn(void *ctx, const cfx_datum *inputs, size_t n, cfx_error *err);
cfx_status cli_calls_each(const cli_calls *c, const cfx_graph *g, cli_call_fn *fn, void *ctx,
                          cfx_error *err);

/* ---- what a quantized model computes in float (quantized.c) --------------------------------- */

/* Calls that stay float, with the reason. All zero: none. */
typedef struct cli_left cli_left;
typedef struct cli_lefts {
    const cfx_module *model;  /* for the classes of modules; or NULL */
    cli_left *items;
    size_t n;
    bool nomem;
} cli_lefts;

/* Notes a call; a later reason replaces an earlier one. */
void cli_lefts_note(cli_lefts *all, const cfx_node *n, const char *why);
/* Prints what computes in integers when the model runs, and what does not: what was noted, and
 * what is found now. `why_product` is the reason for products that nothing else is known of. */
cfx_status cli_lefts_print(cli_lefts *all, cfx_module *quantized, const char *why_product,
                           cfx_error *err);
void cli_lefts_free(cli_lefts *all);

/* ---- models in C (model.c) ----------------------------------------------------------------- */

/* A model whose source is C: `cfx_module *cfx_model(cfx_scope *s)` makes it. */
typedef struct cli_model {
    const char *name;     /* for messages: the path, or "<stdin>" */
    void *library;
    cfx_runtime *rt;      /* which Ctrl-C interrupts */
    cfx_scope *scope;
    cfx_module *module;
    cfx_var (*example)(cfx_scope *s);  /* `cfx_example`, which makes an input for it; or NULL */
} cli_model;

/* Compiles the file with CC or cc, and the words of `cflags` (may be NULL); loads it, and makes the
 * model. If there is a `text`, that is what is compiled, and `file` only its name. CLI_OK, or what
 * to exit with, after a message. End it in both cases. */
int cli_model_begin(cli_model *m, const char *file, const char *text, const char *cflags);
void cli_model_end(cli_model *m);
/* Says why the scope failed; returns what to exit with. */
int cli_model_failed(const cli_model *m);

/* ---- signals (signals.c) ------------------------------------------------------------------- */

/* The first Ctrl-C sets cli_interrupted, which is for cfx_runtime_options; the second one kills. */
void cli_watch_interrupts(void);
bool cli_interrupted(void *ctx);
/* From here on code of that file runs, NULL: no more. A crash, an exit and a Ctrl-C that it does
 * not look at end the command with a message. */
void cli_watch_code(const char *name);
/* A process that is ended with this one; 0: none. */
void cli_watch_compiler(pid_t child);

/* A folder for the files of a compiler, which is removed however the command ends: one at a time.
 * NULL after a message. */
typedef struct cli_scratch {
    const char *folder;
    const char *source;
    const char *object;
} cli_scratch;
const cli_scratch *cli_scratch_begin(void);
void cli_scratch_end(void);

/* ---- forms of a graph (generate.c) --------------------------------------------------------- */

/* The generator that `option` of the verb names, or the verb's own. CLI_OK, or CLI_BAD_USAGE after
 * a message. */
int cli_generator(const cli_args *args, int option, const cfx_generator **out);
/* Whether the generator has this flag, if the option is given. If not, says so: false. */
bool cli_generator_takes(const cli_args *args, int option, const cfx_generator *generator,
                         unsigned flag);
/* A name that Python takes for a class and that hides nothing the code may need. */
bool cli_is_class_name(const char *name);
/* Opens the file and writes its graph to standard output. Returns what to exit with. */
int cli_generate(const cli_args *args, const cfx_generator *generator,
                 const cfx_generate_options *options);

/* ---- captured models (captured.c) ---------------------------------------------------------- */

typedef struct cli_written {
    const char *output;   /* NULL: standard output; a .cfx file has everything in it */
    const char *weights;  /* NULL: beside an output of IR text, unless a file is there already */
    bool no_weights;      /* nowhere */
    bool keep_modules;    /* not lowered */
    bool lower;           /* even in a .cfx file, which keeps modules otherwise */
    const cfx_generator *generator;
} cli_written;

/* Where weights lie if nobody says: "net.safetensors" for "net.ir". False if it is too long. */
bool cli_beside(const char *output, char *out, size_t room);
/* Whether that is a sensible thing to want; CLI_BAD_USAGE after a message if not. */
int cli_check_written(const cli_args *args, const cli_written *what);
/* Writes a captured model, and says so if standard output is free. Returns what to exit with. */
int cli_write_captured(const cli_model *m, cfx_module *captured, const cli_written *what);

/* ---- messages (io.c, findings.c) ----------------------------------------------------------- */

/* "FILE:LINE:COL: what", then the line and a caret where the text is at fault. */
void cli_report(const cli_input *in, const cfx_error *err);

/* Checks the graph, prints all findings with their places in the text, returns how many. */
typedef cfx_status cli_check_fn(cfx_graph *g, cfx_finding_fn *report, void *ctx, cfx_error *err);
size_t cli_findings(const cli_input *in, cli_check_fn *check);

/* What to return after a call for `in` failed with `err`, printed unless output was at fault. */
int cli_failed(const cli_input *in, const cfx_error *err);

/* ---- output (io.c) ------------------------------------------------------------------------- */

/* Standard output, and standard error. */
cfx_sink cli_stdout(void);
cfx_sink cli_stderr(void);

/* Writes a file. CLI_OK, or CLI_BAD_INPUT after a message. */
int cli_write_file(const char *path, const cfx_buffer *text);

/* Writes what is left. `code`, or CLI_BAD_INPUT if anything could not be written. */
int cli_finish(int code);

/* On a terminal: a line that says what is being done with so many bytes, if it may take long. */
void cli_progress(const char *what, size_t bytes);
/* Likewise for work of which nobody knows how long it takes: the line comes after a second, and
 * counts seconds. `what` is copied. */
void cli_working(const char *what);
void cli_progress_end(void);

/* The terminal's width, or 0 if standard output is none. */
size_t cli_width(void);
/* Whether to colour a stream: as --color says; if that is "auto", a terminal that can, and no
 * NO_COLOR. */
bool cli_has_colour(FILE *stream);
bool cli_set_colour(const char *when);  /* false if it is none of auto, always, never */

typedef enum cli_ink { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW } cli_ink;
/* What switches to it on this stream; "" if it has no colour. */
const char *cli_ink_on(FILE *stream, cli_ink ink);

/* ---- colour (colour.c) --------------------------------------------------------------------- */

/* A sink that hands lines on with the opcode of each coloured. Free it after the last line. */
typedef struct cli_colour {
    cfx_sink out;
    cfx_buffer line;
} cli_colour;
cfx_sink cli_colour_sink(cli_colour *colour, cfx_sink out);
void cli_colour_free(cli_colour *colour);

#endif
