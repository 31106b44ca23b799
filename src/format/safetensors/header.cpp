// The header is JSON: `{"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}`. It is read as a
// stream of events into one list. Then the tensors are sorted by their bytes, and the rule of the format is checked:
// they cover the data exactly, without gap or overlap.

#include "format/safetensors/header.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/json_reader.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::string_view kMetadataName = "__metadata__";
constexpr std::uint64_t kHeaderStart = 8;
constexpr std::size_t kMaxTypeName = 64;
constexpr std::size_t kMaxUnknownFields = 1024;  // each costs several times its bytes

/// Builds the list of tensors from the JSON; what one tensor says is checked here, what they say together is not.
class HeaderReader final : public core::JsonReader {
 public:
  HeaderReader(std::string_view json, const std::string& path) : core::JsonReader(json, path, kHeaderStart) {}

  SafetensorsHeader header;

 private:
  enum class State : std::uint8_t { kStart, kTop, kMetadata, kTensor, kShape, kOffsets };
  enum Field : unsigned { kNoField = 0, kDType = 1, kShapeField = 2, kDataOffsets = 4, kAllFields = 7 };

  void on_object() override;
  void on_object_end() override;
  void on_array() override;
  void on_array_end() override;
  void on_key(std::string& name) override;
  void on_string(std::string& value) override;
  void on_unsigned(std::uint64_t value) override;
  void on_other(std::string_view kind) override;
  [[noreturn]] void unexpected(std::string_view kind) override;

  void begin_field(const std::string& name);
  void end_tensor();
  SafetensorsTensor& tensor() { return header.tensors.back(); }
  [[noreturn]] void fail_tensor(const std::string& message, ErrorCode code = ErrorCode::kCorrupt) {
    fail(message, tensor().name, code);
  }

  State state_ = State::kStart;
  bool metadata_seen_ = false;
  bool metadata_next_ = false;
  std::string metadata_key_;
  unsigned fields_ = 0;
  Field field_ = kNoField;
  std::set<std::string, std::less<>> unknown_fields_;
  std::size_t offsets_ = 0;
};

void HeaderReader::on_object() {
  if (state_ == State::kStart) {
    state_ = State::kTop;
  } else if (state_ == State::kTop) {
    state_ = metadata_next_ ? State::kMetadata : State::kTensor;
    header.has_metadata |= metadata_next_;
    fields_ = 0;
    field_ = kNoField;
    unknown_fields_.clear();
  } else {
    unexpected("an object");
  }
}

void HeaderReader::on_object_end() {
  if (state_ == State::kTensor) end_tensor();
  state_ = State::kTop;
}

void HeaderReader::on_key(std::string& name) {
  if (state_ == State::kMetadata) {
    metadata_key_ = std::move(name);
  } else if (state_ == State::kTensor) {
    begin_field(name);
  } else if (metadata_next_ = name == kMetadataName; metadata_next_) {
    if (std::exchange(metadata_seen_, true)) fail("the header has two '__metadata__' objects; it may have one");
  } else {
    header.tensors.emplace_back().name = std::move(name);
    tensor().where = offset();
  }
}

void HeaderReader::begin_field(const std::string& name) {
  field_ = name == "dtype" ? kDType : name == "shape" ? kShapeField : name == "data_offsets" ? kDataOffsets : kNoField;
  const bool repeated = field_ == kNoField ? !unknown_fields_.insert(name).second : (fields_ & field_) != 0;
  if (repeated) fail_tensor(core::format("the tensor's header names {} twice", core::quoted(name)));
  if (unknown_fields_.size() > kMaxUnknownFields) {
    fail_tensor(core::format("the tensor's header has more than {} names that no version knows", kMaxUnknownFields),
                ErrorCode::kLimit);
  }
  fields_ |= field_;
  if (field_ == kNoField) skip_value();
}

void HeaderReader::on_array() {
  if (state_ != State::kTensor || (field_ != kShapeField && field_ != kDataOffsets)) unexpected("a list");
  state_ = field_ == kShapeField ? State::kShape : State::kOffsets;
  offsets_ = 0;
}

