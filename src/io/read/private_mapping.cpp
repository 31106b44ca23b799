// A private mapping alone is no memory of its taker's own: a file that is cut takes even pages away that were written
// to, and one that is written to in place changes the others. So `detach` moves anonymous pages over the mapping, which
// the kernel does in one step for everybody who reads there.
//
// Pages are not touched ahead (MADV_POPULATE_READ): the taker's own copy takes the faults in all its threads, and on
// two busy processors touching them ahead took a tenth longer.

#include "io/read/private_mapping.h"

#include <sys/mman.h>

#include <cerrno>

#include "core/round.h"
#include "core/system_error.h"
#include "io/copy/guarded.h"
#include "io/read/reader.h"

namespace penstock::io {

std::shared_ptr<PrivateMapping> PrivateMapping::of(const ByteSource& source, std::uint64_t offset, std::size_t bytes) {
  if (source.descriptor() < 0) return nullptr;
  const auto lead = static_cast<std::size_t>(offset % core::page_size());
  const std::size_t length = core::round_up(lead + bytes, core::page_size());
  void* const base = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, source.descriptor(),
                            static_cast<off_t>(offset - lead));
  if (base == MAP_FAILED) return nullptr;
  std::shared_ptr<PrivateMapping> out(
      new PrivateMapping(static_cast<std::byte*>(base), length, lead, std::string(source.name())));
  require_uncut(source);
  return out;
}

PrivateMapping::~PrivateMapping() { ::munmap(base_, length_); }

void PrivateMapping::detach() {
  void* const own = ::mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own == MAP_FAILED) core::throw_errno(errno, "cannot get memory for a tensor that is kept", {.path = name_});
  ::madvise(own, length_, MADV_HUGEPAGE);
  try {
    guarded_copy(static_cast<std::byte*>(own), base_, length_, name_);
    if (::mremap(own, length_, length_, MREMAP_MAYMOVE | MREMAP_FIXED, base_) == MAP_FAILED) {
      core::throw_errno(errno, "cannot move memory to a tensor that is kept", {.path = name_});
    }
  } catch (...) {
    ::munmap(own, length_);
    throw;
  }
}

}  // namespace penstock::io
