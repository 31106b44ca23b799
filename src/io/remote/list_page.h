#pragma once

// A page of a listing: what each kind of store asks for one with, and how it is read. list.cpp goes from page to page;
// s3_list.cpp and azure_list.cpp know how their stores write them.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/remote/listed.h"
#include "io/remote/location.h"
#include "io/remote/signature.h"

namespace penstock::io::remote {

/// How a kind of store lists: a member of its row in the table of stores.
struct Listing {
  /// That of a page, the first where `token` is empty.
  Query (*query)(std::string_view prefix, bool deep, const std::string& token);
  /// Adds what the page has, and gives the token of the next; empty behind the last. `name` is for errors.
  std::string (*read)(const std::string& xml, const std::string& name, std::string_view prefix, Objects& out);
  /// As list_uploads (list.h); null where a store keeps no list of them.
  std::vector<Begun> (*uploads)(const Location& bucket, std::string_view prefix) = nullptr;
};

/// The text that a store answers with; the errors of reading.
std::string page_of(const Location& bucket, const Query& query);

/// kIo unless the text is a whole element of that name: a list that is cut would look like a shorter one. No store
/// declares entities, which would be names in keys.
void require_whole(const std::string& xml, std::string_view tag, const std::string& name);
/// The key, where it begins with the prefix; kIo where the store lists what was not asked for, because whoever asked
/// cuts the prefix off.
std::string wanted_key(std::string key, std::string_view prefix, const std::string& name);
/// "123" of an object's size. kIo for what is none.
std::uint64_t size_from(const std::string& text, const std::string& name);

/// Notices a store whose list has no end: one that gives a token again, lists a page again, or gives pages without
/// anything for ever.
class PagesSeen {
 public:
  explicit PagesSeen(const std::string& name) : name_(name) {}

  /// `first` is the first object of a page, empty where it has none, `is_empty` whether it has no folder either;
  /// `token` is that of the next page, empty behind the last. kIo.
  void add(const std::string& first, bool is_empty, const std::string& token);

 private:
  const std::string& name_;
  std::set<std::string> firsts_;
  std::set<std::string> tokens_;
  std::size_t empty_ = 0;  ///< pages in a row
};

}  // namespace penstock::io::remote
