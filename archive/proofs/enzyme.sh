#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Enzyme, which differentiates LLVM's IR: the derivative of a device function that calls malloc (enzyme.cu)
# calls malloc too. ptxas.sh links the archive. Needs Enzyme's plugin, and clang, opt and llc of its LLVM:
#
#   cmake -S Enzyme/enzyme -B build -D LLVM_DIR=/usr/lib/llvm-16/lib/cmake/llvm && cmake --build build -t LLVMEnzyme-16
#   ENZYME=build/Enzyme/LLVMEnzyme-16.so archive/proofs/enzyme.sh
. "$(dirname "$0")/common.sh"

plugin=$(realpath -m "${ENZYME:-.}")
[ -f "$plugin" ] || skip "ENZYME does not name LLVMEnzyme-N.so"
version=$(basename "$plugin" .so)
version=${version##*-}
for tool in clang++ opt llc; do
  first_of "$tool-$version" >/dev/null || skip "no $tool-$version, of the LLVM for which $plugin was built"
done
needs_archive
cd "$folder"

# CUDA 13 no longer has a header that older clangs include for their own, and that may be empty.
mkdir -p missing
: >missing/texture_fetch_functions.h
"clang++-$version" -x cuda --cuda-path="$cuda" --cuda-gpu-arch="sm_$arch" --cuda-device-only -Wno-unknown-cuda-version \
  -idirafter missing -O2 -fno-vectorize -fno-slp-vectorize -fno-unroll-loops -emit-llvm -c "$here/enzyme.cu" -o enzyme.bc
"opt-$version" -load-pass-plugin="$plugin" -passes=enzyme enzyme.bc -o derivative.bc
"opt-$version" -O2 derivative.bc -o optimised.bc
"llc-$version" -mcpu="sm_$arch" optimised.bc -o enzyme.ptx
"$here/ptxas.sh" --gpu-name "sm_$arch" --output-file enzyme.cubin enzyme.ptx
serves enzyme.cubin --kernels differentiate
run_on_gpu python3 "$here/run_cubin.py" enzyme.cubin differentiate