void HeaderReader::on_array_end() {
  if (state_ == State::kOffsets && offsets_ != 2) {
    fail_tensor(core::format("data_offsets has {} {}; it must be [begin, end]", offsets_,
                             offsets_ == 1 ? "number" : "numbers"));
  }
  state_ = State::kTensor;
}

void HeaderReader::on_string(std::string& value) {
  if (state_ == State::kMetadata) {
    const auto [at, added] = header.metadata.try_emplace(std::move(metadata_key_), std::move(value));
    if (!added) fail(core::format("'__metadata__' names {} twice", core::quoted(at->first)));
  } else if (state_ == State::kTensor && field_ == kDType) {
    if (value.size() > kMaxTypeName) {
      fail_tensor(core::format("the tensor's dtype is {}, longer than any name of one", core::quoted(value)));
    }
    tensor().dtype = find_safetensors_dtype(value);
    if (tensor().dtype == nullptr) tensor().foreign_dtype = std::move(value);
  } else {
    unexpected("a string");
  }
}

void HeaderReader::on_unsigned(std::uint64_t value) {
  if (state_ == State::kShape) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail_tensor(core::format("a dimension of {} does not fit in 63 bits", value));
    }
    if (tensor().shape.rank() == Shape::kMaxRank) {
      fail_tensor(core::format("the shape has more than {} dimensions", Shape::kMaxRank), ErrorCode::kLimit);
    }
    tensor().shape.push_back(static_cast<std::int64_t>(value));
  } else if (state_ == State::kOffsets && offsets_ < 2) {
    (offsets_++ == 0 ? tensor().begin : tensor().end) = value;
  } else if (state_ == State::kOffsets) {
    fail_tensor("data_offsets has more than two numbers; it must be [begin, end]");
  } else {
    unexpected("a number");
  }
}

void HeaderReader::on_other(std::string_view kind) {
  // The reference's own writer leaves absent metadata out, but it reads null as absent.
  if (state_ == State::kTop && metadata_next_ && kind == "null") return;
  unexpected(kind);
}

void HeaderReader::unexpected(std::string_view kind) {
  switch (state_) {
    case State::kMetadata:
      fail(core::format("'__metadata__' holds {} under {}; it may hold only strings", kind,
                        core::quoted(metadata_key_)));
    case State::kShape:
      fail_tensor(core::format("the shape holds {}; it may hold only whole numbers from 0", kind));
    case State::kOffsets:
      fail_tensor(core::format("data_offsets holds {}; it must be two whole numbers from 0", kind));
    case State::kTensor:
      fail_tensor(core::format("{} is {}; it must be {}",
                               field_ == kDType        ? "dtype"
                               : field_ == kShapeField ? "shape"
                                                       : "data_offsets",
                               kind, field_ == kDType ? "a string" : "a list of whole numbers"));
    default:
      break;
  }
  if (metadata_next_) fail(core::format("'__metadata__' is {}; it must be an object of strings", kind));
  fail_tensor(core::format("the tensor's entry is {}; it must be an object of dtype, shape and data_offsets", kind));
}

/// Bytes that the shape and type ask for.
std::uint64_t declared_bytes(const SafetensorsTensor& tensor, const ErrorContext& context) {
  std::uint64_t bits = tensor.dtype != nullptr ? tensor.dtype->bits : 8;
  const std::string_view type = tensor.dtype != nullptr ? tensor.dtype->name : std::string_view(tensor.foreign_dtype);
  bool empty = false;
  for (const std::int64_t dim : tensor.shape) {
    empty = empty || dim == 0;
    // Zero counts as one here: strides are products too, so that they must fit even where no element is.
    const auto product = core::try_mul(bits, static_cast<std::uint64_t>(std::max<std::int64_t>(dim, 1)));
    if (!product || *product > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw Error(ErrorCode::kCorrupt,
                  core::format("the size of shape {} of {} does not fit in 63 bits", tensor.shape.to_string(),
                               core::escaped(type)),
                  context);
    }
    bits = *product;
  }
  if (empty) return 0;
  if (bits % 8 != 0) {
    throw Error(
        ErrorCode::kCorrupt,
        core::format("{} of {} ends within a byte; a tensor must be whole bytes", tensor.shape.to_string(), type),
        context);
  }
  return bits / 8;
}

