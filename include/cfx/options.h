/* options.h - named options, cfx_sum(s, x, .dim = cfx_v(1)), checked by the compiler, and lists of
 * variables, cfx_tuple(s, x, 2), in which numbers become variables.
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

/* Lists of variables, cfx_tuple(s, x, 2): each of the first 32 arguments becomes one, since C would
 * take a number for the first member of a struct, as above; C++ refuses it. Longer lists, up to
 * 256, are taken as they are. */
#ifndef __cplusplus
#define CFX_MANY_VARS(...) __VA_ARGS__
#define CFX_EACH_VAR_1(v) cfx_v(v)
#define CFX_EACH_VAR_2(v, ...) cfx_v(v), CFX_EACH_VAR_1(__VA_ARGS__)
#define CFX_EACH_VAR_3(v, ...) cfx_v(v), CFX_EACH_VAR_2(__VA_ARGS__)
#define CFX_EACH_VAR_4(v, ...) cfx_v(v), CFX_EACH_VAR_3(__VA_ARGS__)
#define CFX_EACH_VAR_5(v, ...) cfx_v(v), CFX_EACH_VAR_4(__VA_ARGS__)
#define CFX_EACH_VAR_6(v, ...) cfx_v(v), CFX_EACH_VAR_5(__VA_ARGS__)
#define CFX_EACH_VAR_7(v, ...) cfx_v(v), CFX_EACH_VAR_6(__VA_ARGS__)
#define CFX_EACH_VAR_8(v, ...) cfx_v(v), CFX_EACH_VAR_7(__VA_ARGS__)
#define CFX_EACH_VAR_9(v, ...) cfx_v(v), CFX_EACH_VAR_8(__VA_ARGS__)
#define CFX_EACH_VAR_10(v, ...) cfx_v(v), CFX_EACH_VAR_9(__VA_ARGS__)
#define CFX_EACH_VAR_11(v, ...) cfx_v(v), CFX_EACH_VAR_10(__VA_ARGS__)
#define CFX_EACH_VAR_12(v, ...) cfx_v(v), CFX_EACH_VAR_11(__VA_ARGS__)
#define CFX_EACH_VAR_13(v, ...) cfx_v(v), CFX_EACH_VAR_12(__VA_ARGS__)
#define CFX_EACH_VAR_14(v, ...) cfx_v(v), CFX_EACH_VAR_13(__VA_ARGS__)
#define CFX_EACH_VAR_15(v, ...) cfx_v(v), CFX_EACH_VAR_14(__VA_ARGS__)
#define CFX_EACH_VAR_16(v, ...) cfx_v(v), CFX_EACH_VAR_15(__VA_ARGS__)
#define CFX_EACH_VAR_17(v, ...) cfx_v(v), CFX_EACH_VAR_16(__VA_ARGS__)
#define CFX_EACH_VAR_18(v, ...) cfx_v(v), CFX_EACH_VAR_17(__VA_ARGS__)
#define CFX_EACH_VAR_19(v, ...) cfx_v(v), CFX_EACH_VAR_18(__VA_ARGS__)
#define CFX_EACH_VAR_20(v, ...) cfx_v(v), CFX_EACH_VAR_19(__VA_ARGS__)
#define CFX_EACH_VAR_21(v, ...) cfx_v(v), CFX_EACH_VAR_20(__VA_ARGS__)
#define CFX_EACH_VAR_22(v, ...) cfx_v(v), CFX_EACH_VAR_21(__VA_ARGS__)
#define CFX_EACH_VAR_23(v, ...) cfx_v(v), CFX_EACH_VAR_22(__VA_ARGS__)
#define CFX_EACH_VAR_24(v, ...) cfx_v(v), CFX_EACH_VAR_23(__VA_ARGS__)
#define CFX_EACH_VAR_25(v, ...) cfx_v(v), CFX_EACH_VAR_24(__VA_ARGS__)
#define CFX_EACH_VAR_26(v, ...) cfx_v(v), CFX_EACH_VAR_25(__VA_ARGS__)
#define CFX_EACH_VAR_27(v, ...) cfx_v(v), CFX_EACH_VAR_26(__VA_ARGS__)
#define CFX_EACH_VAR_28(v, ...) cfx_v(v), CFX_EACH_VAR_27(__VA_ARGS__)
#define CFX_EACH_VAR_29(v, ...) cfx_v(v), CFX_EACH_VAR_28(__VA_ARGS__)
#define CFX_EACH_VAR_30(v, ...) cfx_v(v), CFX_EACH_VAR_29(__VA_ARGS__)
#define CFX_EACH_VAR_31(v, ...) cfx_v(v), CFX_EACH_VAR_30(__VA_ARGS__)
#define CFX_EACH_VAR_32(v, ...) cfx_v(v), CFX_EACH_VAR_31(__VA_ARGS__)
#define CFX_PICK_VAR(v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16,        \
                     v17, v18, v19, v20, v21, v22, v23, v24, v25, v26, v27, v28, v29, v30, v31,    \
                     v32, v33, v34, v35, v36, v37, v38, v39, v40, v41, v42, v43, v44, v45, v46,    \
                     v47, v48, v49, v50, v51, v52, v53, v54, v55, v56, v57, v58, v59, v60, v61,    \
                     v62, v63, v64, v65, v66, v67, v68, v69, v70, v71, v72, v73, v74, v75, v76,    \
                     v77, v78, v79, v80, v81, v82, v83, v84, v85, v86, v87, v88, v89, v90, v91,    \
                     v92, v93, v94, v95, v96, v97, v98, v99, v100, v101, v102, v103, v104,         \
                     v105, v106, v107, v108, v109, v110, v111, v112, v113, v114, v115, v116,       \
                     v117, v118, v119, v120, v121, v122, v123, v124, v125, v126, v127, v128,       \
                     v129, v130, v131, v132, v133, v134, v135, v136, v137, v138, v139, v140,       \
                     v141, v142, v143, v144, v145, v146, v147, v148, v149, v150, v151, v152,       \
                     v153, v154, v155, v156, v157, v158, v159, v160, v161, v162, v163, v164,       \
                     v165, v166, v167, v168, v169, v170, v171, v172, v173, v174, v175, v176,       \
                     v177, v178, v179, v180, v181, v182, v183, v184, v185, v186, v187, v188,       \
                     v189, v190, v191, v192, v193, v194, v195, v196, v197, v198, v199, v200,       \
                     v201, v202, v203, v204, v205, v206, v207, v208, v209, v210, v211, v212,       \
                     v213, v214, v215, v216, v217, v218, v219, v220, v221, v222, v223, v224,       \
                     v225, v226, v227, v228, v229, v230, v231, v232, v233, v234, v235, v236,       \
                     v237, v238, v239, v240, v241, v242, v243, v244, v245, v246, v247, v248,       \
                     v249, v250, v251, v252, v253, v254, v255, v256, name, ...)                    \
    name
