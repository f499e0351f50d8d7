#!/usr/bin/env bash
# Builds llama.cpp's bench and server from the source package llama-cpp-python, which carries its
# tree, and prints the folder of the programs. Usage: llama_cpp.sh FOLDER [native|avx2]
# Takes about 8 minutes on 2 cores; a folder that has the programs already is left as it is.
set -euo pipefail

VERSION=0.3.36
usage='usage: llama_cpp.sh FOLDER [native|avx2]'
folder=${1:?$usage}
level=${2:-native}
case $level in
    native) instructions=(-DGGML_NATIVE=ON) ;;
    avx2) instructions=(-DGGML_NATIVE=OFF -DGGML_AVX512=OFF -DGGML_AVX=ON -DGGML_AVX2=ON
        -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON) ;;
    *) echo "$usage" >&2; exit 2 ;;
esac
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
programs=$folder/$level/bin
if [[ -x $programs/llama-bench && -x $programs/llama-batched-bench && -x $programs/llama-server ]]; then
    echo "$programs"
    exit
fi

{
    source=$folder/llama_cpp_python-$VERSION/vendor/llama.cpp
    if [[ ! -x $folder/tools/bin/ninja ]]; then
        python3 -m venv "$folder/tools"
        "$folder/tools/bin/pip" install --quiet cmake ninja
    fi
    export PATH="$folder/tools/bin:$PATH"
    if [[ ! -d $source ]]; then
        # ":all:" would have pip compile cmake itself.
        pip download --quiet --no-deps --no-binary llama-cpp-python --dest "$folder" "llama-cpp-python==$VERSION"
        tar -xf "$folder"/llama_cpp_python-$VERSION.tar.gz -C "$folder"
        # A gitdir file that points nowhere stops cmake.
        rm -rf "$source/.git"
    fi
    cmake -S "$source" -B "$folder/$level" -G Ninja -DCMAKE_BUILD_TYPE=Release "${instructions[@]}" \
        -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_UI=OFF
    cmake --build "$folder/$level" -j "$(nproc)" -t llama-bench llama-batched-bench llama-server
} >&2
echo "$programs"
