#pragma once

// A value as torch.save would pickle it. write.h puts the pickle into a zip archive with its storages.

#include <string>
#include <string_view>
#include <vector>

#include "format/pt/storages.h"
#include "format/unloaded.h"
#include "penstock/value.h"

namespace penstock::format {

/// The pickle of a `.pt`, and the storages that its persistent ids name.
struct PtPickle {
  std::string text;
  std::vector<PlannedStorage> storages;  ///< storage i has the key i
};

/// Pickles a value as torch.save does. Besides tensors it takes what the reader makes of torch's other types, by type
/// name: tensors that are parameters or whole storages, `torch.device`, the composites of torch_composites.cpp,
/// `torch.nn.parameter.Parameter` (data, requires_grad) around one of those, `torch.marked_tensor` (tensor, conj, neg),
/// and as bare names torch's layouts and quantization schemes. The state of a tensor of any kind is its attributes.
/// kUnsupported names the place of the first value or dtype that torch.load(weights_only=True) would not load so.
PtPickle pickle_for_torch(const Value& value);
/// The same of tensors that are not loaded.
PtPickle pickle_for_torch(const Unloaded& content);

/// kUnsupported for a dtype that torch has not, or has only with a scale.
void require_torch_dtype(const DType& dtype);

/// torch's class for a storage of that type, or empty where it has none: such tensors lie in untyped storages.
std::string_view storage_class(DType::Code code);

}  // namespace penstock::format
