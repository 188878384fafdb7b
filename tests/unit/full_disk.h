/* full_disk.h - a sink that fails when its room is used up. */
#ifndef CFX_TESTS_FULL_DISK_H
#define CFX_TESTS_FULL_DISK_H

#include <cfx/base.h>

typedef struct full_disk {
    size_t room;
} full_disk;

static inline cfx_status write_until_full(void *ctx, const char *data, size_t size)
{
    full_disk *disk = ctx;
    (void)data;
    if (size > disk->room)
        return CFX_E_IO;
    disk->room -= size;
    return CFX_OK;
}

#endif
