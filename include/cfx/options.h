/* options.h - named options, cfx_sum(s, x, .dim = cfx_v(1)), checked by the compiler.
 *
 * C lets an initializer omit the braces of a struct: in `.p = 0.1` the number would silently become
 * the first member of the variable p, and the option would be lost. Assigning 0.1 to a variable,
 * however, is an error. So CFX_OPTIONS also assigns each option inside sizeof, where nothing is
 * evaluated: an option that is not a variable does not compile, and the compiler names the line.
 */
#ifndef CFX_OPTIONS_H
#define CFX_OPTIONS_H

#pragma GCC system_header /* see scope.h */

#include <cfx/base.h>

/* The options of a call, at most 16; `type` is the struct that declares them. */
#ifdef __cplusplus
#define CFX_OPTIONS(type, ...) (CFX_CHECK_OPTIONS(type, __VA_ARGS__), type{__VA_ARGS__})
#else
#define CFX_OPTIONS(type, ...) (CFX_CHECK_OPTIONS(type, __VA_ARGS__), (type){__VA_ARGS__})
#endif

/* `o` is ".dim = cfx_v(1)", or empty if a call has no options. */
#define CFX_CHECK_OPTION(type, o) (void)sizeof(((type *)0)[0] o)
#define CFX_CHECK_OPTION_1(type, o) CFX_CHECK_OPTION(type, o)
#define CFX_CHECK_OPTION_2(type, o, ...)                                                           \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_1(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_3(type, o, ...)                                                           \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_2(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_4(type, o, ...)                                                           \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_3(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_5(type, o, ...)                                                           \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_4(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_6(type, o, ...)                                                           \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_5(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_7(type, o, ...)                                                           \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_6(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_8(type, o, ...)                                                           \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_7(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_9(type, o, ...)                                                           \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_8(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_10(type, o, ...)                                                          \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_9(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_11(type, o, ...)                                                          \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_10(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_12(type, o, ...)                                                          \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_11(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_13(type, o, ...)                                                          \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_12(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_14(type, o, ...)                                                          \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_13(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_15(type, o, ...)                                                          \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_14(type, __VA_ARGS__)
#define CFX_CHECK_OPTION_16(type, o, ...)                                                          \
    CFX_CHECK_OPTION(type, o), CFX_CHECK_OPTION_15(type, __VA_ARGS__)
#define CFX_PICK_OPTION(o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, o11, o12, o13, o14, o15, o16,     \
                        name, ...)                                                                 \
    name
#define CFX_CHECK_OPTIONS(type, ...)                                                               \
    CFX_PICK_OPTION(__VA_ARGS__,                                                                   \
                    CFX_CHECK_OPTION_16, CFX_CHECK_OPTION_15, CFX_CHECK_OPTION_14,                 \
                    CFX_CHECK_OPTION_13, CFX_CHECK_OPTION_12, CFX_CHECK_OPTION_11,                 \
                    CFX_CHECK_OPTION_10, CFX_CHECK_OPTION_9, CFX_CHECK_OPTION_8,                   \
                    CFX_CHECK_OPTION_7, CFX_CHECK_OPTION_6, CFX_CHECK_OPTION_5,                    \
                    CFX_CHECK_OPTION_4, CFX_CHECK_OPTION_3, CFX_CHECK_OPTION_2,                    \
                    CFX_CHECK_OPTION_1, )                                                          \
    (type, __VA_ARGS__)

#endif
