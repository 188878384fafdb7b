/* onnx.h - ONNX files: read as packages, and packages written as ONNX.
 *
 *     cfx_package *p = cfx_onnx_load("resnet50.onnx", NULL, &err);
 *     cfx_executable *e = cfx_executable_new(p, NULL, &err);     run it
 *     cfx_package_save("resnet50.cfx", ...);                     or keep it
 *
 *     cfx_onnx_save(p, "resnet50.onnx", NULL, &err);
 *
 * Reading turns each node into operators of the table (ops.h), with initializers as weights. Named
 * dimensions of the inputs are sizes that may differ from call to call. Writing lowers the graph
 * and turns it into operators of the default domain of ONNX. Neither needs protobuf or Python, and
 * nothing in a file is trusted.
 */
#ifndef CFX_ONNX_H
#define CFX_ONNX_H

#include <cfx/package.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CFX_ONNX_OPSET = 18,         /* that is written unless the options say otherwise */
    CFX_ONNX_OPSET_OLDEST = 6,   /* that can be read */
    CFX_ONNX_OPSET_NEWEST = 28   /* that can be read and written */
};

/* One thing that cannot be converted. All text is borrowed for the duration of the call. */
typedef struct cfx_onnx_finding {
    const char *where;  /* of the program, "model.py:12"; "" if that is not known */
    const char *node;   /* the node of the graph, or of the file */
    const char *op;     /* what it calls: "cfx.ops.linalg_svd", "com.microsoft::FusedConv" */
    const char *why;    /* what is missing, and what to do */
} cfx_onnx_finding;
typedef void cfx_onnx_finding_fn(void *ctx, const cfx_onnx_finding *finding);

/* ---- reading ------------------------------------------------------------------------------- */

/* All zero: nothing special. */
typedef struct cfx_onnx_read_options {
    const cfx_allocator *allocator;  /* must outlive the package and its tensors */
    cfx_onnx_finding_fn *each;       /* is told of every node that cannot be read; or NULL */
    void *ctx;
    bool read_only;  /* of mapped files: nobody may write to weights, so that those which a plan has
                        packed leave memory again */
} cfx_onnx_read_options;

/* Reads a file as a package: graph.ir, module.ir, signature.ir, and the initializers as weights.
 * External data is read from the folder of `path` alone, and mapped. NULL with *err set: CFX_E_IO;
 * CFX_E_VALUE with the byte or the node if the file is damaged or breaks a rule of the standard;
 * CFX_E_UNSUPPORTED for operators, types or opsets that cfx does not have, with their number and
 * the first of them. `options` may be NULL. */
CFX_API cfx_package *cfx_onnx_load(const char *path, const cfx_onnx_read_options *options,
                                   cfx_error *err);
/* The same from bytes, which may be freed afterwards. External data is looked for in `folder`
 * (NULL: there must be none). */
CFX_API cfx_package *cfx_onnx_read(const void *data, size_t size, const char *folder,
                                   const cfx_onnx_read_options *options, cfx_error *err);

/* ---- writing ------------------------------------------------------------------------------- */

/* All zero: opset CFX_ONNX_OPSET, one file if it is under 2 GB. */
typedef struct cfx_onnx_write_options {
    int opset;                  /* CFX_ONNX_OPSET to CFX_ONNX_OPSET_NEWEST; 0: CFX_ONNX_OPSET */
    bool external;              /* weights go to a file beside it, "model.onnx.data", mapped when
                                   it is read. Always so if one file would have 2 GB */
    cfx_onnx_finding_fn *each;  /* is told of every node that cannot be written; or NULL */
    void *ctx;
} cfx_onnx_write_options;

/* Writes the first graph of a package. What cannot be written is found out, all of it, before
 * anything is: CFX_E_UNSUPPORTED with the number of nodes and the first of them. Files are replaced
 * at once, as by cfx_package_save. Tied weights are written once; lines and modules of the program
 * are metadata of the nodes. `options` may be NULL. */
CFX_API cfx_status cfx_onnx_save(const cfx_package *p, const char *path,
                                 const cfx_onnx_write_options *options, cfx_error *err);
/* The same to a sink, with all weights in it: CFX_E_VALUE if that is 2 GB or more. */
CFX_API cfx_status cfx_onnx_write(const cfx_package *p, cfx_sink out,
                                  const cfx_onnx_write_options *options, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
