#!/bin/sh
# install.sh - installs into a scratch folder and builds a program against what lies there.
# usage: install.sh BUILD_DIR MAKE...
set -eu
stage=$(cd "$1" && pwd)/stage
shift
rm -rf "$stage"
"$@" install PREFIX="$stage" DESTDIR=

cat >"$stage/hello.c" <<'END'
#include <cfx/cfx.h>
int main(void) { return cfx_version()[0] == '\0'; }
END
flags="-I$stage/include -L$stage/lib -lcfx"
if command -v pkg-config >/dev/null; then
    flags=$(PKG_CONFIG_PATH="$stage/lib/pkgconfig" pkg-config --cflags --libs cfx)
fi
${CC:-cc} -std=c11 -Wall -Werror "$stage/hello.c" -o "$stage/hello" $flags
LD_LIBRARY_PATH="$stage/lib" "$stage/hello"
test -x "$stage/bin/cfx"
for file in man/man1/cfx.1 bash-completion/completions/cfx zsh/site-functions/_cfx \
    fish/vendor_completions.d/cfx.fish; do
    grep -q stats "$stage/share/$file"
done
! grep -n '@' "$stage/lib/pkgconfig/cfx.pc"
echo "install: 1 passed, 0 failed"
