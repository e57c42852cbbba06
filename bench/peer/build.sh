#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# build.sh PYTHON OUTPUT - builds peer.cpp against the libtorch of a Python environment.
#
# Does nothing when OUTPUT is newer than its sources and was built for the same torch. Exits with 3
# when that Python has no torch. CXX is the compiler, g++ by default.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: build.sh PYTHON OUTPUT" >&2; exit 2; }
python=$1
output=$2
source_dir=$(dirname "$(readlink -f "$0")")

# Importing torch takes seconds, so its version comes from its files.
torch=$("$python" -c '
import importlib.util
import os
spec = importlib.util.find_spec("torch")
print(os.path.dirname(spec.origin) if spec is not None and spec.origin is not None else "")')
[ -n "$torch" ] || { echo "build.sh: $python has no torch" >&2; exit 3; }
version=$(sed -n "s/^__version__ = '\(.*\)'$/\1/p" "$torch/version.py")
stamp="$version $torch"

if [ -x "$output" ] && [ "$output" -nt "$source_dir/peer.cpp" ] &&
    [ "$(cat "$output.stamp" 2>/dev/null)" = "$stamp" ]; then
    exit 0
fi

# Builds of torch before 2.6 for Linux used the old layout of std::string.
string_abi=1
if ! nm -D --defined-only "$torch/lib/libc10.so" | grep '__cxx11' >/dev/null; then
    string_abi=0
fi

echo "building the PyTorch peer with torch $version; this takes about a minute" >&2
"${CXX:-g++}" -std=c++20 -O2 -DNDEBUG "-D_GLIBCXX_USE_CXX11_ABI=$string_abi" \
    -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" \
    "$source_dir/peer.cpp" -o "$output.new" \
    -L"$torch/lib" -Wl,-rpath,"$torch/lib" -Wl,--no-as-needed -ltorch_cpu -lc10
mv "$output.new" "$output"
printf '%s\n' "$stamp" >"$output.stamp"
