#pragma once

#include <cstdint>
#include <string>

#include "format/dcp/metadata.h"
#include "format/format.h"
#include "io/source/opened_file.h"

namespace penstock::format::dcp {

/// kTruncated where the file ends before the end of the stream of `item`.
void require_range(const Source& file, const StreamSpan& place, const std::string& item);

/// Reads the index of the torch.save stream at `place` of `file`, which is source `number` of the archive: its
/// storages lie there in the result. Its `sources` is empty. `ends`: what was read of the stream already. Errors name
/// `item` and the place in the file.
Index read_stream(const Source& file, std::uint32_t number, const StreamSpan& place, io::OpenedFile::Ends ends,
                  const std::string& item, const OpenOptions& options);

}  // namespace penstock::format::dcp
