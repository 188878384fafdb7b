/* depthwise.c - which lines of depthwise convolutions a machine has. */
#include "depthwise.h"
#include "depthwise_bytes.h"

CFXI_ISA_CHOICE(cfxi_depthwise, cfxi_depthwise_of, cfxi_depthwise_lines)
CFXI_ISA_CHOICE(cfxi_byte_lines, cfxi_depthwise_bytes_of, cfxi_depthwise_byte_lines)

const cfxi_depthwise *cfxi_depthwise_groups_of(cfx_isa isa, int64_t channels)
{
#if defined(__x86_64__)
    if (channels != 2 && channels != 4 && channels != 8)  /* that divide a vector */
        return NULL;
    return isa == CFX_ISA_AVX512 ? &cfxi_depthwise_groups_avx512
           : isa == CFX_ISA_AVX2 ? &cfxi_depthwise_groups_avx2 : NULL;
#else
    (void)isa, (void)channels;
    return NULL;
#endif
}
