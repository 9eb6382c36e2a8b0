#include "text_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "backend/backend.hpp"

namespace warpheap::tool {

std::string read_text_file(std::string const& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw usage_error{path + ": is a directory"};
  std::ifstream file{path, std::ios::binary};
  if (!file) throw usage_error{path + ": " + std::strerror(errno)};
  std::string text;
  for (size_t block = size_t{1} << 16; file; block = std::min(2 * block, size_t{1} << 26)) {
    auto const before = text.size();
    text.resize(before + block);
    file.read(text.data() + before, static_cast<std::streamsize>(block));
    text.resize(before + static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) throw usage_error{path + ": " + std::strerror(errno)};
  return text;
}

std::string excerpt(std::string_view text) {
  std::string made{text.substr(0, 40)};
  for (char& c : made)
    if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126) c = '?';
  return text.size() > 40 ? made + "..." : made;
}

}  // namespace warpheap::tool
