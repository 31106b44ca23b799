#include "data/pack/new_prefix.h"

#include <algorithm>
#include <utility>

#include "format/save_with.h"
#include "io/file/output_set.h"
#include "io/remote/list.h"
#include "io/remote/location.h"
#include "penstock/error.h"

namespace penstock::data {

void require_new_prefix(const std::string& url) {
  const io::remote::Location place = io::remote::parse(url);
  const io::remote::Objects found = io::remote::list_objects(place, place.key, false);
  // Some programs put an empty object in a folder's place.
  const bool only_folder = std::all_of(found.objects.begin(), found.objects.end(),
                                       [&place](const auto& object) { return object.key == place.key; });
  if (only_folder && found.folders.empty()) return;
  throw Error(ErrorCode::kInvalidArgument, "there are objects below this prefix already; name another one",
              {.path = url});
}

NewPrefix::NewPrefix(const std::string& url) : url_(url.ends_with('/') ? url : url + '/') { require_new_prefix(url_); }

std::uint64_t NewPrefix::save(const Value& value, const std::string& name, const SaveOptions& options) {
  Object object{.url = url_ + name, .output = nullptr};
  object.output = format::prepare_save(value, object.url, options, {.existing = io::Existing::kRefuse});
  const std::uint64_t bytes = object.output->position();
  objects_.push_back(std::move(object));
  return bytes;
}

void NewPrefix::commit() {
  io::OutputSet all;
  for (std::size_t i = 0; i + 1 < objects_.size(); ++i) all.commit(objects_[i].url, *objects_[i].output);
  if (!objects_.empty()) all.commit_last(*objects_.back().output);
  objects_.clear();
}

}  // namespace penstock::data
