// Several files for each sample, whose paths follow from that of one of them: a zip of lists of files.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "core/shown_url.h"
#include "core/text.h"
#include "core/url_scheme.h"
#include "data/dataset_impl.h"
#include "data/files/absent.h"
#include "data/files/named_after.h"
#include "data/files/path_template.h"
#include "penstock/error.h"
#include "penstock/join.h"

namespace penstock {

namespace {

using core::refuse;

struct Field {
  std::string name;
  std::vector<std::string> paths;
};
using Fields = std::vector<Field>;

const FilesOptions& options_of(const Dataset& dataset) {
  const FilesOptions* const options = dataset.impl().file_options();
  if (options == nullptr) {
    refuse(
        "fields are derived from files(), and from what subset, concat and the like make of them; functions of map, "
        "transforms, class_folders and other types come behind the fields");
  }
  if (!options->keys.empty()) {
    refuse("the files have keys=, which fields would leave unheeded; take them out of files()");
  }
  return *options;
}

Fields derived(const Dataset& dataset, const std::vector<std::pair<std::string, std::string>>& templates) {
  if (templates.empty()) refuse("found no fields; give one name and template or more");
  const detail::DatasetImpl& files = dataset.impl();
  Fields out;
  for (const auto& [name, text] : templates) {
    const data::PathTemplate path(text);
    Field& field = out.emplace_back(Field{name, {}});
    field.paths.reserve(static_cast<std::size_t>(dataset.size()));
    for (std::int64_t i = 0; i < dataset.size(); ++i) {
      field.paths.push_back(path.of(files.path(i), files.root_size(i)));
    }
  }
  return out;
}

/// Samples of which a file is not there.
class Gaps {
 public:
  explicit Gaps(const Fields& fields) : absent_(fields.front().paths.size(), false) {
    data::FolderLists lists;
    for (const Field& field : fields) add(field, lists.absent(field.paths));
  }

  bool any() const noexcept { return count_ > 0; }
  bool at(std::int64_t i) const { return absent_[static_cast<std::size_t>(i)]; }
  [[noreturn]] void tell() const {
    throw Error(
        ErrorCode::kNotFound,
        core::format("{} that fields derive {} not there: {}{}; check the templates, add the files, or leave "
                     "their samples out (missing: drop)",
                     core::counted(count_, "file"), count_ == 1 ? "is" : "are", shown_, count_ > kShown ? ", ..." : ""),
        {.path = first_});
  }

 private:
  static constexpr std::uint64_t kShown = 3;

  void add(const Field& field, const std::vector<bool>& absent) {
    for (std::size_t i = 0; i < absent.size(); ++i) {
      if (!absent[i]) continue;
      absent_[i] = true;
      if (count_ == 0) first_ = field.paths[i];
      if (count_ < kShown) {
        shown_ += core::format("{}{} ({})", count_ == 0 ? "" : ", ", core::escaped(core::shown_path(field.paths[i])),
                               core::escaped(field.name));
      }
      ++count_;
    }
  }

  std::vector<bool> absent_;
  std::uint64_t count_ = 0;
  std::string shown_;
  std::string first_;
};

void require_told(const Fields& fields) {
  for (const Field& field : fields) {
    for (const std::string& path : field.paths) {
      if (data::FolderLists::can_tell(path)) continue;
      throw Error(
          ErrorCode::kUnsupported,
          core::format("nobody can list this URL to find out which files are there, so that their samples could be "
                       "left out; only buckets ({}) and folders of this machine can be listed",
                       core::store_schemes("and")),
          {.path = path});
    }
  }
}

/// Leaves out, or refuses, samples with gaps.
Dataset without_gaps(const Dataset& dataset, Fields& fields, Missing missing) {
  const Gaps gaps(fields);
  if (!gaps.any()) return dataset;
  if (missing == Missing::kError) gaps.tell();
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    if (!gaps.at(i)) kept.push_back(i);
  }
  if (kept.empty()) gaps.tell();
  for (Field& field : fields) {
    std::vector<std::string> rest;
    for (const std::int64_t i : kept) rest.push_back(std::move(field.paths[static_cast<std::size_t>(i)]));
    field.paths = std::move(rest);
  }
  return subset(dataset, std::move(kept));
}

void require_names(const std::vector<std::string>& raw, const Fields& fields) {
  for (const std::string& name : raw) {
    if (std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; })) continue;
    std::vector<std::string> names;
    for (const Field& field : fields) names.push_back(field.name);
    const std::string hint = core::did_you_mean(core::nearest_names(name, names));
    refuse(core::format("raw names {}, which is no field{}{}", core::quoted(name), hint.empty() ? "" : "; ", hint));
  }
}

}  // namespace

Dataset fields(const Dataset& dataset, const std::vector<std::pair<std::string, std::string>>& templates,
               const FieldsOptions& options) {
  const FilesOptions& listed = options_of(dataset);
  const bool drops = options.missing == Missing::kDrop;
  if (drops && !options.check) refuse("missing files are left out only where they are looked for; leave check on");
  Fields derived_fields = derived(dataset, templates);
  if (options.raw) require_names(*options.raw, derived_fields);
  if (drops && listed.source) {
    throw Error(
        ErrorCode::kUnsupported,
        "files that the program opens by a function of its own cannot be looked for, so that none are left out");
  }
  if (drops) require_told(derived_fields);
  Dataset kept = dataset;
  if (options.check && !listed.source) kept = without_gaps(dataset, derived_fields, options.missing);
  std::vector<std::pair<std::string, Dataset>> parts;
  for (Field& field : derived_fields) {
    const bool raw = options.raw ? std::find(options.raw->begin(), options.raw->end(), field.name) != options.raw->end()
                                 : bool{listed.raw};
    FilesOptions opened;
    opened.raw = raw;
    opened.source = listed.source;
    parts.emplace_back(field.name, files(std::exchange(field.paths, {}), opened));
  }
  return data::named_after(std::move(kept), zip(parts, {.compare_names = false, .warn = {}}));
}

}  // namespace penstock
