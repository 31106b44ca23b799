#pragma once

// DLPack 1.3's structures, as the specification lays them out (dmlc/dlpack, dlpack.h). Only what is exchanged with
// Python.

#include <cstdint>

namespace penstock::python::dlpack {

inline constexpr std::uint32_t kMajor = 1;
inline constexpr std::uint32_t kMinor = 3;

inline constexpr std::uint64_t kReadOnly = 1;
inline constexpr std::uint64_t kIsCopied = 2;

inline constexpr std::int32_t kCpu = 1;
inline constexpr std::int32_t kCuda = 2;
inline constexpr std::int32_t kCudaHost = 3;

inline constexpr const char* kLegacyName = "dltensor";
inline constexpr const char* kLegacyUsedName = "used_dltensor";
inline constexpr const char* kVersionedName = "dltensor_versioned";
inline constexpr const char* kVersionedUsedName = "used_dltensor_versioned";
inline constexpr const char* kExchangeName = "dlpack_exchange_api";

enum Code : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBFloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E4M3FNUZ = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2FNUZ = 13,
  kFloat8E8M0FNU = 14,
  kFloat4E2M1FN = 17,
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DLDevice {
  std::int32_t type;
  std::int32_t id;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< in elements; null: C order
  std::uint64_t byte_offset;
};

struct Managed {
  DLTensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

struct ManagedVersioned {
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  DLTensor tensor;
};

/// What a type offers as `__dlpack_c_exchange_api__`: functions that exchange tensors without calls of Python. They
/// throw nothing; all but the first return -1 with a Python error set. None of them orders streams.
struct ExchangeApi {
  std::uint32_t major;
  std::uint32_t minor;
  const ExchangeApi* previous;  ///< for an older major version, or null
  /// A new tensor like the prototype (type, shape, device). Errors go to `set_error`.
  int (*allocate)(DLTensor* prototype, ManagedVersioned** out, void* error_context,
                  void (*set_error)(void* error_context, const char* kind, const char* message));
  int (*export_object)(void* object, ManagedVersioned** out);
  int (*import_tensor)(ManagedVersioned* tensor, void** out_object);  ///< takes the tensor over
  int (*describe_object)(void* object, DLTensor* out);                ///< borrowed; null where there is none
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** out);
};

}  // namespace penstock::python::dlpack
