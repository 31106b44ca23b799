#pragma once

// Pickles put together by hand, of protocol 2 unless an opcode says otherwise, and `.pt` archives around them.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/zip_builder.h"

namespace penstock::test {

/// Each gives the opcodes that push one object.
namespace pickled {

using namespace std::string_literals;

inline std::string text(std::string_view utf8) {
  std::string out = "X";
  put(out, static_cast<std::uint32_t>(utf8.size()));
  return out.append(utf8);
}
inline std::string bytes(std::string_view raw) {
  std::string out = "B";
  put(out, static_cast<std::uint32_t>(raw.size()));
  return out.append(raw);
}
inline std::string integer(std::int64_t value) {
  std::string out = "\x8a\x08"s;
  put(out, value);
  return out;
}
inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string joined(std::initializer_list<std::string> items) {
  std::string out;
  for (const std::string& item : items) out += item;
  return out;
}
inline std::string tuple(std::initializer_list<std::string> items) { return "(" + joined(items) + "t"; }
inline std::string list(std::initializer_list<std::string> items) { return "](" + joined(items) + "e"; }
/// Keys and values in turn.
inline std::string dict(std::initializer_list<std::string> items) { return "}(" + joined(items) + "u"; }
inline std::string call(const std::string& callable, std::initializer_list<std::string> arguments) {
  return callable + tuple(arguments) + "R";
}
inline std::string integers(const std::vector<std::int64_t>& values) {
  std::string out = "(";
  for (const std::int64_t value : values) out += integer(value);
  return out + "t";
}
inline std::string ordered_dict() { return call(global("collections", "OrderedDict"), {}); }
/// A reference to a storage; `type` as "FloatStorage".
inline std::string storage(std::string_view type, std::string_view key, std::int64_t numel) {
  const std::string_view module = type == "UntypedStorage" ? "torch.storage" : "torch";
  return tuple({text("storage"), global(module, type), text(key), text("cpu"), integer(numel)}) + "Q";
}
inline std::string tensor(const std::string& storage, std::int64_t offset, const std::vector<std::int64_t>& shape,
                          const std::vector<std::int64_t>& strides, const std::string& requires_grad = "\x89"s) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              {storage, integer(offset), integers(shape), integers(strides), requires_grad, ordered_dict()});
}
/// The whole pickle of one object.
inline std::string whole(const std::string& object) { return "\x80\x02" + object + "."; }

}  // namespace pickled

/// A `.pt` with this pickle and these storages, "0", "1" ..., in the folder `prefix`.
inline std::vector<ZipMember> pt_members(const std::string& pickle, const std::vector<std::string>& storages = {},
                                         const std::string& prefix = "archive") {
  std::vector<ZipMember> members;
  members.push_back({.name = prefix + "/data.pkl", .data = pickle});
  members.push_back({.name = prefix + "/byteorder", .data = "little"});
  for (std::size_t i = 0; i < storages.size(); ++i) {
    members.push_back({.name = prefix + "/data/" + std::to_string(i), .data = storages[i]});
  }
  members.push_back({.name = prefix + "/version", .data = "3\n"});
  return members;
}
inline std::string pt_file(const std::string& object, const std::vector<std::string>& storages = {}) {
  return build_zip(pt_members(pickled::whole(object), storages));
}

}  // namespace penstock::test