void HeaderReader::end_tensor() {
  if (fields_ != kAllFields) {
    fail_tensor(core::format("the tensor's entry has no {}", (fields_ & kDType) == 0        ? "dtype"
                                                             : (fields_ & kShapeField) == 0 ? "shape"
                                                                                            : "data_offsets"));
  }
  const SafetensorsTensor& t = tensor();
  if (t.end < t.begin) fail_tensor(core::format("data_offsets [{}, {}] end before they begin", t.begin, t.end));
  const std::uint64_t bytes = declared_bytes(t, {path(), t.where, t.name});
  if (t.dtype != nullptr && bytes != t.end - t.begin) {
    fail_tensor(core::format("data_offsets [{}, {}] hold {}, but {} of {} takes {}", t.begin, t.end,
                             core::counted(t.end - t.begin, "byte"), t.dtype->name, t.shape.to_string(), bytes));
  }
}

void refuse_repeated_names(const std::vector<SafetensorsTensor>& tensors, const std::string& path) {
  std::vector<const SafetensorsTensor*> order(tensors.size());
  std::transform(tensors.begin(), tensors.end(), order.begin(), [](const auto& tensor) { return &tensor; });
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  const auto repeated =
      std::adjacent_find(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->name == b->name; });
  if (repeated == order.end()) return;
  throw Error(ErrorCode::kCorrupt, "the header has two tensors of this name; each name may occur once",
              {path, std::max(repeated[0]->where, repeated[1]->where), (*repeated)->name});
}

void sort_by_offset(std::vector<SafetensorsTensor>& tensors) {
  const auto before = [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end != b.end ? a.end < b.end : a.where < b.where;
  };
  if (!std::is_sorted(tensors.begin(), tensors.end(), before)) std::sort(tensors.begin(), tensors.end(), before);
}

/// The rule of the format: no byte of the data belongs to two tensors or to none.
void check_cover(const std::vector<SafetensorsTensor>& tensors, std::uint64_t data_bytes, const std::string& path) {
  const SafetensorsTensor* previous = nullptr;
  std::uint64_t expected = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    const ErrorContext context{path, tensor.where, tensor.name};
    if (tensor.begin < expected) {
      throw Error(ErrorCode::kCorrupt,
                  core::format("its data begins at {}, inside that of tensor {}, which ends at {}", tensor.begin,
                               core::quoted(previous->name), expected),
                  context);
    }
    if (tensor.begin > expected) {
      throw Error(ErrorCode::kCorrupt,
                  core::format("bytes {} to {} of the data before it belong to no tensor", expected, tensor.begin),
                  context);
    }
    if (tensor.end > data_bytes) {
      throw Error(ErrorCode::kTruncated,
                  core::format("its data ends at {}, but the file has {} of data; it was cut short, or the header is "
                               "wrong; fetch or write the file again",
                               tensor.end, core::counted(data_bytes, "byte")),
                  context);
    }
    expected = tensor.end;
    previous = &tensor;
  }
  if (expected == data_bytes) return;
  throw Error(ErrorCode::kCorrupt,
              core::format("{} the last tensor's data; a safetensors file ends with it",
                           core::counted(data_bytes - expected, "byte follows", "bytes follow")),
              {path, {}, {}});
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes, const std::string& path) {
  HeaderReader reader(json, path);
  reader.read();
  refuse_repeated_names(reader.header.tensors, path);
  sort_by_offset(reader.header.tensors);
  check_cover(reader.header.tensors, data_bytes, path);
  return std::move(reader.header);
}

}  // namespace penstock::format
