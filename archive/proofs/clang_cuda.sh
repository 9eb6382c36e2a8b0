#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clang as a CUDA compiler, with lists.cu unedited, in three ways:
#
#   relocatable   -fgpu-rdc, and the archive's machine code is linked
#   LTO           -fgpu-rdc -foffload-lto, and the archive's bitcode is linked and inlined
#   whole         no -fgpu-rdc: the bitcode is linked into the unit before it is compiled
#
# The bitcode is made by the same clang from archive/device.cu. A clang reads bitcode of its own version
# and of older ones.
. "$(dirname "$0")/common.sh"

clang=${CLANGXX:-$(first_of clang++-24 clang++-23 clang++-22 || true)}
[ -n "$clang" ] || skip "no clang 22 or newer; CLANGXX names another"
target="-x cuda --cuda-path=$cuda --cuda-gpu-arch=sm_$arch -O2 -Wno-unknown-cuda-version"
echo '__global__ void kernel() {}' >"$folder/empty.cu"
# shellcheck disable=SC2086
"$clang" $target -fsyntax-only "$folder/empty.cu" 2>/dev/null || skip "$clang does not compile for the CUDA in $cuda"
"$clang" -print-prog-name=clang-linker-wrapper | grep -q / || skip "$clang has no clang-linker-wrapper (Debian: clang-tools-22)"
needs_archive
host="-L$archive/lib -lwarpheap_host -L$cuda/lib64 -lcudart_static -ldl -lrt -lpthread"
unit="-std=c++11 -I$archive/include $here/lists.cu"
cd "$folder"

# shellcheck disable=SC2086
bitcode() {
  "$clang" $target -std=c++20 --cuda-device-only -fgpu-rdc -emit-llvm -c -I"$root/include" "$root/archive/device.cu" \
    -o warpheap.bc
}

# shellcheck disable=SC2086
relocatable() {
  "$clang" $target -fgpu-rdc -c $unit -o relocatable.o
  "$clang" --offload-link --cuda-path="$cuda" relocatable.o -Xoffload-linker "$device_archive" -o relocatable --save-temps $host
  serves "relocatable.nvptx64.sm_$arch.img" --kernels sum_lists
  run_on_gpu ./relocatable
}

# shellcheck disable=SC2086
lto() {
  "$clang" $target -fgpu-rdc -foffload-lto -c $unit -o lto.o
  "$clang" --offload-link -foffload-lto --cuda-path="$cuda" lto.o -Xoffload-linker "$folder/warpheap.bc" -o lto \
    --save-temps $host
  serves "lto.nvptx64.sm_$arch.img" --kernels sum_lists
  run_on_gpu ./lto
}

# shellcheck disable=SC2086
whole() {
  "$clang" $target --cuda-device-only -Xclang -mlink-builtin-bitcode -Xclang warpheap.bc -c $unit -o whole.cubin
  serves whole.cubin --kernels sum_lists
  run_on_gpu python3 "$here/run_cubin.py" whole.cubin sum_lists
}

bitcode
relocatable
lto
whole
