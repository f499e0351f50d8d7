#!/usr/bin/env bash
# Builds llama.cpp's bench and server from the source package llama-cpp-python, which carries its
# tree, and prints the folder of the programs. Usage: llama_cpp.sh FOLDER
# Takes about 8 minutes on 2 cores; a folder that has the programs already is left as it is.
set -euo pipefail

VERSION=0.3.36
folder=${1:?usage: llama_cpp.sh FOLDER}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
programs=$folder/build/bin
if [[ -x $programs/llama-bench && -x $programs/llama-batched-bench && -x $programs/llama-server ]]; then
    echo "$programs"
    exit
fi

{
    python3 -m venv "$folder/tools"
    "$folder/tools/bin/pip" install --quiet cmake ninja
    export PATH="$folder/tools/bin:$PATH"
    # ":all:" would have pip compile cmake itself.
    pip download --quiet --no-deps --no-binary llama-cpp-python --dest "$folder" "llama-cpp-python==$VERSION"
    tar -xf "$folder"/llama_cpp_python-$VERSION.tar.gz -C "$folder"
    source=$folder/llama_cpp_python-$VERSION/vendor/llama.cpp
    # A gitdir file that points nowhere stops cmake.
    rm -rf "$source/.git"
    cmake -S "$source" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON \
        -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_UI=OFF
    cmake --build "$folder/build" -j "$(nproc)" -t llama-bench llama-batched-bench llama-server
} >&2
echo "$programs"
