/* dtype.h - element types, layouts and memory formats, under PyTorch's names. */
#ifndef CFX_DTYPE_H
#define CFX_DTYPE_H

#include <cfx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The element type of a tensor: CFX_DTYPE_FLOAT32 and so on. dtype.def lists them. */
typedef enum cfx_dtype {
#define CFX_DTYPE(id, name, size, brief) CFX_DTYPE_##id,
#include <cfx/dtype.def>
#undef CFX_DTYPE
    CFX_DTYPE_COUNT
} cfx_dtype;

/* torch.layout and torch.memory_format. They only occur as arguments of calls: tensors of cfx are
 * always strided. layout.def lists both. */
typedef enum cfx_layout {
#define CFX_LAYOUT(id, name) CFX_LAYOUT_##id,
#define CFX_MEMORY_FORMAT(id, name)
#include <cfx/layout.def>
#undef CFX_LAYOUT
#undef CFX_MEMORY_FORMAT
    CFX_LAYOUT_COUNT
} cfx_layout;

typedef enum cfx_memory_format {
#define CFX_LAYOUT(id, name)
#define CFX_MEMORY_FORMAT(id, name) CFX_MEMORY_FORMAT_##id,
#include <cfx/layout.def>
#undef CFX_LAYOUT
#undef CFX_MEMORY_FORMAT
    CFX_MEMORY_FORMAT_COUNT
} cfx_memory_format;

/* "float32"; static text. */
CFX_API const char *cfx_dtype_name(cfx_dtype dtype);
/* Bytes per element. */
CFX_API size_t cfx_dtype_size(cfx_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
