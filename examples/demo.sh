#!/bin/sh
# demo.sh - a short tour of the command cfx: what a graph looks like, a pass, the code it becomes.
# usage: demo.sh PATH_OF_CFX     (`make demo` builds it and calls this)
set -eu
case $1 in
/*) cfx=$1 ;;
*) cfx=$PWD/$1 ;;
esac
cd "$(dirname "$0")/graphs"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

bold= plain=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$(printf '\033[1m') plain=$(printf '\033[0m')
fi

# say WORDS...: the heading of a step.
say() {
    step=$((step + 1))
    printf '\n%s%s. %s%s\n' "$bold" "$step" "$*" "$plain"
}
step=0

# run ARGUMENTS...: shows a command as one would type it, and what it prints.
run() {
    printf '$ cfx %s\n' "$*"
    "$cfx" "$@"
}

say "A graph is a list of nodes with six opcodes. This is its text, as in a file:"
cat mlp.ir

say "The same graph as a table:"
run show mlp.ir

say "Nobody uses mul: dead-code elimination erases it and what only it needs:"
printf '$ cfx opt --pass dce mlp.ir >small.ir\n'
"$cfx" opt --pass dce mlp.ir >"$scratch/small.ir"
printf '$ cfx show --text mlp.ir | diff - small.ir\n'
"$cfx" show --text mlp.ir | diff - "$scratch/small.ir" || true

say "What is left, as a Python module:"
printf '$ cfx code --class MLP small.ir\n'
"$cfx" code --class MLP "$scratch/small.ir"

say "A residual block, straight from its text to Python:"
run code --class Block residual.ir

say "Control flow is part of a graph. This loop runs until the data says stop:"
sed -n '/cfx.while_loop/,/newton.py:6/p' newton.ir

say "In Python it is a loop again:"
printf '$ cfx opt --pass dce newton.ir | cfx code\n'
"$cfx" opt --pass dce newton.ir | "$cfx" code

say "Mistakes are shown where they are, with what to do about them:"
sed 's/(%fc1)/(%fc3)/' mlp.ir >"$scratch/wrong.ir"
printf '$ cfx check wrong.ir\n'
(cd "$scratch" && "$cfx" check wrong.ir) 2>&1 || true

printf '\nNext: cfx --help lists all verbs; README.md shows the C and the Python library.\n'
