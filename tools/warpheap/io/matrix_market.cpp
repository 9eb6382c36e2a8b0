#include "matrix_market.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "cli/usage_error.hpp"
#include "text_file.hpp"

namespace warpheap::tool {

namespace {

constexpr u64 most_vertices = 0x7fff'ffff;

std::string lower(std::string_view text) {
  std::string made{text};
  std::transform(made.begin(), made.end(), made.begin(), [](unsigned char c) { return std::tolower(c); });
  return made;
}

/// A text line by line, and in each line field by field.
class line_reader {
 public:
  line_reader(std::string const& name, std::string_view text) : name_{name}, rest_{text} {}
  /// The part of a file from `rest` on; the line before it has number `line`.
  line_reader(line_reader const& file, std::string_view rest, u64 line)
      : name_{file.name_}, rest_{rest}, number_{line} {}

  /// The next line, without its end; false if there is none.
  bool next() {
    if (rest_.empty()) return false;
    auto const end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return true;
  }

  /// The next line that is neither blank nor a comment.
  bool next_data() {
    while (next()) {
      skip_space();
      if (!line_.empty() && line_.front() != '%') return true;
    }
    return false;
  }

  /// The next field of the line; empty if there is none.
  std::string_view field() {
    skip_space();
    auto const end = std::min(line_.find_first_of(" \t\r"), line_.size());
    auto const found = line_.substr(0, end);
    line_.remove_prefix(end);
    return found;
  }

  std::string_view line() const { return line_; }
  std::string_view rest() const { return rest_; }
  u64 number() const { return number_; }

  [[noreturn]] void fail(std::string const& fault) const {
    throw usage_error{fmt::format("{}:{}: {}", name_, std::max<u64>(number_, 1), fault)};
  }

 private:
  void skip_space() { line_.remove_prefix(std::min(line_.find_first_not_of(" \t\r"), line_.size())); }

  std::string const& name_;
  std::string_view rest_;
  std::string_view line_;
  u64 number_ = 0;
};

/// The contents of the banner.
struct banner {
  u32 values = 0;  ///< numbers after the two indices
  bool integers = false;
  bool directed = false;
};

banner read_banner(line_reader& reader) {
  if (!reader.next()) reader.fail("not a Matrix Market file: it is empty");
  if (lower(reader.line().substr(0, 14)) != "%%matrixmarket")
    reader.fail(
        fmt::format("not a Matrix Market file: it starts with '{}', not with %%MatrixMarket", excerpt(reader.line())));
  reader.field();
  auto const object = lower(reader.field()), format = lower(reader.field()), field = lower(reader.field()),
             symmetry = lower(reader.field());
  if (object != "matrix") reader.fail(fmt::format("the object is '{}', not a matrix", excerpt(object)));
  if (format != "coordinate") reader.fail(fmt::format("the format is '{}'; a graph needs coordinate", excerpt(format)));
  banner said;
  if (field == "real" || field == "double") said.values = 1;
  else if (field == "integer") said.values = 1, said.integers = true;
  else if (field == "complex") said.values = 2;
  else if (field != "pattern")
    reader.fail(fmt::format("the field is '{}'; there are pattern, real, integer and complex", excerpt(field)));
  said.directed = symmetry == "general";
  if (!said.directed && symmetry != "symmetric" && symmetry != "skew-symmetric" && symmetry != "hermitian")
    reader.fail(fmt::format("the symmetry is '{}'; there are general, symmetric, skew-symmetric and hermitian",
                            excerpt(symmetry)));
  return said;
}

u64 read_size(line_reader& reader, char const* what) {
  auto const text = reader.field();
  u64 value = 0;
  auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty()) reader.fail(fmt::format("the size line has no number of {}", what));
  if (error != std::errc{} || stop != text.data() + text.size())
    reader.fail(fmt::format("'{}' is not a number of {}", excerpt(text), what));
  return value;
}

/// The size line: how many vertices, and how many entries follow.
u64 read_size_line(line_reader& reader, edge_list& graph) {
  if (!reader.next_data()) reader.fail("the file ends before its size line");
  u64 const rows = read_size(reader, "rows"), columns = read_size(reader, "columns"),
            entries = read_size(reader, "entries");
  if (auto const more = reader.field(); !more.empty())
    reader.fail(fmt::format("the size line has '{}' after its three numbers", excerpt(more)));
  if (rows != columns) reader.fail(fmt::format("{} rows and {} columns: a graph's matrix is square", rows, columns));
  if (rows > most_vertices) reader.fail(fmt::format("{} vertices are more than {}", rows, most_vertices));
  graph.vertices = static_cast<u32>(rows);
  return entries;
}

u32 read_index(line_reader& reader, char const* what, u32 vertices) {
  auto const text = reader.field();
  if (text.empty()) reader.fail(fmt::format("the entry has no {}", what));
  i64 value = 0;
  auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || stop != text.data() + text.size())
    reader.fail(fmt::format("'{}' is not a {}", excerpt(text), what));
  if (error != std::errc{} || value < 1 || value > static_cast<i64>(vertices))
    reader.fail(fmt::format("{} {} is not between 1 and {}", what, excerpt(text), vertices));
  return static_cast<u32>(value - 1);
}

