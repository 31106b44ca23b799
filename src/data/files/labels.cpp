// Labels from a table, joined by file name. The table's names go into a map; each file looks for the longest end of its
// path that is one of them, with its extension and without.
#include "penstock/labels.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "core/counted.h"
#include "core/format.h"
#include "core/parse_number.h"
#include "core/refuse.h"
#include "core/text.h"
#include "data/dataset_impl.h"
#include "data/files/class_folders.h"
#include "data/files/path_name.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock {

namespace {

using Table = std::vector<std::pair<std::string, std::string>>;

using core::refuse;

/// The lines of a CSV file, as fields.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : rest_(text) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    if (rest_.starts_with(kMark)) rest_.remove_prefix(kMark.size());
    if (rest_.starts_with("\xFF\xFE") || rest_.starts_with("\xFE\xFF")) refuse("the table is UTF-16; save it as UTF-8");
    if (rest_.find('\0') != rest_.npos) refuse("the table has a zero byte, which no text has; save it as CSV in UTF-8");
  }

  /// Nothing at the end. Lines without any text are left out.
  std::optional<std::vector<std::string>> next() {
    while (!rest_.empty()) {
      std::vector<std::string> fields = line();
      if (fields.size() > 1 || !fields[0].empty()) return fields;
    }
    return std::nullopt;
  }
  /// Of the line that `next` gave, counted from 1.
  std::size_t number() const noexcept { return began_; }

 private:
  std::vector<std::string> line() {
    began_ = ++number_;
    std::vector<std::string> fields;
    do {
      fields.push_back(rest_.starts_with('"') ? quoted_field() : plain_field());
    } while (take(','));
    const bool ended = take('\r');  // some programs end lines with nothing else
    if (!take('\n') && !ended && !rest_.empty()) {
      refuse(core::format("line {} has text behind a closing quote", began_));
    }
    return fields;
  }

  std::string plain_field() {
    const std::size_t end = std::min(rest_.find_first_of(",\r\n"), rest_.size());
    std::string out(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return out;
  }

  std::string quoted_field() {
    std::string out;
    rest_.remove_prefix(1);
    while (!rest_.empty()) {
      const char at = rest_.front();
      rest_.remove_prefix(1);
      if (at == '"' && !take('"')) return out;
      if (at == '\n') ++number_;
      out += at;
    }
    refuse(core::format("line {} has a quote that is not closed", began_));
  }

  bool take(char wanted) {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view rest_;
  std::size_t number_ = 0;
  std::size_t began_ = 0;
};

std::size_t column_of(const std::vector<std::string>& header, const std::string& wanted, std::size_t otherwise) {
  if (wanted.empty()) {
    if (otherwise < header.size()) return otherwise;
    refuse("the first line has one column, expected the names of two: of the files, and of their labels");
  }
  const auto found = std::find(header.begin(), header.end(), wanted);
  if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
  const std::string hint = core::did_you_mean(core::nearest_names(wanted, header));
  refuse(core::format("the first line names no column {}{}{}", core::quoted(wanted), hint.empty() ? "" : "; ", hint));
}

Table read_table(std::string_view text, const LabelOptions& options) {
  CsvReader reader(text);
  const auto header = reader.next();
  if (!header) refuse("the table is empty, expected a line with the names of its columns, and one for each file");
  const std::size_t file = column_of(*header, options.file, 0);
  const std::size_t label = column_of(*header, options.label, file == 1 && options.label.empty() ? 0 : 1);
  Table out;
  while (auto fields = reader.next()) {
    // Empty columns at the end are what spreadsheets leave; others are a comma too many, perhaps that of a number.
    while (fields->size() > header->size() && fields->back().empty()) fields->pop_back();
    if (std::max(file, label) >= fields->size() || fields->size() > header->size()) {
      refuse(core::format("line {} has {}, and the first line {}", reader.number(),
                          core::counted(fields->size(), "column"), header->size()));
    }
    out.emplace_back(std::move((*fields)[file]), std::move((*fields)[label]));
  }
  return out;
}

/// Up to a zero byte, because no more of what is no text has to be in memory, such as a hole of terabytes.
std::string text_of(const Source& source) {
  constexpr std::size_t kPiece = std::size_t{16} << 20;
  std::string text;
  std::size_t read = 0;
  while (read < source.size() && text.find('\0', read - std::min(read, kPiece)) == text.npos) {
    text.resize(read + static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, source.size() - read)));
    source.read(read, std::as_writable_bytes(std::span(text).subspan(read)));
    read = text.size();
  }
  return text;
}

