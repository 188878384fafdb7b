#!/bin/sh
# install.sh - installs into a scratch folder, and builds and runs programs against what lies there,
# as a stranger would: with pkg-config, shared and static, in C and in C++.
# usage: install.sh BUILD_DIR MAKE...
set -eu
stage=$(cd "$1" && pwd)/stage
shift
rm -rf "$stage"
"$@" install PREFIX="$stage" DESTDIR=

flags="-I$stage/include -L$stage/lib -lcfx"
static="-lm -pthread"
if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH="$stage/lib/pkgconfig"
    export PKG_CONFIG_PATH
    flags=$(pkg-config --cflags --libs cfx)
    static=$(pkg-config --static --libs-only-l --libs-only-other cfx | sed 's/-lcfx//')
fi
passed=0

# try NAME: runs a program that was built, in the scratch folder.
try() {
    (cd "$stage" && LD_LIBRARY_PATH="$stage/lib" "./$1" >"$1.txt")
    passed=$((passed + 1))
}

for source in examples/build_graph.c examples/c/custom_*.c; do
    name=$(basename "$source" .c)
    ${CC:-cc} -std=c11 -Wall -Werror "$source" $flags -lm -o "$stage/$name"
    try "$name"
    ${CC:-cc} -std=c11 -Wall -Werror -I"$stage/include" "$source" "$stage/lib/libcfx.a" $static \
        -o "$stage/$name-static"
    try "$name-static"
    cmp "$stage/$name.txt" "$stage/$name-static.txt"
done
if command -v "${CXX:-g++}" >/dev/null; then
    for source in examples/c/*.cpp; do
        name=$(basename "$source" .cpp)
        for std in 11 14 17 20; do
            ${CXX:-g++} -std=c++$std -Wall -Werror "$source" $flags -o "$stage/$name-$std"
            try "$name-$std"
        done
    done
else
    echo "install: programs in C++ skipped, because there is no ${CXX:-g++} here"
fi
env -u CFX_INCLUDE "$stage/bin/cfx" trace examples/c/mlp.c >"$stage/mlp.ir"
"$stage/bin/cfx" check "$stage/mlp.ir"
! grep -n '@' "$stage/lib/pkgconfig/cfx.pc"
echo "install: $passed passed, 0 failed"
