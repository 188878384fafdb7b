#!/bin/sh
# cross.sh - the library for 64-bit ARM: it compiles without warnings, and the tests of its kernels
# pass where qemu can run them. Objects stay, so that the next run compiles what has changed.
# usage: cross.sh BUILD_DIR
set -u
build=$1
cc=aarch64-linux-gnu-gcc  # CROSS_CC: how it is called
kernels="backend_kernels backend_bf16 backend_bytes special_values attention reduce conv vector_functions gemm
    float_rows image_rows normalisation peak tensor_copy"
if ! command -v $cc >/dev/null; then
    echo "cross: 1 skipped, because there is no $cc"
    exit 0
fi
targets=$build/libcfx.a
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64)
if [ -n "$qemu" ]; then
    for name in $kernels; do
        targets="$targets $build/tests/$name"
    done
fi
log=$build/cross.log
mkdir -p "$build"
# shellcheck disable=SC2086
env -u MAKEFLAGS make -j"$(getconf _NPROCESSORS_ONLN)" B="$build" CC="${CROSS_CC:-$cc}" HOSTCC="${HOSTCC:-cc}" \
    AR=aarch64-linux-gnu-ar $targets >"$log" 2>&1 || {
    cat "$log"
    echo "cross: 0 passed, 1 failed"
    exit 1
}
good=1
bad=0
if [ -z "$qemu" ]; then
    echo "cross: 1 skipped, because there is no qemu-aarch64 to run its tests"
    kernels=
fi
for name in $kernels; do
    if timeout 300 "$qemu" -L /usr/aarch64-linux-gnu "$build/tests/$name" >"$log" 2>&1; then
        good=$((good + 1))
    else
        bad=$((bad + 1))
        cat "$log"
    fi
done
echo "cross: $good passed, $bad failed"
[ $bad = 0 ]
