/* For language bindings and back ends; may change between versions.
 *
 * embed/base.h - what bindings need of base.h.
 */
#ifndef CFX_EMBED_BASE_H
#define CFX_EMBED_BASE_H

#include <cfx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name of the Python exception that a status becomes; NULL for OK and HOST. Any int is
 * accepted. */
CFX_API const char *cfx_status_exception(cfx_status status);

#ifdef __cplusplus
}
#endif
#endif
