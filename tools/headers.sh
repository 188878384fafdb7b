#!/bin/sh
# headers.sh - compiles each public header alone, as C11 and as C++11.
set -u
cd "$(dirname "$0")/.."
cc=${CC:-cc}
cxx=${CXX:-g++}
passed=0
failed=0
strict='-Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iinclude'

# try NAME COMMAND...: compiles one header from standard input.
try() {
    name=$1
    shift
    if echo "#include <$name>" | "$@"; then
        passed=$((passed + 1))
    else
        echo "$name: does not compile alone with: $*"
        failed=$((failed + 1))
    fi
}

has_cxx=$(command -v "$cxx")
[ -n "$has_cxx" ] || echo "headers: C++11 skipped, because there is no $cxx here"
for h in include/cfx/*.h include/cfx/embed/*.h; do
    [ -e "$h" ] || continue
    try "${h#include/}" $cc -std=c11 -x c $strict -
    [ -z "$has_cxx" ] || try "${h#include/}" $cxx -std=c++11 -x c++ $strict -
done
echo "headers: $passed passed, $failed failed"
[ $failed = 0 ]
