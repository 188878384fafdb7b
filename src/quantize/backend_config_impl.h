/* backend_config_impl.h - patterns of a backend, as preparing asks for them. (backend_config.c) */
#ifndef CFXI_QUANTIZE_BACKEND_IMPL_H
#define CFXI_QUANTIZE_BACKEND_IMPL_H

#include "prepare_impl.h"

#define CFXI_QUANTIZE_UNKNOWN ((size_t)-1)

/* A pattern: its row, as those of quantize.def are. */
typedef struct cfxi_quantize_pattern {
    cfxi_quantize_row row;
    size_t first_call, n_calls;
    size_t first_type, n_types;
    size_t next;  /* of those that begin with the same call */
} cfxi_quantize_pattern;

/* The number of what a node calls; CFXI_QUANTIZE_UNKNOWN if no pattern has such a call. With
 * `every`, the node's operator, in any spelling. */
cfx_status cfxi_quantize_backend_find(const cfx_backend *b, const cfx_node *n,
                                      const cfx_module_tree *modules, cfx_operator every,
                                      size_t *number, cfx_error *err);
/* The patterns that begin with such a call, longest first; NULL at the end. */
const cfxi_quantize_pattern *cfxi_quantize_backend_first(const cfx_backend *b, size_t number);
const cfxi_quantize_pattern *cfxi_quantize_backend_next(const cfx_backend *b,
                                                        const cfxi_quantize_pattern *p);
/* That of the call alone. */
const cfxi_quantize_pattern *cfxi_quantize_backend_alone(const cfx_backend *b, size_t number);
/* The number of the i-th call of a pattern. */
size_t cfxi_quantize_backend_call(const cfx_backend *b, const cfxi_quantize_pattern *p, size_t i);
/* Whether one of its types fits a configuration. */
bool cfxi_quantize_backend_takes(const cfx_backend *b, const cfxi_quantize_pattern *p,
                                 const cfx_qconfig *config);

#endif
