/* cfx.h - the whole public API. */
#ifndef CFX_CFX_H
#define CFX_CFX_H

#include <cfx/base.h>
#include <cfx/capture.h>
#include <cfx/check.h>
#include <cfx/codegen.h>
#include <cfx/datum.h>
#include <cfx/dim.h>
#include <cfx/dlpack.h>
#include <cfx/effect.h>
#include <cfx/graph.h>
#include <cfx/host.h>
#include <cfx/layers.h>
#include <cfx/library.h>
#include <cfx/lower.h>
#include <cfx/match.h>
#include <cfx/module.h>
#include <cfx/nn.h>
#include <cfx/operators.h>
#include <cfx/ops.h>
#include <cfx/partition.h>
#include <cfx/pass.h>
#include <cfx/placement.h>
#include <cfx/pyscript.h>
#include <cfx/repeated.h>
#include <cfx/runtime.h>
#include <cfx/scope.h>
#include <cfx/script.h>
#include <cfx/split.h>
#include <cfx/stats.h>
#include <cfx/syntax.h>
#include <cfx/tensor.h>
#include <cfx/value.h>
#include <cfx/weights.h>

#endif
