#pragma once

// What writing to any kind of store is made of: a request for an object, and how a write whose answer was lost is told
// from one that failed. s3_object.cpp and azure_object.cpp write by it.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/file/output.h"
#include "io/remote/exchange.h"
#include "io/remote/location.h"
#include "io/remote/object_part.h"
#include "io/remote/store.h"

namespace penstock::io::remote {

inline constexpr std::string_view kObjectType = "application/octet-stream";

/// How a kind of store is written to: a member of its row in the table of stores. Each is described at the function of
/// its name in object.h.
struct Writing {
  void (*put)(const Location& object, std::span<const std::byte> bytes, Existing existing, bool& may_be_there);
  std::string (*begin)(const Location& object);
  UploadedPart (*put_part)(const Location& object, const std::string& id, std::size_t number,
                           std::span<const std::byte> bytes);
  void (*complete)(const Location& object, const std::string& id, std::span<const UploadedPart> parts,
                   Existing existing, bool& may_be_there);
  /// One try. Null: nobody has to take anything back.
  Exchange (*abort)(const Location& object, const std::string& id) = nullptr;
  /// Whether it refuses to replace an object where it is asked to, so that looking before is not needed.
  bool refuses_existing = true;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

/// `object` must outlive it.
Exchange exchange_for(const Location& object, Ask ask);

/// The answer to HEAD; nothing where there is no object, or none that can be seen. Not `patient`: one short try, and
/// nothing whatever it ends by.
std::optional<Answer> head_of(const Location& object, bool patient);

/// Puts the condition into the headers that nothing is replaced; of a store that does not know it, looks.
void refuse_existing(const Location& object, Existing existing, Headers& headers);

/// Runs it; where a try may have been carried out, an object that `is_ours` is what was wanted.
void run_until_there(Exchange& exchange, const std::function<bool()>& is_ours, bool& may_be_there);

std::string xml_encoded(std::string_view text);
std::string md5_text(std::span<const std::byte> bytes);

}  // namespace penstock::io::remote
