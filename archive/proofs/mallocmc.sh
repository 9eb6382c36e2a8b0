#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program on alpaka and mallocMC (mallocmc.cu), with Warpheap as mallocMC's creation policy. Needs
# neither the archive nor -rdc=true, and mallocMC's source, which has alpaka's beside it:
#
#   git clone --recursive https://github.com/alpaka-group/mallocMC
#   MALLOCMC=mallocMC archive/proofs/mallocmc.sh
. "$(dirname "$0")/common.sh"

nvcc=$(first_of "$cuda/bin/nvcc" nvcc || true)
[ -n "$nvcc" ] || skip "no nvcc"
[ -e "${MALLOCMC:-}/src/include/mallocMC/mallocMC.hpp" ] || skip "MALLOCMC does not name the source of mallocMC"
[ -e "${ALPAKA:=$MALLOCMC/alpaka}/include/alpaka/alpaka.hpp" ] || skip "ALPAKA does not name the source of alpaka"

# mallocMC names a constant as C++17 spells it, and Warpheap needs C++20.
"$nvcc" -std=c++20 -w -arch="sm_$arch" -Dmemory_order_seq_cst=seq_cst -DALPAKA_ACC_GPU_CUDA_ENABLED \
  --extended-lambda --expt-relaxed-constexpr -I"$root/include" -I"$MALLOCMC/src/include" -I"$ALPAKA/include" \
  "$here/mallocmc.cu" -o "$folder/mallocmc"
echo "mallocMC takes its blocks from Warpheap"
run_on_gpu "$folder/mallocmc"
