/* lower_special.c - modules that are more than a call with their attributes. */
#include "lower_impl.h"

typedef cfx_status special_fn(cfxi_lower *l, cfx_node *n);

typedef struct special {
    const char *class_name;
    special_fn *lower;
} special;

static const special specials[] = {
    {NULL, NULL},
};

cfx_status cfxi_lower_special(cfxi_lower *l, cfx_node *n, const char *class_name, bool *done)
{
    static const char home[] = "torch.nn.";
    *done = false;
    if (strncmp(class_name, home, sizeof home - 1) != 0)
        return CFX_OK;
    for (size_t i = 0; specials[i].class_name; i++)
        if (strcmp(class_name + sizeof home - 1, specials[i].class_name) == 0) {
            *done = true;
            return specials[i].lower(l, n);
        }
    return CFX_OK;
}
