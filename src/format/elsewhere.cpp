#include "format/elsewhere.h"

#include "format/pt/pickle/world.h"

namespace penstock::format {

using enum DType::Code;

std::string elsewhere(const DType& dtype) {
  const DType::Code code = dtype.code();
  const std::string name = dtype.name();
  const bool long_double = name.starts_with('<') || name.starts_with('>');
  if (is_quantized(code)) return "save its integers";
  if (code == kFloat6E2M3 || code == kFloat6E3M2) return "convert the tensor, or save as .safetensors";
  if (code == kFloat4E2M1FNx2) return "convert the tensor, or save as .pt or .safetensors";
  if (code < kBytes || pickle::torch_dtype(name)) return "convert the tensor, or save as .pt";
  if (code != kOpaque || long_double) return "convert the tensor, or save as .npy or .npz";
  return "convert the tensor";
}

bool is_quantized(DType::Code code) noexcept { return code >= kQInt8 && code <= kQUInt2x4; }

}  // namespace penstock::format
