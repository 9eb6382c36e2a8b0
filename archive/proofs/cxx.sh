#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# nvcc, with lists.cu in C++11, 14 and 17: the archive is linked beside the program's relocatable code.
. "$(dirname "$0")/common.sh"

nvcc=$(first_of "$cuda/bin/nvcc" nvcc || true)
[ -n "$nvcc" ] || skip "no nvcc"
needs_archive
cd "$folder"

for standard in 11 14 17; do
  name=lists_cxx$standard
  "$nvcc" -std=c++$standard -rdc=true -arch="sm_$arch" -I"$archive/include" -c "$here/lists.cu" -o $name.o
  "$nvcc" -arch="sm_$arch" $name.o "$device_archive" -L"$archive/lib" -lwarpheap_host -o $name
  "$nvcc" -arch="sm_$arch" -dlink -cubin $name.o "$device_archive" -o $name.cubin
  serves $name.cubin --kernels sum_lists
  run_on_gpu ./$name
done

"$nvcc" -arch="sm_$arch" -dlink -cubin lists_cxx11.o -o without_archive.cubin
refused without_archive.cubin --kernels sum_lists
