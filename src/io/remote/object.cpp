#include "io/remote/object.h"

#include <stop_token>

#include "core/format.h"
#include "core/stop_scope.h"
#include "io/remote/fetch.h"
#include "io/remote/object_requests.h"
#include "io/remote/store.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

constexpr int kAbortTries = 3;

const Writing& writing_of(const Location& object) {
  if (const Writing* const writing = store_of(object.kind).writing) return *writing;
  throw Error(ErrorCode::kUnsupported, "this URL can be read and not written", {.path = object.shown});
}

}  // namespace

Location parse_object(std::string_view url) {
  Location object = parse(url);
  if (!object.key.empty() && !object.key.ends_with('/')) return object;
  throw Error(ErrorCode::kIsDirectory,
              core::format("this names {} where an object is to be written; add a name to it",
                           object.key.empty() ? "a bucket" : "a folder of a bucket"),
              {.path = object.shown});
}

bool is_same_object(const Location& a, const Location& b) noexcept {
  return a.kind == b.kind && a.url == b.url && a.bucket == b.bucket && a.endpoint == b.endpoint && a.key == b.key;
}

bool object_exists(const Location& object) {
  static_cast<void>(writing_of(object));
  return head_of(object, true).has_value();
}

void remove_object(const Location& object) {
  Exchange exchange = exchange_for(object, {.method = "DELETE"});
  run({&exchange, 1});
}

void put_object(const Location& object, std::span<const std::byte> bytes, Existing existing, bool& may_be_there) {
  writing_of(object).put(object, bytes, existing, may_be_there);
}

std::string begin_parts(const Location& object) { return writing_of(object).begin(object); }

UploadedPart put_part(const Location& object, const std::string& id, std::size_t number,
                      std::span<const std::byte> bytes) {
  return writing_of(object).put_part(object, id, number, bytes);
}

void complete_parts(const Location& object, const std::string& id, std::span<const UploadedPart> parts,
                    Existing existing, bool& may_be_there) {
  writing_of(object).complete(object, id, parts, existing, may_be_there);
}

bool abort_parts(const Location& object, const std::string& id) noexcept {
  try {
    const auto abort = writing_of(object).abort;
    if (abort == nullptr) return true;
    // A stop that was asked of this thread is why it is called.
    const std::stop_source never;
    const std::stop_token token = never.get_token();
    const core::StopScope scope(token);
    for (int i = 0; i < kAbortTries; ++i) {
      Exchange exchange = abort(object, id);
      exchange.patient = false;
      run_all({&exchange, 1});
      if (!exchange.error || exchange.answer.status == 404) return true;
    }
  } catch (const std::exception&) {
    // Rules of the bucket end it.
  }
  return false;
}

}  // namespace penstock::io::remote
