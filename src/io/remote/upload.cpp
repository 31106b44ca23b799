// Bytes are collected until they are one part. Only when more come is it known that the object takes parts: then the
// upload begins, and each part goes to the threads when it is full (part_sender.h). Parts come in any order: where the
// beginning is known last, it is sent last.

#include "io/remote/upload.h"

#include <algorithm>
#include <utility>

#include "core/checked.h"
#include "core/stop_scope.h"
#include "penstock/error.h"

namespace penstock::io::remote {

Upload::Upload(Location object, OutputOptions options, bool changes_front)
    : object_(std::move(object)), options_(std::move(options)), changes_front_(changes_front) {}

Upload::Upload(Location object, PreparedParts prepared, Existing existing)
    : object_(std::move(object)),
      options_{.existing = existing},
      changes_front_(false),
      id_(std::move(prepared.id)),
      parts_(std::move(prepared.parts)) {}

Upload::~Upload() {
  if (core::forks() != forks_) {
    // Its threads are in another process, which goes on with the upload.
    [[maybe_unused]] PartSender* const theirs = sender_.release();
    return;
  }
  // Parts that arrive behind the request to take them back would stay.
  sender_.reset();
  if (!id_.empty()) abort_parts(object_, id_);
}

void Upload::require_own_process() const {
  if (core::forks() == forks_) return;
  throw Error(ErrorCode::kInvalidArgument, "the upload was begun before this process was forked; begin another one",
              {.path = object_.shown});
}

void Upload::write(std::span<const std::byte> bytes) {
  require_own_process();
  if (parts_) throw Error(ErrorCode::kInvalidArgument, "the object is complete already", {.path = object_.shown});
  position_ = core::checked_add<std::uint64_t>(position_, bytes.size(), "the size of the object");
  while (!bytes.empty()) {
    if (pending_.size() == size_) next_part();
    const std::size_t some = std::min(bytes.size(), size_ - pending_.size());
    // Growing by doubling would take up to twice the memory that is counted for a part.
    if (sender_ && pending_.capacity() < size_) pending_.reserve(size_);
    pending_.insert(pending_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(some));
    bytes = bytes.subspan(some);
  }
}

void Upload::begin() {
  const core::StopScope scope(options_.stop);
  if (options_.bytes) expected_ = options_.bytes();
  id_ = begin_parts(object_);
  sender_ = std::make_unique<PartSender>(object_, id_, options_.stop);
  if (changes_front_) sender_->leave_first();
  size_ = part_size(number_, expected_);
}

/// Makes room: at the first part, where the expected size is asked for, by making that part larger perhaps.
void Upload::next_part() {
  if (!sender_) {
    begin();
    if (pending_.size() < size_) return pending_.reserve(size_);
  }
  send();
  pending_ = sender_->buffer();
}

void Upload::send() {
  if (number_ == 1 && changes_front_) {
    first_ = std::exchange(pending_, {});
  } else {
    sender_->send(std::exchange(pending_, {}));
  }
  size_ = part_size(++number_, expected_);
}

void Upload::replace_front(std::uint64_t size, std::span<const std::byte> front) {
  require_own_process();
  std::vector<std::byte>& first = number_ == 1 ? pending_ : first_;
  if (!changes_front_ || parts_ || size > first.size()) {
    throw Error(ErrorCode::kInvalidArgument, "the beginning of the object is on its way already",
                {.path = object_.shown});
  }
  std::vector<std::byte> changed(front.begin(), front.end());
  changed.insert(changed.end(), first.begin() + static_cast<std::ptrdiff_t>(size), first.end());
  first = std::move(changed);
  position_ = position_ - size + front.size();
}

void Upload::prepare() {
  require_own_process();
  if (parts_) return;
  if (!sender_) begin();
  if (!pending_.empty() || number_ == 1) send();
  if (changes_front_) sender_->send_first(std::exchange(first_, {}));
  parts_ = sender_->finish();
  sender_.reset();
}

PreparedParts Upload::hand_over() {
  const core::StopScope scope(options_.stop);
  prepare();
  return {std::exchange(id_, {}), *parts_};
}

void Upload::commit() {
  require_own_process();
  const core::StopScope scope(options_.stop);
  if (!sender_ && !parts_) {
    put_object(object_, pending_, options_.existing, may_be_there_);
    parts_.emplace();
    pending_ = {};
    return;
  }
  prepare();
  complete_parts(object_, id_, *parts_, options_.existing, may_be_there_);
  id_.clear();
}

}  // namespace penstock::io::remote
