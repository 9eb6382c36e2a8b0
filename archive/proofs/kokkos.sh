#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program on Kokkos (kokkos.cpp) whose kernels call malloc. Kokkos must have relocatable device code, since the
# archive is linked. Needs an installed Kokkos for CUDA, and its nvcc_wrapper:
#
#   cmake -S kokkos -B build -D CMAKE_CXX_COMPILER=kokkos/bin/nvcc_wrapper -D Kokkos_ENABLE_CUDA=ON \
#     -D Kokkos_ENABLE_CUDA_RELOCATABLE_DEVICE_CODE=ON -D CMAKE_INSTALL_PREFIX=installed && cmake --build build -t install
#   KOKKOS=installed archive/proofs/kokkos.sh
#
# ARCH must be the one that Kokkos was compiled for.
. "$(dirname "$0")/common.sh"

KOKKOS=$(realpath -m "${KOKKOS:-.}")
wrapper=$KOKKOS/bin/nvcc_wrapper
[ -x "$wrapper" ] || skip "KOKKOS does not name an installed Kokkos with bin/nvcc_wrapper"
grep -qs "define KOKKOS_ENABLE_CUDA_RELOCATABLE_DEVICE_CODE" "$KOKKOS/include/KokkosCore_config.h" ||
  skip "Kokkos in $KOKKOS was compiled without Kokkos_ENABLE_CUDA_RELOCATABLE_DEVICE_CODE"
needs_archive
PATH=$cuda/bin:$PATH
kokkos=$(ls "$KOKKOS"/lib*/libkokkoscore.a)
cd "$folder"

"$wrapper" -std=c++17 -w -O2 -rdc=true -arch="sm_$arch" --extended-lambda --expt-relaxed-constexpr \
  -I"$KOKKOS/include" -I"$archive/include" -c "$here/kokkos.cpp" -o kokkos.o
"$wrapper" -arch="sm_$arch" kokkos.o "$kokkos" "$device_archive" -L"$archive/lib" -lwarpheap_host -lcuda \
  -L"$cuda/lib64/stubs" -ldl -o kokkos
nvcc -arch="sm_$arch" -dlink -cubin kokkos.o "$kokkos" "$device_archive" -o kokkos.cubin
serves kokkos.cubin --kernels sum_rows
run_on_gpu ./kokkos
