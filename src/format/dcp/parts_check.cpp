#include "format/dcp/parts_check.h"

#include <iterator>

#include "io/copy/crc32.h"

namespace penstock::format::dcp {

void PartsCheck::add(std::uint64_t begin, std::uint64_t end, std::uint32_t crc) {
  const std::lock_guard lock(mutex_);
  auto next = parts_.upper_bound(begin);
  if (next != parts_.begin() && std::prev(next)->second.end > begin) --next;
  while (next != parts_.end() && next->first < end) next = parts_.erase(next);
  if (next != parts_.end() && next->first == end) {
    crc = io::crc32_combine(crc, next->second.crc, next->second.end - end);
    end = next->second.end;
    next = parts_.erase(next);
  }
  if (next != parts_.begin() && std::prev(next)->second.end == begin) {
    const auto before = std::prev(next);
    crc = io::crc32_combine(before->second.crc, crc, end - begin);
    begin = before->first;
    parts_.erase(before);
  }
  if (begin == 0 && end == bytes_ && crc == crc32_) return pass();
  parts_[begin] = {end, crc};
}

}  // namespace penstock::format::dcp
