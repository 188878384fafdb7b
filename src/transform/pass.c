/* pass.c - the table of passes, and running one. */
#include "../base/base_impl.h"

#include <cfx/pass.h>

static const cfx_pass passes[] = {
#define CFX_PASS(name, summary, needs, keeps) {#name, summary, needs, keeps, cfx_pass_##name},
#include <cfx/pass.def>
#undef CFX_PASS
};

enum { PASS_COUNT = sizeof passes / sizeof *passes };

const cfx_pass *cfx_pass_at(size_t i) { return i < PASS_COUNT ? &passes[i] : NULL; }

const cfx_pass *cfx_pass_find(const char *name)
{
    for (size_t i = 0; i < PASS_COUNT; i++)
        if (strcmp(passes[i].name, name) == 0)
            return &passes[i];
    return NULL;
}

cfx_status cfx_pass_run(const cfx_pass *pass, cfx_graph *g, const cfx_modules *modules,
                        const void *opts, bool *changed, cfx_error *err)
{
    CFX_TRY(cfxi_expect(pass, "pass", err));
    CFX_TRY(cfxi_expect(g, "graph", err));
#ifdef NDEBUG
    return pass->run(g, modules, opts, changed, err);
#else
    bool good = cfx_graph_verify(g, NULL, NULL, NULL) == CFX_OK;
    CFX_TRY(pass->run(g, modules, opts, changed, err));
    cfx_error why = {.status = CFX_OK};
    if (!good || cfx_graph_verify(g, NULL, NULL, &why) == CFX_OK)
        return CFX_OK;
    return cfx_error_set(err, why.status, "after the pass %s: %s", pass->name, why.message);
#endif
}
