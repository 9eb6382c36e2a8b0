#include "csv_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "text_file.hpp"

namespace warpheap::tool {

namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::string_view trimmed(std::string_view text) {
  constexpr auto space = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
  return text.substr(0, text.find_last_not_of(space) + 1);
}

bool looks_like_a_number(std::string_view text) {
  return !text.empty() && ((text.front() >= '0' && text.front() <= '9') || text.front() == '-' || text.front() == '+');
}

/// The two fields of a line, or what is wrong with it.
class csv_line {
 public:
  csv_line(std::string const& name, u64 number, std::string_view text) : name_{name}, number_{number} {
    auto const comma = text.find(',');
    if (comma == std::string_view::npos) fail(fmt::format("'{}' is not a key and a payload", excerpt(text)));
    key_ = trimmed(text.substr(0, comma));
    payload_ = trimmed(text.substr(comma + 1));
    if (auto const more = payload_.find(','); more != std::string_view::npos)
      fail(fmt::format("'{}' follows a key and a payload", excerpt(payload_.substr(more))));
  }

  /// Names in place of numbers. One number makes it a tuple with a fault.
  bool is_header() const {
    return !key_.empty() && !payload_.empty() && !looks_like_a_number(key_) && !looks_like_a_number(payload_);
  }

  u32 key() const { return read("key", key_); }
  u32 payload() const { return read("payload", payload_); }

 private:
  [[noreturn]] void fail(std::string const& fault) const {
    throw usage_error{fmt::format("{}:{}: {}", name_, number_, fault)};
  }

  u32 read(char const* what, std::string_view text) const {
    if (text.empty()) fail(fmt::format("the {} is missing", what));
    u32 value = 0;
    auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::invalid_argument || stop != text.data() + text.size())
      fail(fmt::format("'{}' is not a {}: a whole number, not negative", excerpt(text), what));
    if (error != std::errc{}) fail(fmt::format("{} {} is more than {}", what, excerpt(text), ~u32{0}));
    return value;
  }

  std::string const& name_;
  u64 number_;
  std::string_view key_, payload_;
};

}  // namespace

join_table parse_csv_table(std::string const& name, std::string_view text) {
  if (text.substr(0, byte_order_mark.size()) == byte_order_mark) text.remove_prefix(byte_order_mark.size());
  join_table table;
  bool is_first = true;
  for (u64 number = 1; !text.empty(); ++number) {
    auto const end = std::min(text.find('\n'), text.size());
    auto const content = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty()) continue;
    csv_line const line{name, number, content};
    if (!(is_first && line.is_header())) {
      table.keys.push_back(line.key());
      table.payloads.push_back(line.payload());
    }
    is_first = false;
  }
  return table;
}

join_table read_csv_table(std::string const& path) { return parse_csv_table(path, read_text_file(path)); }

}  // namespace warpheap::tool
