/* isa.h - the one way to choose what an instruction set has.
 *
 * A table (a struct of functions) is defined once for each instruction set, as name_plain,
 * name_avx2, name_avx512 and name_neon, by a template that is compiled in a file for each: see
 * vector.h. A machine has those of its kind.
 *
 *     CFXI_ISA_TABLES(cfxi_tiles, cfxi_tiles_all)           in a header: declares them
 *     CFXI_ISA_CHOICE(cfxi_tiles, cfxi_tiles_of, cfxi_tiles_all)   in one file: defines
 *     const cfxi_tiles *cfxi_tiles_of(cfx_isa isa)
 */
#ifndef CFXI_ISA_H
#define CFXI_ISA_H

#include "runtime_impl.h"

/* The best instruction set of the machine; or, if that has more, `limit`. (isa.c) */
cfx_isa cfxi_rt_isa_of_machine(void);
cfx_isa cfxi_rt_isa_at_most(cfx_isa limit);
/* What the machine has for bfloat16, as far as the runtime may use it. Where the system hands out
 * tiles only to processes that ask, this asks. (isa.c) */
cfxi_bf16 cfxi_rt_bf16(const cfx_runtime *rt);
/* Likewise for 8-bit integers. (isa.c) */
cfxi_int8 cfxi_rt_int8(const cfx_runtime *rt);

#define CFXI_ISA_TABLES(type, name)                                                                \
    extern const type name##_plain, name##_avx2, name##_avx512, name##_neon;

#if defined(__x86_64__)
#define CFXI_ISA_CHOICE(type, function, name)                                                      \
    const type *function(cfx_isa isa)                                                              \
    {                                                                                              \
        static const type *const all[CFX_ISA_COUNT] = {[CFX_ISA_PLAIN] = &name##_plain,            \
                                                       [CFX_ISA_AVX2] = &name##_avx2,              \
                                                       [CFX_ISA_AVX512] = &name##_avx512};         \
        return all[isa];                                                                           \
    }
#elif defined(__aarch64__)
#define CFXI_ISA_CHOICE(type, function, name)                                                      \
    const type *function(cfx_isa isa)                                                              \
    {                                                                                              \
        return isa == CFX_ISA_NEON ? &name##_neon : &name##_plain;                                 \
    }
#else
#define CFXI_ISA_CHOICE(type, function, name)                                                      \
    const type *function(cfx_isa isa)                                                              \
    {                                                                                              \
        (void)isa;                                                                                 \
        return &name##_plain;                                                                      \
    }
#endif

#endif
