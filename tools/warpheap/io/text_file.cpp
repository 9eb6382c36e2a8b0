// SPDX-License-Identifier: Apache-2.0
#include "text_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <system_error>

#include "cli/printable.hpp"
#include "cli/usage_error.hpp"

namespace warpheap::tool {

namespace {

using namespace std::string_view_literals;

/// What a file is by bytes of it, and the program that makes text of it: a filter, or for an
/// archive the program that extracts its files.
struct packing {
  size_t offset;
  std::string_view bytes;
  char const* name;
  char const* program;
};
constexpr packing compressions[] = {{0, "\x1f\x8b"sv, "gzip", "zcat"},
                                    {0, "\x1f\x9d"sv, "compress", "zcat"},
                                    {0, "BZh"sv, "bzip2", "bzcat"},
                                    {0, "\xfd\x37zXZ\0"sv, "xz", "xzcat"},
                                    {0, "\x28\xb5\x2f\xfd"sv, "zstd", "zstdcat"}};
constexpr packing tar{257, "ustar"sv, "tar", "tar -xf"};
constexpr packing zip{0, "PK\3\4"sv, "zip", "unzip"};
/// Ends of names of compressed tar archives.
constexpr std::string_view tar_names[] = {".tgz", ".tbz", ".tbz2", ".txz", ".tzst"};

/// An encoding by the mark at its start, or by the zero bytes of an ASCII character.
constexpr packing encodings[] = {{0, "\xff\xfe\0\0"sv, "UTF-32LE", {}}, {0, "\0\0\xfe\xff"sv, "UTF-32BE", {}},
                                 {1, "\0\0\0"sv, "UTF-32LE", {}},       {0, "\0\0\0"sv, "UTF-32BE", {}},
                                 {0, "\xff\xfe"sv, "UTF-16LE", {}},     {0, "\xfe\xff"sv, "UTF-16BE", {}},
                                 {1, "\0"sv, "UTF-16LE", {}},           {0, "\0"sv, "UTF-16BE", {}}};
constexpr auto utf8_mark = "\xef\xbb\xbf"sv;

bool has(std::string_view text, packing const& which) {
  return text.size() > which.offset && text.substr(which.offset, which.bytes.size()) == which.bytes;
}

bool is_named_as_tar(std::string const& path) {
  std::filesystem::path const name{path};
  auto const is_end = [&](std::string_view end) { return name.extension() == end; };
  return name.stem().extension() == ".tar" || std::any_of(std::begin(tar_names), std::end(tar_names), is_end);
}

/// The file's name in a command.
std::string word_of(std::string const& path) { return path == standard_input ? "FILE" : shell_word(path); }

[[noreturn]] void refuse_archive(std::string const& path, packing const& archive) {
  throw usage_error{fmt::format("{}: is a {} archive; extract its files, and read one of them: {} {}", input_name(path),
                                archive.name, archive.program, word_of(path))};
}

/// What makes text of a file, as a command that a message ends with.
std::string remedy(std::string const& path, std::string const& program, std::string const& piped) {
  return fmt::format("{} <{} {}", program, word_of(path), piped.empty() ? ">FILE" : "| warpheap " + piped);
}

void refuse_packed(std::string const& path, std::string_view bytes, std::string const& piped) {
  for (auto const& archive : {tar, zip})
    if (has(bytes, archive)) refuse_archive(path, archive);
  for (auto const& compression : compressions) {
    if (!has(bytes, compression)) continue;
    if (is_named_as_tar(path)) refuse_archive(path, tar);
    throw usage_error{fmt::format("{}: is compressed by {}; decompress it: {}", input_name(path), compression.name,
                                  remedy(path, compression.program, piped))};
  }
}

void refuse_encoded(std::string const& path, std::string_view bytes, std::string const& piped) {
  for (auto const& encoding : encodings)
    if (has(bytes, encoding))
      throw usage_error{fmt::format("{}: is text in {}; convert it: {}", input_name(path), encoding.name,
                                    remedy(path, fmt::format("iconv -f {} -t UTF-8", encoding.name), piped))};
}

/// Makes every end of a line LF.
void unify_line_ends(std::string& text) {
  auto to = std::find(text.begin(), text.end(), '\r');
  for (auto from = to; from != text.end(); ++from) {
    if (*from != '\r') *to++ = *from;
    else if (from + 1 == text.end() || from[1] != '\n') *to++ = '\n';
  }
  text.erase(to, text.end());
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

std::string plain_text(std::string const& path, std::string bytes, std::string const& piped) {
  refuse_packed(path, bytes, piped);
  refuse_encoded(path, bytes, piped);
  if (std::string_view{bytes}.substr(0, utf8_mark.size()) == utf8_mark) bytes.erase(0, utf8_mark.size());
  unify_line_ends(bytes);
  return bytes;
}

std::string read_text_file(std::string const& path, std::string const& piped) {
  return plain_text(path, read(path), piped);
}

std::optional<i64> whole_number(std::string_view field) {
  using limits = std::numeric_limits<i64>;
  if (field.size() > 1 && field.front() == '+' && field[1] != '-') field.remove_prefix(1);
  auto const* const end = field.data() + field.size();
  i64 whole = 0;
  if (auto const [stop, error] = std::from_chars(field.data(), end, whole); stop == end && error == std::errc{})
    return whole;
  double real = 0;
  auto const [stop, error] = std::from_chars(field.data(), end, real);
  if (error != std::errc{} || stop != end || !std::isfinite(real) || real != std::trunc(real)) return std::nullopt;
  if (std::abs(real) >= 0x1p63) return real < 0 ? limits::min() : limits::max();
  return static_cast<i64>(real);
}

}  // namespace warpheap::tool
