/* export_control_impl.h - what branches and loops share: what regions take and give. */
#ifndef CFXI_EXPORT_CONTROL_IMPL_H
#define CFXI_EXPORT_CONTROL_IMPL_H

#include "export_impl.h"

enum { CFXI_MOST_LEAVES = 256 };

typedef struct cfxi_export_leaves {
    cfxi_ev *at[CFXI_MOST_LEAVES];
    size_t n;
} cfxi_export_leaves;

/* Tensors, numbers, None and sequences in a value, in the order in which `like`, a value of the
 * same structure, has them, behind those of `out`; false if there is anything else. */
bool cfxi_export_collect(const cfxi_ev *like, cfxi_ev *v, cfxi_export_leaves *out);
/* What is known of each leaf on both ways; false after a finding. */
bool cfxi_export_join(cfxi_export_call *c, const cfxi_export_leaves *a,
                      const cfxi_export_leaves *b, cfxi_export_leaves *both);
/* The structure of `like`, with values[*at] and those that follow as its leaves. */
cfxi_ev *cfxi_export_rebuild(cfxi_exporter *x, const cfxi_ev *like, cfxi_ev *const *values,
                             size_t *at);
/* A value in the type of `like`. */
cfxi_ev *cfxi_export_in_type(cfxi_export_call *c, cfxi_ev *v, const cfxi_ev *like);
/* Outputs of a graph in the types of `like`, under names of its own: a value of outside cannot be
 * one. None is not an output. Returns how many there are. */
size_t cfxi_export_set_outputs(cfxi_export_call *c, cfxi_onnx_value *outputs,
                               cfxi_ev *const *values, cfxi_ev *const *like, size_t n);
/* Gives leaves the names of the outputs of a node, None aside, and returns the structure of `like`
 * with them. */
cfxi_ev *cfxi_export_take_outputs(cfxi_export_call *c, const cfxi_ev *like,
                                  cfxi_export_leaves *both, cfxi_ev *const *outputs);
size_t cfxi_export_count_outputs(const cfxi_export_leaves *both);
/* A number that is not known, of the kind of `d`. */
cfx_datum cfxi_export_unknown_like(cfxi_exporter *x, cfx_datum d);
cfx_datum cfxi_export_abstract(cfxi_exporter *x, cfx_dtype dtype, const int64_t *sizes, int rank);
/* A value of the present graph's own, an input of it, of which no more is known than the type. */
cfxi_ev *cfxi_export_inner_value(cfxi_export_call *c, const cfxi_ev *like);
/* A condition as a bool without dimensions. */
cfxi_ev *cfxi_export_condition(cfxi_export_call *c, cfxi_ev *v);
/* A tensor that is returned may be the same as another of these from then on: `found` are the
 * leaves inside, `results` those of the node. */
void cfxi_export_note_partners(cfxi_exporter *x, const cfxi_export_scope *inside,
                               const cfxi_export_leaves *found, const cfxi_export_leaves *results);

#endif
