# SPDX-License-Identifier: Apache-2.0
# What the proofs share. Each compiles a small program by another compiler or for another language,
# links its device code with the archive, and looks at the result (serves.py). With a GPU the program
# runs too. Exit status: 0 the proof holds or was skipped, with a line that says why; 1 it does not hold.
#
#   WARPHEAP_ARCHIVE   what `make archive` has built or installed (default: build/archive)
#   ARCH               of the GPU (default: that of the machine's GPU, else 90)
#   CUDA_HOME          of the toolkit (default: /usr/local/cuda)

set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
archive=$(realpath -m "${WARPHEAP_ARCHIVE:-$root/build/archive}")
export WARPHEAP_ARCHIVE="$archive"
cuda=${CUDA_HOME:-/usr/local/cuda}
export CUDA_HOME="$cuda"

skip() {
  echo "SKIP: $*"
  exit 0
}

# The first of these programs that there is.
first_of() {
  for name in "$@"; do
    if command -v "$name"; then return; fi
  done
  return 1
}

has_gpu() { nvidia-smi -L >/dev/null 2>&1; }

gpu_architecture() { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d .; }

arch=${ARCH:-$(gpu_architecture)}
arch=${arch:-90}

device_archive=$archive/lib/libwarpheap_device.a

# Without the archive there is nothing to prove.
needs_archive() {
  for file in "$archive/include/warpheap.h" "$archive/lib/libwarpheap_host.so" "$device_archive"; do
    [ -e "$file" ] || skip "no $file: build it by \`make archive\`, or name its folder in WARPHEAP_ARCHIVE"
  done
}

serves() { python3 "$here/serves.py" "$@"; }

# The same code, linked without the archive: if serves.py takes it, it proves nothing.
refused() {
  if serves "$@" >/dev/null; then
    echo "serves.py takes $1, which has no archive"
    exit 1
  fi
}

run_on_gpu() {
  if has_gpu; then
    LD_LIBRARY_PATH="$archive/lib:${LD_LIBRARY_PATH:-}" "$@"
  else
    echo "no GPU, so this was not run: $*"
  fi
}

folder=${PROOF_FOLDER:-$(mktemp -d)}
[ -n "${PROOF_FOLDER:-}" ] || trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"