void check_value(line_reader& reader, bool integer) {
  auto const text = reader.field();
  if (text.empty()) reader.fail("the entry has no value");
  auto const begin = text.data() + (text.front() == '+'), end = text.data() + text.size();
  double real = 0;
  i64 whole = 0;
  auto const [stop, error] = integer ? std::from_chars(begin, end, whole) : std::from_chars(begin, end, real);
  if (error == std::errc::invalid_argument || stop != end)
    reader.fail(fmt::format("'{}' is not {} value", excerpt(text), integer ? "an integer" : "a real"));
}

edge read_entry(line_reader& reader, banner const& said, u32 vertices) {
  u32 const row = read_index(reader, "row", vertices), column = read_index(reader, "column", vertices);
  for (u32 i = 0; i < said.values; ++i) check_value(reader, said.integers);
  if (auto const more = reader.field(); !more.empty())
    reader.fail(fmt::format("'{}' follows a complete entry", excerpt(more)));
  return {row, column};
}

/// Lines that one task reads. `first_line` and `first_entry` are how many lines and entries come
/// before.
struct piece {
  std::string_view text;
  u64 first_line = 0;
  u64 first_entry = 0;
};

/// The rest of the file, in pieces. One more piece at the end has no text, and the numbers of all
/// lines and entries.
std::vector<piece> cut_at_lines(line_reader const& file, parallel_work& work) {
  constexpr size_t piece_bytes = size_t{1} << 20;
  std::vector<piece> pieces;
  for (auto rest = file.rest(); !rest.empty();) {
    auto const end = rest.find('\n', std::min(piece_bytes, rest.size()) - 1);
    auto const bytes = end == std::string_view::npos ? rest.size() : end + 1;
    pieces.push_back({rest.substr(0, bytes)});
    rest.remove_prefix(bytes);
  }
  pieces.emplace_back();
  // Each piece counts its own; then those before it are added.
  work.pass(pieces.size() - 1, [&](u64 i) {
    line_reader reader{file, pieces[i].text, 0};
    while (reader.next_data()) ++pieces[i + 1].first_entry;
    pieces[i + 1].first_line = reader.number();
  });
  pieces.front().first_line = file.number();
  for (size_t i = 1; i < pieces.size(); ++i) {
    pieces[i].first_line += pieces[i - 1].first_line;
    pieces[i].first_entry += pieces[i - 1].first_entry;
  }
  return pieces;
}

/// Reads all entries to their places. If there are several faults, the one in the first line is
/// thrown.
void read_pieces(line_reader const& file, banner const& said, u64 entries, std::vector<piece> const& pieces,
                 edge_list& graph, parallel_work& work) {
  std::vector<std::string> faults(pieces.size());
  work.pass(pieces.size(), [&](u64 i) {
    line_reader reader{file, pieces[i].text, pieces[i].first_line};
    try {
      for (u64 entry = pieces[i].first_entry; reader.next_data(); ++entry) {
        if (entry >= entries) reader.fail(fmt::format("an entry more than the {} that are promised", entries));
        graph.edges[entry] = read_entry(reader, said, graph.vertices);
      }
    } catch (usage_error const& fault) {
      faults[i] = fault.what();
    }
  });
  for (auto const& fault : faults)
    if (!fault.empty()) throw usage_error{fault};
}

}  // namespace

edge_list parse_matrix_market(std::string const& name, std::string_view text, parallel_work work) {
  line_reader reader{name, text};
  auto const said = read_banner(reader);
  edge_list graph;
  graph.directed = said.directed;
  u64 const entries = read_size_line(reader, graph);
  auto const pieces = cut_at_lines(reader, work);
  u64 const found = pieces.back().first_entry;
  graph.edges.resize(std::min(entries, found));  // a size line alone must not take memory
  read_pieces(reader, said, entries, pieces, graph, work);
  if (found < entries)
    line_reader{reader, {}, pieces.back().first_line}.fail(
        fmt::format("the file ends after {} of {} entries", found, entries));
  return graph;
}

edge_list read_matrix_market(std::string const& path, parallel_work work) {
  return parse_matrix_market(input_name(path), read_text_file(path, "graph --input -"), std::move(work));
}

}  // namespace warpheap::tool
