#!/bin/sh
# coverage.sh - prints line coverage per source file, lowest first, and in all, from a COV=1 build.
set -eu
cd "$(dirname "$0")/.."
build=$1
find "$build/src" -name '*.gcno' | xargs -r gcov -n -r 2>/dev/null | awk '
    /^File / { file = $2; gsub(/\047/, "", file) }
    /^Lines executed:/ && file ~ /^src\// {
        split($2, part, /[:%]/)
        if (!(file in lines) || part[2] > percent[file]) percent[file] = part[2]
        lines[file] = $4
        file = ""
    }
    END {
        for (f in lines) {
            printf "%6.1f%% of %5d  %s\n", percent[f], lines[f], f | "sort -n"
            all += lines[f]
            hit += lines[f] * percent[f] / 100
        }
        close("sort -n")
        printf "%6.1f%% of %5d  in all\n", all ? 100 * hit / all : 0, all
    }'
