#include "data/files/class_folders.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "data/files/path_name.h"
#include "data/forwarding.h"
#include "io/locations.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string class_of(const std::string& path, std::size_t root_size) {
  const std::size_t end = path.find('/', root_size);
  if (end != std::string::npos && end > root_size) return path.substr(root_size, end - root_size);
  const std::string root = path.substr(0, root_size);
  throw Error(ErrorCode::kInvalidArgument,
              core::format("the file lies in no class's folder below {}; files with classes are found by patterns like "
                           "'train/*/*.pt'",
                           root.empty() ? "the working folder" : core::quoted(root)),
              {.path = path});
}

/// Zipped with their labels, which may be the numbers of classes; each is still a file.
class Classified final : public Forwarding {
 public:
  Classified(Dataset files, Dataset pairs, std::vector<std::string> classes)
      : Forwarding(std::move(files)), pairs_(std::move(pairs)), classes_(std::move(classes)) {}

  bool samples_are_files() const noexcept override { return true; }
  std::span<const std::string> classes() const noexcept override { return classes_; }
  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<Sample> out) const override {
    const detail::DatasetImpl& fetched = work.call.headers_only ? below() : pairs_.impl();
    fetched.fetch(indices, work.with(work.slots.handed_on(this, &fetched)), out);
  }
  Value value(std::int64_t index, const Work& work) const override { return pairs_.impl().value(index, work); }

 private:
  Dataset pairs_;
  std::vector<std::string> classes_;
};

}  // namespace

ClassFolders class_folders(const Dataset& files) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(files.size()));
  for (std::int64_t i = 0; i < files.size(); ++i) {
    names.push_back(class_of(files.impl().path(i), files.impl().root_size(i)));
  }
  ClassFolders out{.classes = names, .numbers = {}};
  std::sort(out.classes.begin(), out.classes.end());
  out.classes.erase(std::unique(out.classes.begin(), out.classes.end()), out.classes.end());
  out.numbers.reserve(names.size());
  for (const std::string& name : names) {
    const auto at = std::lower_bound(out.classes.begin(), out.classes.end(), name);
    out.numbers.push_back(static_cast<std::int32_t>(at - out.classes.begin()));
  }
  return out;
}

Dataset with_class_folders(Dataset files) {
  ClassFolders found = class_folders(files);
  const Dataset labels = dataset(files.size(), [numbers = std::move(found.numbers)](std::int64_t i) {
    return Value::integer(numbers[static_cast<std::size_t>(i)]);
  });
  return labelled(std::move(files), labels, std::move(found.classes));
}

Dataset labelled(Dataset files, const Dataset& labels, std::vector<std::string> classes) {
  Dataset pairs = zip(files, labels);
  return Dataset(std::make_shared<Classified>(std::move(files), std::move(pairs), std::move(classes)));
}

std::string class_root(std::string_view pattern) {
  const std::string text(pattern);
  if (is_folder(text)) return text.ends_with('/') ? text : text + '/';
  std::string root = text.substr(0, io::root_size(text));
  for (std::size_t begin = root.size(), end = 0; (end = text.find('/', begin)) != std::string::npos; begin = end + 1) {
    const std::string part = text.substr(begin, end - begin);
    if (part.empty()) continue;  // as in the paths that are found: "train//" is "train/"
    if (part.find_first_of("*?[") != std::string::npos && !is_folder(root + part)) break;
    root += part + '/';
  }
  return root;
}

std::string shared_folder(const PathTable& paths) {
  if (paths.size() == 0) return "";
  std::string path = paths.path(0);
  std::string root{PathName{path}.folder};
  for (std::int64_t i = 1; i < paths.size(); ++i) {
    paths.path(i, path);
    while (!path.starts_with(root)) root.resize(root.size() < 2 ? 0 : root.rfind('/', root.size() - 2) + 1);
  }
  return root;
}

}  // namespace penstock::data
