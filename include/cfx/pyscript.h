/* pyscript.h - captures a model from its Python source, without Python.
 *
 *     cfx_scope *s = cfx_scope_new(NULL, &err);
 *     cfx_module *net = cfx_script_model(s, source, size, "net.py", .call = "Net(16, depth=2)");
 *     cfx_var y = cfx_call(s, net, x);
 *
 * cfx runs the statements of the source, creates the model and captures its forward; branches and
 * loops that depend on data become part of the graph. Objects are implemented by cfx: numbers,
 * strings, lists, dicts, classes and functions behave as in Python; torch and torch.nn come from
 * the operator and class tables; and the parts that models use of math, typing, dataclasses,
 * collections, functools, itertools, operator and copy are available. Integers have 64 bits.
 * Weights are initialised as in PyTorch, from the scope's random numbers.
 *
 * A source is a program, and it runs. It cannot read or write files, or reach anything outside its
 * own memory; the options limit how much memory it uses and how long it runs.
 */
#ifndef CFX_PYSCRIPT_H
#define CFX_PYSCRIPT_H

#pragma GCC system_header /* see scope.h */

#include <cfx/capture.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_script_model_options {
    /* The expression that creates the model: "Net(16)". NULL: calls the class without arguments. */
    const char *call;
    /* The class or function to capture. NULL: the last class of the source that is an nn.Module, or
     * its only function. */
    const char *name;
    bool eval;                  /* capture in evaluation mode, as after model.eval() */
    uint32_t most_calls;        /* maximum call depth; 0: 200 */
    uint32_t most_rounds;       /* maximum iterations of an unrolled loop; 0: 100,000 */
    size_t most_bytes;          /* maximum memory for objects; 0: 1 GiB */
    cfx_sink print;             /* output of `print`; all zero: discarded */
} cfx_script_model_options;

/* A module whose forward is the graph, as from cfx_trace: with the children, parameters and buffers
 * that the graph names, and the class name of the model. On failure returns NULL and the scope
 * fails: the message gives the file and line of the source, shows the line with a caret, and lists
 * the call stack. `file` is used in messages only. */
CFX_API cfx_module *cfx_script_model_at(cfx_at at, const char *source, size_t size,
                                        const char *file, cfx_script_model_options options);
#define cfx_script_model(s, source, size, file, ...)                                               \
    cfx_script_model_at(CFX_HERE(s), source, size, file,                                           \
                        CFX_OPTIONS(cfx_script_model_options, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
