/* error.c - statuses and the error that a caller owns. */
#include "base_impl.h"

#include <cfx/embed/base.h>

#include <stdio.h>

typedef struct status_row {
    const char *name;
    const char *text;
    const char *exception;
} status_row;

static const status_row rows[CFX_STATUS_COUNT] = {
#define CFX_STATUS(id, text, exception) {#id, text, exception},
#include <cfx/status.def>
#undef CFX_STATUS
};

static const status_row *row_of(cfx_status status)
{
    static const status_row unknown = {"UNKNOWN", "unknown status", "RuntimeError"};
    return (unsigned)status < CFX_STATUS_COUNT ? &rows[status] : &unknown;
}

const char *cfx_status_name(cfx_status status) { return row_of(status)->name; }
const char *cfx_status_text(cfx_status status) { return row_of(status)->text; }
const char *cfx_status_exception(cfx_status status) { return row_of(status)->exception; }

#define TEXT(x) #x
#define VERSION(a, b, c) TEXT(a) "." TEXT(b) "." TEXT(c)

const char *cfx_version(void)
{
    return VERSION(CFX_VERSION_MAJOR, CFX_VERSION_MINOR, CFX_VERSION_PATCH);
}

/* A message cut in the middle of a UTF-8 character would not be text any more. */
static void cut_at_character(char *message, size_t size)
{
    size_t end = size - 1;
    size_t start = end;
    while (start > 0 && ((unsigned char)message[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char)message[start - 1];
    size_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (end - (start - 1) < wanted)
        message[start - 1] = '\0';
}

cfx_status cfx_error_set(cfx_error *err, cfx_status status, const char *format, ...)
{
    if (!err)
        return status;
    err->status = status;
    err->line = 0;
    err->column = 0;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    if (length < 0)
        err->message[0] = '\0';
    else if ((size_t)length >= sizeof err->message)
        cut_at_character(err->message, sizeof err->message);
    cfxi_base_utf8_clean(err->message);  /* a name in it may be any bytes, or have been cut */
    return status;
}

cfx_status cfxi_base_nomem(cfx_error *err)
{
    return cfx_error_set(err, CFX_E_NOMEM, "out of memory");
}

cfx_status cfxi_base_expect(const void *given, const char *what, cfx_error *err)
{
    if (given)
        return CFX_OK;
    if (err && err->status != CFX_OK)
        return err->status;
    return cfx_error_set(err, CFX_E_VALUE, "the %s is NULL; check the call that should have "
                         "returned it", what);
}

cfx_status cfxi_base_failed(cfx_error *err, cfx_status status)
{
    if (err && err->status != status)  /* else the callback has said why */
        cfx_error_set(err, status, "%s", cfx_status_text(status));
    return status;
}
