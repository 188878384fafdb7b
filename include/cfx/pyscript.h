/* pyscript.h - a model from its Python source, without Python.
 *
 *     cfx_scope *s = cfx_scope_new(NULL, &err);
 *     cfx_module *net = cfx_script_model(s, source, size, "net.py", .call = "Net(16, depth=2)");
 *     cfx_var y = cfx_call(s, net, x);
 *
 * The statements of the source are run, the model is made, and its forward is captured: branches
 * and loops that depend on data are part of the graph. What it computes with are objects
 * of cfx's own: numbers, texts, lists, dicts, classes and functions as Python has them, torch and
 * torch.nn by the tables of operators and classes, and what models use of math, typing,
 * dataclasses, collections, functools, itertools, operator and copy. Integers have 64 bits. Weights
 * are initialised as PyTorch does, from the scope's random numbers.
 *
 * A source is a program that runs: it can neither read nor write files, nor reach anything but
 * memory; how much of it, and for how long, the options say.
 */
#ifndef CFX_PYSCRIPT_H
#define CFX_PYSCRIPT_H

#pragma GCC system_header /* see scope.h */

#include <cfx/capture.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_script_model_options {
    /* The expression that gives the model: "Net(16)". NULL: a call of the class without
     * arguments. */
    const char *call;
    /* The class or function to capture. NULL: the last class of the source that is an nn.Module,
     * or its only function. */
    const char *name;
    bool eval;                  /* capture in eval mode, as after model.eval() */
    uint32_t most_calls;        /* how deep calls may be nested; 0: 200 */
    uint32_t most_rounds;       /* of one loop that is unrolled; 0: 100,000 */
    size_t most_bytes;          /* of objects; 0: 1 GiB */
    cfx_sink print;             /* where `print` writes; all zero: nowhere */
} cfx_script_model_options;

/* A module whose forward is the graph, as cfx_trace gives it: with the children, parameters and
 * buffers that the graph names, and the class name of the model. NULL, and the scope fails: the
 * message has the file and line of the source, shows it with a caret, and names the calls. `file`
 * is for messages. */
CFX_API cfx_module *cfx_script_model_at(cfx_at at, const char *source, size_t size,
                                        const char *file, cfx_script_model_options options);
#define cfx_script_model(s, source, size, file, ...)                                               \
    cfx_script_model_at(CFX_HERE(s), source, size, file,                                           \
                        CFX_OPTIONS(cfx_script_model_options, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
