// SPDX-License-Identifier: Apache-2.0
// What the driver loads in place of a program's images.
#pragma once

#include <vector>

namespace warpheap::preload {

/// What an image is loaded as: a module is of one context, a library of all.
enum class loaded_as { module, library };

/// The image with our heap; empty if its code does not call the heap, or cannot be relinked, of
/// which a line tells.
std::vector<unsigned char> replacement(void const* image, loaded_as what) noexcept;

/// As replacement(), of a file.
std::vector<unsigned char> replacement_of_file(char const* path, loaded_as what) noexcept;

/// Keeps an image for as long as the process lives: a library may name it for as long as it lives.
void keep(std::vector<unsigned char> image);

/// Says that the driver refused a replacement, and that the program's own image is loaded.
void replacement_refused(int result);

}  // namespace warpheap::preload
