#!/bin/sh
# venv.sh - makes .venv with the packages of tests/requirements.txt; quick when nothing changed.
# With --which it only prints the Python it would use (3.11 preferred, any newer one accepted).
set -eu
cd "$(dirname "$0")/.."

# A pyenv shim may exist and yet refuse to run, so each candidate is tried.
find_python() {
    for p in "${PYTHON:-}" python3.11 python3 /usr/bin/python3.11 /usr/bin/python3; do
        case $p in *.venv/*|'') continue ;; esac
        if "$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$p"
            return
        fi
    done
    echo "venv.sh: no Python 3.11 or newer found; install python3" >&2
    return 1
}

# Prints what the given Python lacks to make a virtual environment and compile an extension.
missing() {
    "$1" - <<'END'
import importlib.util, os, sysconfig
lacks = [m for m in ("venv", "ensurepip") if not importlib.util.find_spec(m)]
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    lacks.append("Python.h")
print(*lacks)
END
}

python=$(find_python)
if [ "${1:-}" = --which ]; then
    echo "$python"
    exit 0
fi

lacks=$(missing "$python")
if [ -n "$lacks" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "venv.sh: $python lacks $lacks; installing python3-venv and python3-dev"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq python3-venv python3-dev
    [ -z "$(missing "$python")" ] || python=/usr/bin/python3
    lacks=$(missing "$python")
fi
if [ -n "$lacks" ]; then
    echo "venv.sh: $python lacks $lacks; on Debian: apt-get install python3-venv python3-dev" >&2
    exit 1
fi

stamp=.venv/cfx.stamp
want=$(cksum <tests/requirements.txt)
if [ -f $stamp ] && [ "$(cat $stamp)" = "$want" ] && .venv/bin/python -c '' 2>/dev/null; then
    echo "venv.sh: .venv is up to date"
    exit 0
fi
rm -f $stamp
if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --clear .venv
fi
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
echo "$want" >$stamp
echo "venv.sh: .venv is ready ($(.venv/bin/python --version))"
