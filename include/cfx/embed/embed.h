/* For language bindings and back ends; may change between versions.
 *
 * embed/embed.h - includes all headers of this folder. They complement <cfx/cfx.h>, and the same
 * library exports their functions; but only <cfx/cfx.h> is stable.
 */
#ifndef CFX_EMBED_EMBED_H
#define CFX_EMBED_EMBED_H

#include <cfx/embed/base.h>
#include <cfx/embed/check.h>
#include <cfx/embed/codegen.h>
#include <cfx/embed/context.h>
#include <cfx/embed/copy.h>
#include <cfx/embed/dim.h>
#include <cfx/embed/dlpack.h>
#include <cfx/embed/graph.h>
#include <cfx/embed/guard.h>
#include <cfx/embed/hook.h>
#include <cfx/embed/host.h>
#include <cfx/embed/location.h>
#include <cfx/embed/match.h>
#include <cfx/embed/namespace.h>
#include <cfx/embed/ops.h>
#include <cfx/embed/partition.h>
#include <cfx/embed/pass.h>
#include <cfx/embed/placement.h>
#include <cfx/embed/quantize.h>
#include <cfx/embed/repeated.h>
#include <cfx/embed/runtime.h>
#include <cfx/embed/script.h>
#include <cfx/embed/split.h>
#include <cfx/embed/stats.h>
#include <cfx/embed/syntax.h>
#include <cfx/embed/tensor.h>
#include <cfx/embed/weights.h>

#endif
