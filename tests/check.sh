#!/bin/sh
# check.sh - runs the C test programs, the header test and the symbol tests, and sums them up.
# usage: check.sh BUILD_DIR PROGRAM...
set -u
build=$1
shift
mkdir -p "$build/tests" "$build/examples"
passed=0
failed=0

# run NAME COMMAND...: adds the command's own "N passed, M failed" line, or 1 for its exit status.
# A program that fails without counting a failure (it crashed, say) counts as one.
run() {
    name=$1
    shift
    log=$build/tests/$name.log
    "$@" >"$log" 2>&1
    status=$?
    summary=$(sed -n 's/^[^ ]*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log" | tail -n 1)
    [ -n "$summary" ] || summary="$((status == 0)) 0"
    good=${summary% *}
    bad=${summary#* }
    [ $status = 0 ] || [ "$bad" != 0 ] || bad=1
    if [ "$bad" != 0 ] || [ "${V:-}" = 1 ]; then
        cat "$log"
        [ $status = 0 ] || echo "$name: exit status $status"
    fi
    grep ' skipped, ' "$log"
    echo "$name: $good passed, $bad failed"
    passed=$((passed + good))
    failed=$((failed + bad))
}

# declares TIER HEADER...: prints the names of the tier's golden file that no header mentions.
declares() {
    golden=tests/golden/api_$1.txt
    shift
    grep -ohE 'cfx_[a-z0-9_]+\(' "$@" | tr -d '(' | LC_ALL=C sort -u | LC_ALL=C comm -13 - "$golden" |
        sed 's/$/: declared in another folder than its golden file says/'
}

# The exported names of both tiers are frozen; those with a leading underscore, and mangle_path (from
# gcov), belong to the tool chain.
api() {
    names=$build/tests/api.txt
    nm -D --defined-only "$build/libcfx.so" | awk '{ print $NF }' | grep -vE '^_|^mangle_path$' |
        LC_ALL=C sort >"$names"
    wrong=$(LC_ALL=C sort tests/golden/api_stable.txt tests/golden/api_embed.txt | diff -u - "$names"
        declares stable "$build"/include/cfx/*.h
        declares embed "$build"/include/cfx/embed/*.h)
    if [ -n "$wrong" ]; then
        echo "$wrong"
        echo "the exported names changed; if that is meant: tools/api_freeze.py --update"
        return 1
    fi
}

# The library never prints, exits, reads the environment or touches the process-wide random state.
quiet() {
    ! nm -A -u "$build/libcfx.a" | grep -E \
        ' U (printf|vprintf|puts|putchar|perror|stdout|stderr|exit|_exit|abort|(secure_)?getenv|s?rand)$'
}

root=$(pwd)
export CFX_INCLUDE="$root/$build/include"
for program in "$@"; do
    case $program in
    */examples/*) run "${program##*/}" env -C "$build/examples" timeout 300 "$root/$program" ;;
    *) run "${program##*/}" timeout 600 "$program" ;;
    esac
done
run headers sh tools/headers.sh "$build/include"
run api api
run quiet quiet
[ "$build" != build ] || run cross sh tests/cross.sh build-arm64
echo "$passed passed, $failed failed"
[ $failed = 0 ]
