#pragma once

// What a listing of a bucket has (list.h).

#include <cstdint>
#include <string>
#include <vector>

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

/// An upload in parts that was begun and neither completed nor taken back.
struct Begun {
  std::string key;
  std::string id;
  std::string when;  ///< "2026-01-02T03:04:05.000Z"
};

}  // namespace penstock::io::remote
