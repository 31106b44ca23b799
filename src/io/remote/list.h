#pragma once

// What lies in a bucket, by as many requests as it takes: for patterns of datasets, folders of checkpoints, `penstock
// ls` and `penstock uploads`.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/remote/location.h"

namespace penstock::io::remote {

/// An object of a bucket.
struct Object {
  std::string key;
  std::uint64_t size = 0;
};

struct Objects {
  std::vector<Object> objects;
  std::vector<std::string> folders;  ///< what keys have up to the next '/' behind the prefix, with it
};

/// The objects whose keys begin with `prefix`, ordered bytewise by key: all of them (`deep`), or those without another
/// '/', and the folders beside them. One request for each thousand. The errors of reading; kUnsupported for a location
/// in no bucket.
Objects list_objects(const Location& bucket, std::string_view prefix, bool deep);

/// An upload in parts that was begun and neither completed nor taken back.
struct Begun {
  std::string key;
  std::string id;
  std::string when;  ///< "2026-01-02T03:04:05.000Z"
};

/// Those whose keys begin with `prefix`, all of them, in the store's order.
std::vector<Begun> list_uploads(const Location& bucket, std::string_view prefix);

}  // namespace penstock::io::remote
