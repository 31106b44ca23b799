#include "cli/inspect/file_pairs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include "cli/tensor_files.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"

namespace penstock::cli {
namespace {

/// What a file is called in a folder of other formats. An index is called by both of its extensions.
std::string stem_of(const std::string& name) {
  std::filesystem::path path(name);
  return path.replace_extension().string();
}

using Places = std::map<std::string, std::vector<std::size_t>>;

/// Pairs those of both that have one name each, and takes them out.
template <class NameOf>
void pair_by(TensorFiles& a, TensorFiles& b, const NameOf& name_of, FilePairs& out) {
  Places of_a;
  Places of_b;
  for (std::size_t i = 0; i < a.names.size(); ++i) of_a[name_of(a.names[i])].push_back(i);
  for (std::size_t i = 0; i < b.names.size(); ++i) of_b[name_of(b.names[i])].push_back(i);
  std::vector<bool> gone_a(a.names.size());
  std::vector<bool> gone_b(b.names.size());
  for (const auto& [name, in_a] : of_a) {
    const auto found = of_b.find(name);
    if (found == of_b.end() || in_a.size() != 1 || found->second.size() != 1) continue;
    const std::size_t other = found->second.front();
    out.pairs.push_back({a.names[in_a.front()], a.paths[in_a.front()], b.paths[other]});
    gone_a[in_a.front()] = true;
    gone_b[other] = true;
  }
  const auto keep = [](TensorFiles& files, const std::vector<bool>& gone) {
    TensorFiles left;
    for (std::size_t i = 0; i < gone.size(); ++i) {
      if (gone[i]) continue;
      left.names.push_back(std::move(files.names[i]));
      left.paths.push_back(std::move(files.paths[i]));
    }
    files = std::move(left);
  };
  keep(a, gone_a);
  keep(b, gone_b);
}

/// The file among several that one file is compared with.
std::string partner(const TensorFiles& several, const std::string& where, const std::string& name) {
  if (several.paths.size() == 1) return several.paths.front();
  const auto found = std::find(several.names.begin(), several.names.end(), name);
  if (found != several.names.end()) return several.paths[static_cast<std::size_t>(found - several.names.begin())];
  throw Error(ErrorCode::kNotFound,
              core::format("it has {} and none called {}; name the one to compare with",
                           core::counted(several.paths.size(), "tensor file"), core::quoted(name)),
              {.path = where});
}

}  // namespace

FilePairs pair_files(const std::string& a, const std::string& b, const std::vector<std::string>& exclude) {
  TensorFiles of_a = tensor_files(a, exclude);
  TensorFiles of_b = tensor_files(b, exclude);
  FilePairs out;
  out.refused = std::move(of_a.refused);
  std::move(of_b.refused.begin(), of_b.refused.end(), std::back_inserter(out.refused));
  out.is_single = of_a.is_single || of_b.is_single;
  if (out.is_single) {
    const std::string from = of_a.is_single ? of_a.paths.front() : partner(of_a, a, of_b.names.front());
    const std::string to = of_b.is_single ? of_b.paths.front() : partner(of_b, b, of_a.names.front());
    out.pairs.push_back({{}, from, to});
    return out;
  }
  pair_by(
      of_a, of_b, [](const std::string& name) { return name; }, out);
  pair_by(of_a, of_b, stem_of, out);
  std::sort(out.pairs.begin(), out.pairs.end(), [](const FilePair& x, const FilePair& y) { return x.name < y.name; });
  out.only_in_a = std::move(of_a.names);
  out.only_in_b = std::move(of_b.names);
  return out;
}

}  // namespace penstock::cli
