/* generate.h - what the files of the generator share: tables, texts, names. See main.c. */
#ifndef GENERATE_H
#define GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* ---- tables.c: the rows of ops.def and nn.def ---------------------------------------------- */

typedef struct operator_row {
    const char *file;  /* ops.def, from the folder this program was compiled in */
    int line;
    const char *id;
    const char *schema;
    const char *spellings;
    bool host_only;
} operator_row;

typedef struct class_row {
    const char *name;
    const char *function;
    const char *schema;
} class_row;

extern const operator_row rows[];
extern const size_t row_count;
extern const class_row classes[];
extern const size_t class_count;

enum { MOST_PARAMS = 64 };

typedef struct params {
    size_t count;
    size_t optional;  /* how many have a default */
    struct {
        char name[64];  /* in C: a reserved word gets a '_' */
        bool optional;
    } at[MOST_PARAMS];
} params;

params read_params(const char *schema);

/* ---- text.c: files, and lines of limited width --------------------------------------------- */

/* Prints a message and exits. */
_Noreturn void fail(const char *format, ...);
/* Fails if memory ran out. */
void *expect(void *memory);

/* A text that grows as it is printed to. */
typedef struct text {
    FILE *out;
    char *data;
    size_t size;
} text;

FILE *begin(text *t);
char *end(text *t);

/* The text of a file; NULL if it cannot be read. */
char *read_file(const char *path);
/* Writes a file of a folder, unless it has that text already, and makes the folders it needs. */
void write_file(const char *folder, const char *name, const char *data);

/* The bytes of a file as numbers of C, for an array. */
char *bytes_inc(const char *path);

/* Prints text in lines of at most `width` columns. The lines after the first begin with the margin,
 * which is not counted, and the indentation, which is. */
void wrap(FILE *out, const char *line, size_t width, const char *margin, size_t indent);
/* Prints a statement, in lines of code. */
void wrap_code(FILE *out, const char *line);
/* Prints a #define of two parts, in one line if it fits, else with backslashes. */
void print_macro(FILE *out, const char *head, const char *body);

/* ---- names.c: what the functions are called ------------------------------------------------ */

/* The words that the public headers use, sorted. */
typedef struct names {
    char **at;
    size_t count;
    size_t capacity;
} names;

enum { NAME_SIZE = 128 };

bool in_word(char c);
names read_headers(char *const *paths, int count);
/* The name of an operator's function: cfx_<id>, or what ends with _row if that is used. */
const char *function_name(const names *used, const char *id, char out[NAME_SIZE]);

/* ---- headers.c and index.c: the text of each file ------------------------------------------ */

char *operators_h(const names *used);
char *layers_h(void);
char *c_names_inc(const names *used);
char *ops_index_inc(void);

#endif