using ByName = std::unordered_map<std::string_view, std::string_view>;

std::string_view without_here(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  return path;
}

ByName by_name(const Table& table) {
  ByName out;
  for (const auto& [name, label] : table) {
    const auto [known, is_new] = out.emplace(without_here(name), label);
    if (is_new || known->second == label) continue;
    refuse(core::format("the table has two labels for {}: {} and {}", core::quoted(name),
                        core::quoted(std::string(known->second)), core::quoted(label)));
  }
  return out;
}

/// The label of the longest end of the path that has one.
std::optional<std::string_view> label_of(std::string_view path, const ByName& labels) {
  while (true) {
    for (const std::string_view name : {path, data::without_extension(path)}) {
      if (const auto found = labels.find(name); found != labels.end()) return found->second;
    }
    const std::size_t slash = path.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    path.remove_prefix(slash + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::vector<std::string_view> joined(const std::vector<std::string>& paths, const ByName& labels) {
  std::vector<std::string_view> out;
  for (const std::string& path : paths) {
    const auto label = label_of(path, labels);
    if (!label) {
      throw Error(
          ErrorCode::kInvalidArgument,
          core::format("the table, which has {} below the names of its columns, has no label for the file; name it "
                       "there, or leave the file out with exclude or subset",
                       core::counted(labels.size(), "name")),
          {.path = path});
    }
    if (trimmed(*label).empty()) {
      throw Error(ErrorCode::kInvalidArgument,
                  "the table has an empty label for the file; fill it in, or leave the file out with exclude or subset",
                  {.path = path});
    }
    out.push_back(*label);
  }
  return out;
}

/// A number as people write it, with blanks around it or a plus before it.
std::string_view as_number(std::string_view text) {
  text = trimmed(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <class Number>
std::optional<std::vector<Number>> numbers_in(const std::vector<std::string_view>& texts) {
  std::vector<Number> out;
  for (const std::string_view written : texts) {
    const auto number = core::parse_number<Number>(as_number(written));
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

/// As floats, labels that are whole numbers of more than 64 bits would lose digits, and some become one.
void require_few_digits(const std::vector<std::string_view>& texts) {
  for (const std::string_view written : texts) {
    const std::string_view text = as_number(written);
    std::int64_t number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc::result_out_of_range || end != text.data() + text.size()) continue;
    refuse(core::format("the label {} does not fit in 64 bits; where it is a name, write it with a letter",
                        core::quoted(std::string(text))));
  }
}

/// Numbers of the names in their order.
std::vector<std::int64_t> numbered(const std::vector<std::string_view>& names, std::vector<std::string>& classes) {
  classes.assign(names.begin(), names.end());
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  std::vector<std::int64_t> out;
  for (const std::string_view name : names) {
    out.push_back(std::lower_bound(classes.begin(), classes.end(), name) - classes.begin());
  }
  return out;
}

Dataset with_texts(const Dataset& dataset, const std::vector<std::string_view>& texts) {
  std::vector<std::string> classes;
  std::function<Value(std::int64_t)> label;
  const auto size = static_cast<std::int64_t>(texts.size());
  if (auto floats = numbers_in<std::int64_t>(texts) ? std::nullopt : numbers_in<double>(texts)) {
    require_few_digits(texts);
    label = [all = std::move(*floats)](std::int64_t i) { return Value::real(all[static_cast<std::size_t>(i)]); };
  } else {
    auto integers = numbers_in<std::int64_t>(texts);
    if (!integers) integers = numbered(texts, classes);
    label = [all = std::move(*integers)](std::int64_t i) { return Value::integer(all[static_cast<std::size_t>(i)]); };
  }
  return data::labelled(dataset, penstock::dataset(size, std::move(label)), std::move(classes));
}

}  // namespace

Dataset with_labels(const Dataset& dataset, const std::vector<std::pair<std::string, std::string>>& table) {
  const std::vector<std::string> paths = dataset.paths();
  return with_texts(dataset, joined(paths, by_name(table)));
}

Dataset with_labels(const Dataset& dataset, TextView table, const LabelOptions& options) {
  const std::string text = text_of(open_source(table));
  const Table rows = [&] {
    try {
      return read_table(text, options);
    } catch (const Error& error) {
      throw error.within({.path = std::string(table)});
    }
  }();
  return with_labels(dataset, rows);
}

}  // namespace penstock
