#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# OpenMP offload by clang, in C and in Fortran: malloc and free of target regions (lists_openmp.c,
# rows_fortran.f90). One option of the link names the archive; regions and how they are compiled do not change.
#
# Machine code of one architecture is linked, since clang 19 takes no library of several, or bitcode. Clang needs the
# device runtime of OpenMP of its own version, which Debian has for clang 19 (libomp-19-dev), and
# not for clang 22. Fortran's region is compiled by flang of the same version, and linked by clang.
. "$(dirname "$0")/common.sh"

# The folder of clang's libraries, if the device runtime is there. Newer clangs have it for all architectures in one file,
# and find it themselves.
runtime_of() {
  libraries=$("$1" -print-resource-dir)/../..
  if [ -e "$libraries/libomptarget-nvptx-sm_$arch.bc" ] || [ -e "$libraries/nvptx64-nvidia-cuda/libompdevice.a" ]; then
    echo "$libraries"
  fi
}

for name in ${CLANG:-clang-24 clang-23 clang-22 clang-21 clang-20 clang-19}; do
  clang=$(first_of "$name") || continue
  libraries=$(runtime_of "$clang")
  [ -z "$libraries" ] || break
done
[ -n "${libraries:-}" ] || skip "no clang 19 or newer with the device runtime of OpenMP for sm_$arch (Debian: clang-19 and libomp-19-dev)"
"$clang" -print-prog-name=clang-linker-wrapper | grep -q / || skip "$clang has no clang-linker-wrapper (Debian: clang-tools-19)"
needs_archive
cd "$folder"
export OMP_TARGET_OFFLOAD=MANDATORY LD_LIBRARY_PATH="$libraries"
version=$(basename "$("$clang" -print-resource-dir)")

# CUDA 13 has another layout of the header of machine code, by which OpenMP's runtime finds code for the GPU. The
# runtime of clang 19 does not know it; clang 22 does.
run_region() {
  if [ "$version" -lt 22 ] && "$cuda/bin/nvlink" --version | grep -q "release 1[3-9]"; then
    echo "not run: the OpenMP runtime of clang $version does not know machine code of CUDA 13: $1"
  else
    run_on_gpu "$1"
  fi
}

runtime=
if [ -e "$libraries/libomptarget-nvptx-sm_$arch.bc" ]; then
  runtime=--libomptarget-nvptx-bc-path=$libraries/libomptarget-nvptx-sm_$arch.bc
fi

# link PROGRAM DEVICE_CODE FILE_OR_OPTION...
link() {
  name=$1
  device_code=$2
  shift 2
  "$clang" -std=c11 -O2 -fopenmp --offload-arch="sm_$arch" --cuda-path="$cuda" -I"$archive/include" "$@" -o "$name" \
    ${runtime:+"$runtime"} -L"$libraries" --save-temps -Xoffload-linker "$device_code" -L"$archive/lib" -lwarpheap_host
}
machine_code=$archive/lib/warpheap/device_sm_$arch.cubin

link lists_openmp "$machine_code" "$here/lists_openmp.c"
serves "lists_openmp.nvptx64.sm_$arch.img" --kernels sum_lists
run_region ./lists_openmp

# CUDA 13 no longer has a header that clang 19 includes for its own, and that may be empty.
mkdir -p missing
: >missing/texture_fetch_functions.h
"$clang" -x cuda --cuda-path="$cuda" --cuda-gpu-arch="sm_$arch" -O2 -std=c++20 -Wno-unknown-cuda-version --cuda-device-only \
  -fgpu-rdc -emit-llvm -c -idirafter missing -I"$root/include" "$root/archive/device.cu" -o warpheap.bc
link lists_openmp_lto warpheap.bc "$here/lists_openmp.c" -foffload-lto
serves "lists_openmp_lto.nvptx64.sm_$arch.img" --kernels sum_lists
echo "not run: optimised together with bitcode it ended with an illegal instruction on an H200"

flang=$(first_of "flang-$version" "flang-new-$version") || skip "no flang $version, so Fortran was not compiled"
"$flang" -fopenmp --offload-arch="sm_$arch" -nogpulib -O2 -c "$here/rows_fortran.f90" -o rows_fortran.o
link rows_fortran "$machine_code" "$here/rows_main.c" rows_fortran.o
serves "rows_fortran.nvptx64.sm_$arch.img" --kernels combine_rows
run_region ./rows_fortran
