#pragma once

/// Names of Penstock's types without what they are: for headers of programs that only pass them on.

#include <cstdint>

#include "penstock/standard.h"

namespace penstock {

enum class DeviceType : std::uint8_t;
enum class ErrorCode : std::uint8_t;

class Archive;
class BatchSampler;
class Buffer;
class Collate;
class DataLoader;
class Dataset;
class DatasetInterface;
class DType;
class Error;
class Event;
class Generator;
class LazyTensor;
class Sampler;
class SampleStream;
class Shape;
class Source;
class Stream;
class Tensor;
class Value;
class WritableArchive;
class Writer;
struct Batch;
struct Device;
struct LoaderOptions;
struct LoaderPosition;
struct LoadOptions;
struct OpenOptions;
struct Report;
struct SaveOptions;

}  // namespace penstock
