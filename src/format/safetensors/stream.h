#pragma once

#include <memory>
#include <string_view>

#include "format/stream_writer.h"
#include "penstock/writer.h"

namespace penstock::format {

std::unique_ptr<StreamWriter> stream_safetensors(std::string_view path, const WriterOptions& options);

}  // namespace penstock::format
