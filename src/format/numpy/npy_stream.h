#pragma once

// The writers behind penstock::Writer for `.npy` and `.npz`: a file that is written piece by piece, because its tensors
// are not all there at once.

#include <memory>
#include <string_view>

#include "format/stream_writer.h"
#include "penstock/writer.h"

namespace penstock::format {

std::unique_ptr<StreamWriter> stream_npy(std::string_view path, const WriterOptions& options);
std::unique_ptr<StreamWriter> stream_npz(std::string_view path, const WriterOptions& options);

}  // namespace penstock::format
