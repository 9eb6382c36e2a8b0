// SPDX-License-Identifier: Apache-2.0
#include "csv_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/printable.hpp"
#include "cli/usage_error.hpp"
#include "text_file.hpp"

namespace warpheap::tool {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr auto space = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
  return text.substr(0, text.find_last_not_of(space) + 1);
}

bool looks_like_a_number(std::string_view text) {
  return !text.empty() && ((text.front() >= '0' && text.front() <= '9') || text.front() == '-' || text.front() == '+');
}

/// One value of a record, without its quotes and the spaces around it.
struct csv_value {
  std::string text;
  u64 line;      ///< on which it starts
  size_t start;  ///< in the whole text
};

/// A text record by record, and in each record value by value.
class csv_reader {
 public:
  csv_reader(std::string const& name, std::string_view text) : name_{name}, text_{text} {}

  /// The next record that is not blank, as values(); false if there is none.
  bool next() {
    while (at_ < text_.size()) {
      values_.clear();
      start_ = at_;
      do values_.push_back(value());
      while (take(','));
      end_ = at_;
      take('\n');
      ++line_;
      if (!record().empty()) return true;
    }
    return false;
  }

  std::vector<csv_value> const& values() const { return values_; }
  /// The record from `start` on as it stands in the file.
  std::string_view record_from(size_t start) const { return trimmed(text_.substr(start, end_ - start)); }
  std::string_view record() const { return record_from(start_); }

  [[noreturn]] void fail(u64 line, std::string const& fault) const {
    throw usage_error{fmt::format("{}:{}: {}", name_, line, fault)};
  }

 private:
  bool take(char wanted) {
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  csv_value value() {
    skip_space();
    csv_value made{{}, line_, at_};
    if (take('"')) {
      made.text = quoted(made.line);
      skip_space();
      if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n')
        fail(line_, fmt::format("'{}' follows a quoted value", excerpt(rest_of_line())));
    } else {
      auto const end = std::min(text_.find_first_of(",\n", at_), text_.size());
      made.text = trimmed(text_.substr(at_, end - at_));
      at_ = end;
    }
    return made;
  }

  /// The text from behind the opening quote to behind the closing one.
  std::string quoted(u64 opened) {
    std::string made;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        if (at_ == text_.size() || text_[at_] != '"') return std::string{trimmed(made)};
      }
      if (text_[at_] == '\n') ++line_;
      made += text_[at_];
    }
    fail(opened, "a quote opens a value and none closes it");
  }

  std::string_view rest_of_line() const {
    return trimmed(text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_));
  }

  std::string const& name_;
  std::string_view text_;
  std::vector<csv_value> values_;
  size_t at_ = 0, start_ = 0, end_ = 0;
  u64 line_ = 1;
};

/// A header has names in place of numbers. A record with one number is a tuple with a fault.
bool is_header(csv_value const& key, csv_value const& payload) {
  return !key.text.empty() && !payload.text.empty() && !looks_like_a_number(key.text) &&
         !looks_like_a_number(payload.text);
}

u32 read_number(csv_reader const& reader, char const* what, csv_value const& from) {
  auto const& text = from.text;
  if (text.empty()) reader.fail(from.line, fmt::format("the {} is missing", what));
  auto const value = whole_number(text);
  if (!value || *value < 0)
    reader.fail(from.line, fmt::format("'{}' is not a {}: a whole number, not negative", excerpt(text), what));
  if (*value > ~u32{0}) reader.fail(from.line, fmt::format("{} {} is more than {}", what, excerpt(text), ~u32{0}));
  return static_cast<u32>(*value);
}

}  // namespace

join_table parse_csv_table(std::string const& name, std::string_view text) {
  csv_reader reader{name, text};
  join_table table;
  for (bool is_first = true; reader.next(); is_first = false) {
    auto const& values = reader.values();
    auto const& key = values.front();
    if (values.size() < 2)
      reader.fail(key.line, fmt::format("'{}' is not a key and a payload", excerpt(reader.record())));
    auto const& payload = values[1];
    if (values.size() > 2)
      reader.fail(values[2].line,
                  fmt::format("',{}' follows a key and a payload", excerpt(reader.record_from(values[2].start))));
    if (is_first && is_header(key, payload)) continue;
    table.keys.push_back(read_number(reader, "key", key));
    table.payloads.push_back(read_number(reader, "payload", payload));
  }
  return table;
}

join_table read_csv_table(std::string const& path, std::string const& piped) {
  return parse_csv_table(input_name(path), read_text_file(path, piped));
}

}  // namespace warpheap::tool
