/* fuzz_package.c - any bytes as a .cfx file: no crash, no endless work; what can be read is read
 * the same twice, and its module and executable can be made or are refused with a message. */
#include <cfx/cfx.h>
#include <cfx/package.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_package: %s\n%s\n", what, detail);
    abort();
}

/* Every byte of the texts, and the same of both. */
static void compare(const cfx_package *p, const cfx_package *again)
{
    const char *name;
    for (size_t i = 0; (name = cfx_package_entry(p, i, NULL)) != NULL; i++) {
        size_t size = 0;
        size_t other = 0;
        const char *text = cfx_package_text(p, name, &size);
        const char *same = cfx_package_text(again, name, &other);
        if (!text != !same || size != other || (size && memcmp(text, same, size) != 0))
            fail("an entry changed", name);
    }
}

static void make_module(const cfx_package *p)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_module_from_package(s, p);
    if (!m && (cfx_scope_ok(s) || !cfx_scope_error(s)->message[0]))
        fail("a module is missing without a message", "");
    cfx_scope_free(s);
}

static void make_executable(const cfx_package *p)
{
    cfx_error err = {.status = CFX_OK};
    cfx_executable *e = cfx_executable_new(p, NULL, &err);
    if (!e && (err.status == CFX_OK || err.message[0] == '\0'))
        fail("an executable is missing without a message", "");
    cfx_executable_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cfx_error err = {.status = CFX_OK};
    cfx_package *p = cfx_package_read(data, size, NULL, &err);
    if (!p) {
        if (err.status == CFX_OK || err.message[0] == '\0')
            fail("an error without a message", "");
        return 0;
    }
    cfx_package *again = cfx_package_read(data, size, NULL, &err);
    if (!again)
        fail("what was read once cannot be read again", err.message);
    compare(p, again);
    cfx_package_verify(p, &err);
    make_module(p);
    make_executable(p);
    cfx_package_free(again);
    cfx_package_free(p);
    return 0;
}
