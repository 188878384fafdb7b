/* isa.h - the one way to choose what an instruction set has.
 *
 * A table (a struct of functions) is defined once for each instruction set, as name_plain,
 * name_avx2 and name_avx512, by a template that is compiled in a file for each: see vector.h.
 *
 *     CFXI_ISA_TABLES(cfxi_tiles, cfxi_tiles_all)           in a header: declares the three
 *     CFXI_ISA_CHOICE(cfxi_tiles, cfxi_tiles_of, cfxi_tiles_all)   in one file: defines
 *     const cfxi_tiles *cfxi_tiles_of(cfx_isa isa)
 */
#ifndef CFXI_ISA_H
#define CFXI_ISA_H

#include "runtime_impl.h"

#define CFXI_ISA_TABLES(type, name) extern const type name##_plain, name##_avx2, name##_avx512;

#if defined(__x86_64__)
#define CFXI_ISA_CHOICE(type, function, name)                                                      \
    const type *function(cfx_isa isa)                                                              \
    {                                                                                              \
        static const type *const all[CFX_ISA_COUNT] = {[CFX_ISA_PLAIN] = &name##_plain,            \
                                                       [CFX_ISA_AVX2] = &name##_avx2,              \
                                                       [CFX_ISA_AVX512] = &name##_avx512};         \
        return all[isa];                                                                           \
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
