#include "text_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "cli/usage_error.hpp"

namespace warpheap::tool {

namespace {

/// A compressed file by its first bytes, and the program that writes its contents to standard
/// output.
struct compression {
  std::string_view first_bytes;
  char const* name;
  char const* reader;
};
constexpr compression compressions[] = {{"\x1f\x8b", "gzip", "zcat"},
                                        {"BZh", "bzip2", "bzcat"},
                                        {{"\xfd"
                                          "7zXZ\0",
                                          6},
                                         "xz",
                                         "xzcat"},
                                        {"\x28\xb5\x2f\xfd", "zstd", "zstdcat"}};

void refuse_compressed(std::string const& path, std::string_view text, std::string const& piped) {
  for (auto const& each : compressions) {
    if (text.substr(0, each.first_bytes.size()) != each.first_bytes) continue;
    auto const file = path == standard_input ? "FILE" : path;
    throw usage_error{fmt::format("{}: is compressed by {}; decompress it on the way in: {} {} | warpheap {}",
                                  input_name(path), each.name, each.reader, file, piped)};
  }
}

std::string contents(std::istream& file, std::string const& path) {
  std::string text;
  for (size_t block = size_t{1} << 16; file; block = std::min(2 * block, size_t{1} << 26)) {
    auto const before = text.size();
    text.resize(before + block);
    file.read(text.data() + before, static_cast<std::streamsize>(block));
    text.resize(before + static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) throw usage_error{input_name(path) + ": " + std::strerror(errno)};
  return text;
}

std::string read(std::string const& path) {
  if (path == standard_input) return contents(std::cin, path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw usage_error{path + ": is a directory"};
  std::ifstream file{path, std::ios::binary};
  if (!file) throw usage_error{path + ": " + std::strerror(errno)};
  return contents(file, path);
}

}  // namespace

std::string input_name(std::string const& path) { return path == standard_input ? "<stdin>" : path; }

std::string read_text_file(std::string const& path, std::string const& piped) {
  auto text = read(path);
  refuse_compressed(path, text, piped);
  return text;
}

std::string excerpt(std::string_view text) {
  std::string made{text.substr(0, 40)};
  for (char& c : made)
    if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126) c = '?';
  return text.size() > 40 ? made + "..." : made;
}

}  // namespace warpheap::tool
