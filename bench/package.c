/* package.c - loads a .cfx file and runs it once; prints times and memory for bench/package.py.
 *
 *     package MODEL.cfx INPUT.npy EXPECTED.npy
 */
#include "process.h"

#include <cfx/executable.h>
#include <cfx/weights.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The largest difference, relative to the largest element; infinite if they have other sizes. */
static double distance(const cfx_tensor *a, const cfx_tensor *b)
{
    const float *x = cfx_tensor_data(a);
    const float *y = cfx_tensor_data(b);
    double most = 0;
    double far = 0;
    if (cfx_tensor_dtype(a) != CFX_DTYPE_FLOAT32 || cfx_tensor_numel(a) != cfx_tensor_numel(b))
        return INFINITY;
    for (int64_t i = 0; i < cfx_tensor_numel(a); i++) {
        most = fmax(most, fabs((double)y[i]));
        far = fmax(far, fabs((double)x[i] - (double)y[i]));
    }
    return far / most;
}

static cfx_tensor *tensor_of(cfx_datum d)
{
    size_t n = 0;
    const cfx_datum *items = cfx_datum_items(d, &n);
    return n > 0 ? items[0].as.tensor : d.kind == CFX_DATUM_TENSOR ? d.as.tensor : NULL;
}

static int report(char **argv, cfx_error *err)
{
    cfx_tensor *x = cfx_tensor_load(argv[2], NULL, err);
    cfx_tensor *expected = x ? cfx_tensor_load(argv[3], NULL, err) : NULL;
    const cfx_datum input = cfx_datum_tensor(x);
    const double before = resident();
    const double start = now();
    cfx_executable *e = expected ? cfx_executable_load(argv[1], NULL, err) : NULL;
    cfx_runtime *rt = e ? cfx_runtime_new(NULL, err) : NULL;
    cfx_session *s = rt ? cfx_executable_session(e, err) : NULL;
    const double loaded = now();
    const double memory = resident() - before;
    const double again = now();
    const cfx_datum y = s ? cfx_executable_run(e, s, rt, &input, 1, NULL, err)
                          : cfx_datum_invalid();
    const double ran = now();
    const cfx_tensor *result = tensor_of(y);
    if (result)
        printf("{\"load\": %g, \"first\": %g, \"loaded\": %.0f, \"ran\": %.0f, \"far\": %g}\n",
               loaded - start, loaded - start + (ran - again), memory, resident() - before,
               distance(result, expected));
    cfx_datum_release(y);
    cfx_session_free(s);
    cfx_runtime_free(rt);
    cfx_executable_free(e);
    cfx_tensor_release(expected);
    cfx_tensor_release(x);
    return result ? 0 : fprintf(stderr, "%s\n", err->message) > 0;
}

int main(int argc, char **argv)
{
    cfx_error err = {.status = CFX_OK};
    if (argc == 4)
        return report(argv, &err);
    puts("usage: package MODEL.cfx INPUT.npy EXPECTED.npy (bench/package.py runs it)");
    return argc != 1;
}