/* Lists in one argument become many in the next macro. */
#define CFX_PICK_VAR_OF(...) CFX_PICK_VAR(__VA_ARGS__)
#define CFX_MANY_VARS_32                                                                           \
    CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS,      \
    CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS,      \
    CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS,      \
    CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS,      \
    CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS, CFX_MANY_VARS,      \
    CFX_MANY_VARS, CFX_MANY_VARS
#define CFX_MANY_VARS_224                                                                          \
    CFX_MANY_VARS_32, CFX_MANY_VARS_32, CFX_MANY_VARS_32, CFX_MANY_VARS_32, CFX_MANY_VARS_32,      \
    CFX_MANY_VARS_32, CFX_MANY_VARS_32
#define CFX_EACH_VAR(...)                                                                          \
    CFX_PICK_VAR_OF(__VA_ARGS__, CFX_MANY_VARS_224,                                                \
                 CFX_EACH_VAR_32, CFX_EACH_VAR_31, CFX_EACH_VAR_30, CFX_EACH_VAR_29,               \
                 CFX_EACH_VAR_28, CFX_EACH_VAR_27, CFX_EACH_VAR_26, CFX_EACH_VAR_25,               \
                 CFX_EACH_VAR_24, CFX_EACH_VAR_23, CFX_EACH_VAR_22, CFX_EACH_VAR_21,               \
                 CFX_EACH_VAR_20, CFX_EACH_VAR_19, CFX_EACH_VAR_18, CFX_EACH_VAR_17,               \
                 CFX_EACH_VAR_16, CFX_EACH_VAR_15, CFX_EACH_VAR_14, CFX_EACH_VAR_13,               \
                 CFX_EACH_VAR_12, CFX_EACH_VAR_11, CFX_EACH_VAR_10, CFX_EACH_VAR_9,                \
                 CFX_EACH_VAR_8, CFX_EACH_VAR_7, CFX_EACH_VAR_6, CFX_EACH_VAR_5,                   \
                 CFX_EACH_VAR_4, CFX_EACH_VAR_3, CFX_EACH_VAR_2, CFX_EACH_VAR_1, )                 \
    (__VA_ARGS__)
#define CFX_VAR_COUNTS                                                                             \
    256, 255, 254, 253, 252, 251, 250, 249, 248, 247, 246, 245, 244, 243, 242, 241, 240, 239,      \
    238, 237, 236, 235, 234, 233, 232, 231, 230, 229, 228, 227, 226, 225, 224, 223, 222, 221,      \
    220, 219, 218, 217, 216, 215, 214, 213, 212, 211, 210, 209, 208, 207, 206, 205, 204, 203,      \
    202, 201, 200, 199, 198, 197, 196, 195, 194, 193, 192, 191, 190, 189, 188, 187, 186, 185,      \
    184, 183, 182, 181, 180, 179, 178, 177, 176, 175, 174, 173, 172, 171, 170, 169, 168, 167,      \
    166, 165, 164, 163, 162, 161, 160, 159, 158, 157, 156, 155, 154, 153, 152, 151, 150, 149,      \
    148, 147, 146, 145, 144, 143, 142, 141, 140, 139, 138, 137, 136, 135, 134, 133, 132, 131,      \
    130, 129, 128, 127, 126, 125, 124, 123, 122, 121, 120, 119, 118, 117, 116, 115, 114, 113,      \
    112, 111, 110, 109, 108, 107, 106, 105, 104, 103, 102, 101, 100, 99, 98, 97, 96, 95, 94, 93,   \
    92, 91, 90, 89, 88, 87, 86, 85, 84, 83, 82, 81, 80, 79, 78, 77, 76, 75, 74, 73, 72, 71, 70,    \
    69, 68, 67, 66, 65, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47,    \
    46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24,    \
    23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1
#define CFX_COUNT_VARS(...) CFX_PICK_VAR_OF(__VA_ARGS__, CFX_VAR_COUNTS, )
#endif

#endif
