/* cfx.h - the complete stable C API. docs/c-api.md lists its functions.
 *
 * The headers follow the data: values and graphs, transforms and code generation, tensors and
 * programs, modules and capture. Language bindings and back ends also include <cfx/embed/embed.h>.
 */
#ifndef CFX_CFX_H
#define CFX_CFX_H

#include <cfx/base.h>
#include <cfx/dtype.h>
#include <cfx/value.h>
#include <cfx/graph.h>
#include <cfx/node.h>
#include <cfx/ops.h>
#include <cfx/tree.h>

#include <cfx/effect.h>
#include <cfx/pass.h>
#include <cfx/match.h>
#include <cfx/lower.h>
#include <cfx/quantize.h>
#include <cfx/codegen.h>

#include <cfx/dim.h>
#include <cfx/tensor.h>
#include <cfx/datum.h>
#include <cfx/state.h>
#include <cfx/package.h>
#include <cfx/weights.h>
#include <cfx/runtime.h>
#include <cfx/compile.h>
#include <cfx/profile.h>
#include <cfx/guard.h>
#include <cfx/compare.h>
#include <cfx/correct.h>
#include <cfx/session.h>
#include <cfx/library.h>

#include <cfx/scope.h>
#include <cfx/operators.h>
#include <cfx/module.h>
#include <cfx/nn.h>
#include <cfx/layers.h>
#include <cfx/capture.h>
#include <cfx/calibrate.h>
#include <cfx/signature.h>
#include <cfx/executable.h>
#include <cfx/freeze.h>
#include <cfx/onnx.h>
#include <cfx/pyscript.h>

#endif
