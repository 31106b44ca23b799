#pragma once

// An object of a store as a thing to write: the requests, one function each, for every kind of store
// (object_requests.h). How they go together is in upload.h: a small object is one request; a large one is begun, sent
// in parts, many at once, and completed, or taken back.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "io/file/output.h"
#include "io/remote/location.h"
#include "io/remote/object_part.h"

namespace penstock::io::remote {

/// That of a URL to write to. kInvalidArgument for one that names no object but a bucket or a folder.
Location parse_object(std::string_view url);
bool is_same_object(const Location& a, const Location& b) noexcept;

/// Whether it is there, as far as the keys may know: those that may write alone are told nothing, and then it is false
/// for Amazon's stores, which look again when it is written (Existing::kRefuse). The errors of reading.
bool object_exists(const Location& object);
void remove_object(const Location& object);

/// All of these try again as reading does; kCancelled within 50 ms of a stop (core::StopScope). The bytes travel with a
/// checksum that the store compares: CRC-32, and MD5 for Google's and Azure's, which do not know that.
///
/// Where these two fail, `may_be_there` says whether the object may be there all the same: false where every try was
/// refused by the store, or did not reach it.
void put_object(const Location& object, std::span<const std::byte> bytes, Existing existing, bool& may_be_there);

/// The id of an upload in parts; Azure's stores are not asked for one.
std::string begin_parts(const Location& object);
/// `number` counts from 1.
UploadedPart put_part(const Location& object, const std::string& id, std::size_t number,
                      std::span<const std::byte> bytes);
/// The object appears.
void complete_parts(const Location& object, const std::string& id, std::span<const UploadedPart> parts,
                    Existing existing, bool& may_be_there);
/// Its parts go. A few short tries, also after a stop; whether one succeeded. Azure's stores take parts back by
/// themselves.
bool abort_parts(const Location& object, const std::string& id) noexcept;

}  // namespace penstock::io::remote
