/* pass_list.c - passes as text: "cse,unroll=4,dce:like_torch_fx". */
#include "base/base_impl.h"

#include <cfx/embed/base.h>
#include <cfx/pass.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 200 };  /* a pass with its options */

static cfx_status unknown_pass(const char *name, cfx_error *err)
{
    cfx_nearest near;
    const cfx_pass *pass;
    cfx_nearest_begin(&near, name);
    for (size_t i = 0; (pass = cfx_pass_get(i)) != NULL; i++)
        cfx_nearest_add(&near, pass->name);
    if (near.best)
        return cfx_error_set(err, CFX_E_KEY, "there is no pass '%.60s'; did you mean %s?", name,
                             near.best);
    return cfx_error_set(err, CFX_E_KEY, "there is no pass '%.60s'", name);
}

static cfx_status unknown_option(const cfx_pass *pass, const char *name, cfx_error *err)
{
    char all[LONGEST] = "";
    const cfx_pass_option *option;
    for (size_t i = 0; (option = cfx_pass_get_option(pass, i)) != NULL; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", option->name);
    if (!all[0])
        return cfx_error_set(err, CFX_E_KEY, "the pass %s has no options", pass->name);
    return cfx_error_set(err, CFX_E_KEY, "the pass %s has no option '%.60s'; it has %s",
                         pass->name, name, all);
}

/* A number, or nothing, which switches a flag on. */
static bool read_number(const char *text, const cfx_pass_option *option, uint64_t *value)
{
    char *end = NULL;
    *value = 1;
    if (!text)
        return option->is_flag;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    *value = number;
    return *end == '\0' && errno == 0 && (!option->is_flag || number < 2);
}

/* "max_turns=4"; or "4" alone, which is the first option, if it is unnamed. */
static cfx_status read_setting(cfx_pass_step *step, char *text, bool unnamed, cfx_error *err)
{
    char *value = unnamed ? text : strchr(text, '=');
    const cfx_pass_option *option = NULL;
    if (value && !unnamed)
        *value++ = '\0';
    for (size_t i = 0; (option = cfx_pass_get_option(step->pass, i)) != NULL; i++)
        if (unnamed || strcmp(option->name, text) == 0)
            break;
    if (!option)
        return unknown_option(step->pass, text, err);
    if (step->n == CFX_MAX_PASS_SETTINGS)
        return cfx_error_set(err, CFX_E_LIMIT, "more than %d options for the pass %s",
                             CFX_MAX_PASS_SETTINGS, step->pass->name);
    cfx_pass_setting *setting = &step->settings[step->n++];
    setting->name = option->name;
    if (read_number(value, option, &setting->value))
        return CFX_OK;
    return cfx_error_set(err, CFX_E_VALUE, "the option %s of the pass %s is a %s, not '%.60s'",
                         option->name, step->pass->name,
                         option->is_flag ? "flag (0 or 1)" : "number", value ? value : "");
}

static cfx_status read_step(cfx_pass_step *step, char *text, cfx_error *err)
{
    char *colon = strchr(text, ':');
    if (colon)
        *colon = '\0';
    char *value = strchr(text, '=');
    if (value)
        *value++ = '\0';
    step->pass = cfx_pass_find(text);
    if (!step->pass)
        return unknown_pass(text, err);
    if (value)
        CFX_TRY(read_setting(step, value, true, err));
    for (char *next; colon; colon = next) {
        next = strchr(colon + 1, ':');
        if (next)
            *next = '\0';
        CFX_TRY(read_setting(step, colon + 1, false, err));
    }
    return CFX_OK;
}

cfx_status cfx_pass_list_next(const char **list, cfx_pass_step *step, cfx_error *err)
{
    char text[LONGEST + 1];
    const char *from = *list + strspn(*list, " \t\n");
    size_t size = strcspn(from, ",");
    const bool more = from[size] == ',';
    *step = (cfx_pass_step){.pass = NULL};
    *list = from + size + more;
    if (more && !(*list)[strspn(*list, " \t\n")])
        return cfx_error_set(err, CFX_E_SYNTAX, "the list of passes ends with a comma");
    while (size > 0 && strchr(" \t\n", from[size - 1]))
        size--;
    if (size > LONGEST)
        return cfx_error_set(err, CFX_E_LIMIT, "a pass with its options has at most %d characters",
                             LONGEST);
    memcpy(text, from, size);
    text[size] = '\0';
    return read_step(step, text, err);
}
