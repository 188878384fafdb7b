/* run_package.c - runs a .cfx file: run_package model.cfx input.npy
 *
 *     cc run_package.c $(pkg-config --cflags --libs cfx) -o run_package
 */
#include <cfx/executable.h>
#include <cfx/weights.h>
#include <stdio.h>

static int show(cfx_datum y)
{
    size_t n = 0;
    const cfx_datum *items = cfx_datum_items(y, &n);
    const cfx_datum first = n > 0 ? items[0] : y;  /* a model may return several tensors */
    cfx_datum_print(first, NULL, cfx_file_sink(stdout), NULL);  /* float32[1, 1000] */
    if (first.kind == CFX_DATUM_TENSOR && cfx_tensor_dtype(first.as.tensor) == CFX_DTYPE_FLOAT32)
        for (int64_t i = 0; i < 5 && i < cfx_tensor_numel(first.as.tensor); i++)
            printf(" %g", (double)((const float *)cfx_tensor_data(first.as.tensor))[i]);
    puts("");
    return 0;
}

int main(int argc, char **argv)
{
    cfx_error err = {CFX_OK, 0, 0, "usage: run_package MODEL.cfx INPUT.npy"};
    cfx_executable *e = argc == 3 ? cfx_executable_load(argv[1], NULL, &err) : NULL;
    cfx_tensor *t = e ? cfx_tensor_load(argv[2], NULL, &err) : NULL;
    cfx_runtime *rt = t ? cfx_runtime_new(NULL, &err) : NULL;
    cfx_session *s = rt ? cfx_executable_session(e, &err) : NULL;
    const cfx_datum x = cfx_datum_tensor(t);
    const cfx_datum y = s ? cfx_executable_run(e, s, rt, &x, 1, NULL, &err) : cfx_datum_invalid();
    const int failed = y.kind == CFX_DATUM_INVALID ? fprintf(stderr, "%s\n", err.message) : show(y);
    cfx_datum_release(y);
    cfx_datum_release(x);
    cfx_session_free(s);
    cfx_runtime_free(rt);
    cfx_executable_free(e);
    return failed != 0 && argc > 1;
}
