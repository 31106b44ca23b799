#pragma once

// The writer behind penstock::Writer for `.pt`: a file that is written piece by piece, because its tensors are not all
// there at once.

#include <functional>
#include <memory>
#include <string_view>

#include "format/stream_writer.h"
#include "io/file/output.h"
#include "penstock/dtype.h"
#include "penstock/shape.h"
#include "penstock/writer.h"

namespace penstock::format {

std::unique_ptr<StreamWriter> stream_pt(std::string_view path, const WriterOptions& options);

/// A whole `.pt` of one tensor, as torch.save writes it. `elements` writes them to the sink that it gets, in C order.
void write_pt_tensor(const DType& dtype, const Shape& shape, io::ByteSink& sink,
                     const std::function<void(io::ByteSink&)>& elements);

}  // namespace penstock::format
