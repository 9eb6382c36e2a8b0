; SPDX-License-Identifier: Apache-2.0
; A kernel that stores what malloc returns, as CUDA.jl's device function `malloc` calls it.
target triple = "nvptx64-nvidia-cuda"

declare ptr @malloc(i64)
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

define ptx_kernel void @store_block(ptr %blocks) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext i32 %lane to i64
  %bytes = add i64 %i, 64
  %block = call ptr @malloc(i64 %bytes)
  %place = getelementptr ptr, ptr %blocks, i64 %i
  store ptr %block, ptr %place
  ret void
}
