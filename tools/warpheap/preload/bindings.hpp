// SPDX-License-Identifier: Apache-2.0
// Heaps of the program's contexts, and the modules and libraries whose kernels take memory of them.
//
//   preload.B1  A kernel of a relinked library runs in a context only after the library's heap
//       there is bound: hooks of all launches call before_launch().
//   preload.B2  A context's heap goes, with its modules, before the context does.
#pragma once

namespace warpheap::preload {

/// Makes the heap of the current context, if it has none. Throws std::runtime_error if it cannot be
/// made. Without a context, and while launches are recorded, nothing happens.
void make_heap();

/// A relinked module, which belongs to the current context, or library, which belongs to all, was
/// loaded. Whether it could be bound: the driver reads code only then, and may refuse it.
bool module_loaded(void* module);
bool library_loaded(void* library);
void library_unloaded(void* library);

/// Binds the libraries in the current context, if that is not done and a launch into `stream` runs.
void before_launch(void* stream) noexcept;

/// A context may be gone, and another have its handle.
void contexts_changed();

/// Destroys the heap of `context`, which is still there. The archive's library reports on it then,
/// and at the end of the process on those that are left.
void before_destruction(void* context) noexcept;

/// Whether the current context has a heap.
bool has_heap();

}  // namespace warpheap::preload
