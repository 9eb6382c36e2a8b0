#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Julia. CUDA.jl runs ptxas on its PTX, in which malloc is an external function, and loads what ptxas makes. So ptxas.sh
# takes the place of ptxas. No Julia is needed here: julia.ll is such a function in LLVM's IR, and
# ptxas.sh is called as CUDA.jl calls ptxas.
. "$(dirname "$0")/common.sh"

llc=$(first_of ${LLC:-llc-24 llc-23 llc-22 llc-21 llc-20 llc} || true)
[ -n "$llc" ] || skip "no llc (Debian: llvm-22)"
[ -x "$cuda/bin/ptxas" ] || skip "no ptxas in $cuda/bin"
needs_archive
cd "$folder"

"$llc" -mcpu="sm_$arch" "$here/julia.ll" -o julia.ptx 2>/dev/null || skip "$llc does not compile for sm_$arch, or is older than LLVM 20"
"$here/ptxas.sh" --verbose --gpu-name "sm_$arch" --output-file julia.cubin julia.ptx 2>/dev/null
serves julia.cubin --kernels store_block
run_on_gpu python3 "$here/run_cubin.py" julia.cubin store_block
"$cuda/bin/ptxas" --gpu-name "sm_$arch" --output-file without_archive.cubin julia.ptx
refused without_archive.cubin --kernels store_block
