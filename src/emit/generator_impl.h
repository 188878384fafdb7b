/* generator_impl.h - the functions behind generator.def. */
#ifndef CFXI_GENERATOR_IMPL_H
#define CFXI_GENERATOR_IMPL_H

#include "ir/graph_impl.h"

#include <cfx/codegen.h>

#define CFX_GENERATOR(name, extension, flags, summary)                                             \
    cfx_generate_fn cfxi_emit_##name##_generate;
#include "generator.def"
#undef CFX_GENERATOR

#endif
