#include "data/batch/gatherer.h"

#include <algorithm>
#include <cstring>

#include "data/sample/held_file.h"
#include "data/sample/sample.h"
#include "io/copy/guarded.h"

namespace penstock::data {

namespace {

/// Bytes copied at once, few for the same reason as rows.
constexpr std::uint64_t kCopiedAtOnce = std::uint64_t{1} << 20;

/// Copies it.
bool can_be_read(const io::GatherRow& row, std::uint64_t bytes) {
  try {
    io::guarded_copy(row.to, row.from, static_cast<std::size_t>(bytes), {});
  } catch (const Error&) {
    return false;
  }
  return true;
}

[[noreturn]] void throw_bad(const Gatherer::Origin& origin, const io::GatherRow& row, std::uint64_t bytes) {
  try {
    io::guarded_copy(row.to, row.from, static_cast<std::size_t>(bytes), origin.file->name());
    io::throw_vanished(origin.file->name());
  } catch (const Error& error) {
    throw SampleError(origin.position, origin.file->error_of_change(error));
  }
}

void copy_run(const io::GatherRow& first, std::uint64_t bytes, std::size_t count, const Gatherer::Origin& origin) {
  const auto all = static_cast<std::size_t>(bytes * count);
  if (origin.file == nullptr) {
    std::memcpy(first.to, first.from, all);
  } else if (!can_be_read(first, all)) {
    // An error names the first sample that is gone.
    const auto row = [&](std::size_t i) { return io::GatherRow{first.to + i * bytes, first.from + i * bytes}; };
    std::size_t i = 0;
    while (i + 1 < count && can_be_read(row(i), bytes)) ++i;
    throw_bad({origin.file, origin.position + i}, row(i), bytes);
  }
}

}  // namespace

Gatherer::Gatherer(const CallContext& call, Rows& rows, CopiedFiles& files)
    : call_(call), rows_(rows.rows), origins_(rows.origins), files_(files) {
  rows_.clear();
  origins_.clear();
}

void Gatherer::add_run(std::byte* to, const std::byte* from, std::uint64_t bytes, std::size_t count,
                       const Origin& origin) {
  const std::size_t at_once = static_cast<std::size_t>(std::max<std::uint64_t>(kCopiedAtOnce / bytes, 1));
  if (origin.file != nullptr && origin.file != last_file_) note(origin);
  for (std::size_t i = 0; i < count; i += at_once) {
    call_.check_cancelled();
    copy_run({to + i * bytes, from + i * bytes}, bytes, std::min(at_once, count - i),
             {origin.file, origin.position + i});
  }
}

void Gatherer::flush() {
  if (rows_.empty()) return;
  call_.check_cancelled();
  const auto is_mapped = [](const Origin& origin) { return origin.file != nullptr; };
  if (std::none_of(origins_.begin(), origins_.end(), is_mapped)) {
    io::gather(rows_, bytes_);
  } else {
    try {
      io::guarded_gather(rows_, bytes_, {});
    } catch (const Error&) {
      throw_first_bad();
    }
  }
  rows_.clear();
  origins_.clear();
}

void Gatherer::throw_first_bad() const {
  std::size_t i = 0;
  while (i + 1 < rows_.size() && (origins_[i].file == nullptr || can_be_read(rows_[i], bytes_))) ++i;
  throw_bad(origins_[i], rows_[i], bytes_);
}

void Gatherer::note(const Origin& origin) {
  last_file_ = origin.file;
  files_.add(origin.file, origin.position);
}

}  // namespace penstock::data
