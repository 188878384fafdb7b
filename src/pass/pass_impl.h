/* pass_impl.h - the functions of the passes: a declaration for each row of pass.def. */
#ifndef CFXI_PASS_IMPL_H
#define CFXI_PASS_IMPL_H

#include <cfx/embed/pass.h>

/* cfxi_pass_dce and so on. Other files run passes by name (cfx_pass_find); a pass that begins with
 * another one calls it directly. */
#define CFX_PASS(name, summary, needs, keeps) cfx_pass_fn cfxi_pass_##name;
#include "pass/pass.def"
#undef CFX_PASS

#endif
