/* text_parse_impl.h - the state of the IR text's parser, shared by its two halves. */
#ifndef CFXI_TEXT_PARSE_IMPL_H
#define CFXI_TEXT_PARSE_IMPL_H

#include "graph_impl.h"
#include "text_lex_impl.h"

/* What is open. A container is a SEQ, with its kind in `seq`. */
typedef enum cfxi_frame_kind {
    CFXI_FRAME_GRAPH,
    CFXI_FRAME_TYPE,
    CFXI_FRAME_CALL,
    CFXI_FRAME_SEQ
} cfxi_frame_kind;

typedef struct cfxi_text_frame {
    cfxi_frame_kind kind;
    cfx_kind seq;
    bool after;            /* an item was read: a separator or the end comes next */
    bool comma;            /* the last item is followed by a comma */
    uint32_t depth;        /* of containers in this graph, the arguments included */
    size_t at;             /* where it opened */
    size_t base;           /* its first value on the stack; GRAPH: its first pending node */
    size_t positional;     /* CALL: values before the first keyword */
    cfx_graph *graph;      /* GRAPH: owned by the parser */
    cfx_node *node;        /* TYPE, CALL */
} cfxi_text_frame;

/* A node that was mentioned before it was defined. */
typedef struct cfxi_text_pending {
    cfx_node *node;
    size_t at;
} cfxi_text_pending;

/* Functions called before, so that the host is asked once for each. */
enum { CFXI_PARSE_CACHE = 64, CFXI_PARSE_RECENT = 256 };
typedef struct cfxi_cached {
    const cfx_graph *graph;
    cfxi_slice name;
    cfxi_callee *callee;
} cfxi_cached;

typedef struct cfxi_parser {
    cfxi_lexer lex;
    cfx_error core;      /* what a function of the core reported */
    const cfx_allocator *allocator;
    const cfx_host *host;
    cfx_graph *graph;    /* the innermost open one */
    uint32_t regions;    /* open */
    cfxi_vec frames;     /* of cfxi_text_frame */
    cfxi_vec values;     /* of cfx_value */
    cfxi_vec pending;    /* of cfxi_text_pending */
    cfx_buffer words[2]; /* terminated copies */
    cfxi_cached cache[CFXI_PARSE_CACHE];
    cfx_node *recent[CFXI_PARSE_RECENT]; /* by the hash of their names: spares a cold lookup */
    cfx_text_places *places;  /* or NULL */
    cfx_graph *result;
} cfxi_parser;

/* ---- places (text_places.c) ---------------------------------------------------------------- */

cfx_text_places *cfxi_ir_places_new(const char *text, const cfx_allocator *allocator);
/* Notes where `n` stands; offsets never decrease. False if there is no memory. */
bool cfxi_ir_places_add(cfx_text_places *places, const cfx_node *n, size_t offset);

/* ---- the stacks ---------------------------------------------------------------------------- */

static inline cfxi_text_frame *cfxi_ir_parse_top(cfxi_parser *p)
{
    return (cfxi_text_frame *)p->frames.data + p->frames.size - 1;
}

static inline cfx_value *cfxi_ir_parse_at(cfxi_parser *p, size_t i)
{
    return (cfx_value *)p->values.data + i;
}

cfx_status cfxi_ir_parse_push(cfxi_parser *p, cfxi_frame_kind kind, uint32_t depth, size_t at);
/* A finished value; INVALID hands on why it could not be made. */
cfx_status cfxi_ir_parse_push_value(cfxi_parser *p, cfx_value v, size_t at);
cfx_status cfxi_ir_parse_open_graph(cfxi_parser *p, size_t at);

/* ---- pieces of text ------------------------------------------------------------------------ */

/* Reads a scalar onto the stack, or opens a container or a region. */
cfx_status cfxi_ir_parse_value(cfxi_parser *p);
/* A word of the class, or quoted text. */
cfx_status cfxi_ir_parse_word(cfxi_parser *p, cfxi_char_class class, const char *wanted,
                              cfxi_slice *s);
/* "%name" with the '%' taken. */
cfx_status cfxi_ir_parse_node_name(cfxi_parser *p, cfxi_slice *name);
/* The node of that name in the innermost graph, declared if it is new: it can be referred to, but
 * has no callee and is not on the list yet. */
cfx_status cfxi_ir_parse_find_node(cfxi_parser *p, cfxi_slice text, cfx_node **n, bool *is_new);

/* ---- failing ------------------------------------------------------------------------------- */

cfx_status cfxi_ir_parse_nomem(cfxi_parser *p);
/* Hands on what the core reported, with the place in the text. */
cfx_status cfxi_ir_parse_core_failed(cfxi_parser *p, size_t at);
cfx_status cfxi_ir_parse_unexpected(cfxi_parser *p, const char *wanted);

#endif
