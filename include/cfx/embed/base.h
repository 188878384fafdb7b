/* For language bindings and back ends; may change between versions.
 *
 * embed/base.h - status codes as Python exceptions, and spelling suggestions.
 */
#ifndef CFX_EMBED_BASE_H
#define CFX_EMBED_BASE_H

#include <cfx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name of the Python exception for a status; NULL for OK and HOST. Any int is accepted. */
CFX_API const char *cfx_status_exception(cfx_status status);

/* ---- misspelled words ---------------------------------------------------------------------- */

/* Finds the word nearest to a misspelled one, for "did you mean": begin, add each candidate, then
 * read `best`, which is NULL if none is close. The words are borrowed until then. */
typedef struct cfx_nearest {
    const char *word;
    const char *best;
    size_t limit;  /* edit distance that a better word must stay below */
} cfx_nearest;
CFX_API void cfx_nearest_begin(cfx_nearest *near, const char *word);
CFX_API void cfx_nearest_add(cfx_nearest *near, const char *candidate);

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Writes JSON to a sink: items in the order of the calls, with the commas and spaces between them.
 * It uses no heap memory and needs no cleanup. After the first failure the calls write nothing, so
 * it is enough to check `status` once, at the end: it is what the sink returned, or CFX_E_VALUE if
 * the sink has no write function. The caller closes what it opens, and puts a key before each value
 * of an object; neither is checked.
 *
 *     cfx_json j;
 *     cfx_json_begin(&j, cfx_buffer_sink(&text), false);
 *     cfx_json_open(&j, '{');
 *     cfx_json_field(&j, "nodes");
 *     cfx_json_int(&j, 3);
 *     cfx_json_close(&j, '}');                                          {"nodes": 3}
 */
typedef struct cfx_json {
    cfx_sink out;
    cfx_status status;  /* of the first failure; else CFX_OK */
    bool compact;       /* no spaces between items */
    bool first;         /* the next item needs no comma */
    bool line;          /* the next item begins a line */
} cfx_json;
CFX_API void cfx_json_begin(cfx_json *j, cfx_sink out, bool compact);
CFX_API void cfx_json_open(cfx_json *j, char bracket);   /* '[' or '{' */
CFX_API void cfx_json_close(cfx_json *j, char bracket);  /* ']' or '}' */
/* The next item begins a line, indented by one space; a bracket that closes is not indented. */
CFX_API void cfx_json_line(cfx_json *j);
/* The key of the next value; cfx_json_field takes a terminated one. */
CFX_API void cfx_json_key(cfx_json *j, const char *key, size_t size);
CFX_API void cfx_json_field(cfx_json *j, const char *key);
/* A string, quoted and escaped; bytes that are not UTF-8 become U+FFFD. cfx_json_text takes a
 * terminated one, and writes null for NULL. */
CFX_API void cfx_json_string(cfx_json *j, const char *text, size_t size);
CFX_API void cfx_json_text(cfx_json *j, const char *text);
CFX_API void cfx_json_int(cfx_json *j, int64_t i);
CFX_API void cfx_json_uint(cfx_json *j, uint64_t u);
CFX_API void cfx_json_float(cfx_json *j, double f);  /* inf and nan, which JSON lacks, are null */
CFX_API void cfx_json_bool(cfx_json *j, bool b);
CFX_API void cfx_json_null(cfx_json *j);
/* A value that already is JSON, such as a number of any size. */
CFX_API void cfx_json_raw(cfx_json *j, const char *text, size_t size);
/* Begins a value that another function writes as JSON to the sink returned; a failure to write is
 * kept in `status` too. Good until the next call for `j`. */
CFX_API cfx_sink cfx_json_value_sink(cfx_json *j);

#ifdef __cplusplus
}
#endif
#endif
