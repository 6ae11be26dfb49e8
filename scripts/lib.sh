# SPDX-License-Identifier: Apache-2.0
# Shell words that the scripts of this folder share; sourced, not run.

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 3; }

# need_apt PACKAGE...: installs what is missing. Does nothing, and asks no
# registry, when everything is there.
need_apt() {
    command -v dpkg-query >/dev/null 2>&1 ||
        { say "not a Debian system: make sure these are installed: $*"; return 0; }
    missing=
    for p in "$@"; do
        dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed ||
            missing="$missing $p"
    done
    [ -n "$missing" ] || return 0
    sudo=
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 || die "not root and no sudo: install$missing"
        sudo=sudo
    fi
    say "installing:$missing"
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || true
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        $missing >&2 </dev/null || die "apt-get could not install:$missing"
}

BUILD_PACKAGES="gcc libc6-dev make autoconf automake libtool pkg-config libzstd-dev libssl-dev
libcjson-dev libpcre2-dev libutf8proc-dev libmicrohttpd-dev libhwloc-dev"
TEST_PACKAGES="bats clang libclang-rt-14-dev mandoc jq zstd xz-utils curl python3 python3-venv
python3-pip unzip procps libcmocka-dev"

# build DIR CONFIGURE-OPTION...: configures once and makes, out of the tree.
build() {
    dir=$1; shift
    top=$(cd "$(dirname "$0")/.." && pwd)
    if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ]; then
        (cd "$top" && autoreconf -fi >autoreconf.log 2>&1) ||
            { cat "$top/autoreconf.log" >&2; die "autoreconf failed"; }
    fi
    mkdir -p "$dir"
    if [ ! -f "$dir/Makefile" ]; then
        (cd "$dir" && "$top/configure" -q "$@" >configure.log 2>&1) ||
            { tail -20 "$dir/configure.log" >&2; die "configure failed in $dir"; }
    fi
    make -s -C "$dir" -j"$(nproc)" >"$dir/make.log" 2>&1 ||
        { grep -E 'error|warning|undefined' "$dir/make.log" | head -30 >&2; die "make failed, see $dir/make.log"; }
}

# free_port: prints a TCP port of the loopback that nobody listens on.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
