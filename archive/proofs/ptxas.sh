#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A ptxas that links the archive, for compilers that run ptxas on PTX of theirs and load what it makes: CUDA.jl
# of Julia, Triton, XLA. Takes ptxas's own options. PTX that does not call malloc is left to ptxas alone.
#
#   WARPHEAP_ARCHIVE   what `make archive` has built or installed (default: build/archive)
#   WARPHEAP_PTXAS     the ptxas that is called (default: the one in CUDA_HOME/bin, beside nvlink)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
archive=${WARPHEAP_ARCHIVE:-$here/../../build/archive}/lib/libwarpheap_device.a
ptxas=${WARPHEAP_PTXAS:-${CUDA_HOME:-/usr/local/cuda}/bin/ptxas}
nvlink=$(dirname "$ptxas")/nvlink

arch='' output='' input='' wanted=''
for word in "$@"; do
  case $wanted in
  arch) arch=$word ;;
  output) output=$word ;;
  *) case $word in
    --gpu-name=* | -arch=* | --arch=*) arch=${word#*=} ;;
    --output-file=* | -o=*) output=${word#*=} ;;
    -*) ;;
    *) input=$word ;;
    esac ;;
  esac
  case $word in
  --gpu-name | -arch) wanted=arch ;;
  --output-file | -o) wanted=output ;;
  *) wanted='' ;;
  esac
done

calls_malloc() {
  grep -qE '^[[:space:]]*\.extern[[:space:]]+\.func.*[[:space:]](malloc|free)[[:space:]]*(\(|;|$)' "$1"
}

if [ ! -f "$input" ] || [ -z "$output" ] || [ -z "$arch" ] || ! calls_malloc "$input"; then exec "$ptxas" "$@"; fi
if [ ! -f "$archive" ]; then
  echo "ptxas.sh: no $archive: build it by \`make archive\`, or name its folder in WARPHEAP_ARCHIVE" >&2
  exit 1
fi
"$ptxas" --compile-only "$@"
mv "$output" "$output.relocatable.cubin"
trap 'rm -f "$output.relocatable.cubin"' EXIT
"$nvlink" "--arch=$arch" "$output.relocatable.cubin" "$archive" -o "$output"
