// References and views of what a temporary handle keeps: either refused, or a value of their own.
// check_references.py says which accessor of the headers has no row here.
#include "tables.h"

namespace ps = penstock;

REFUSES_ON_TEMPORARY(ps::Archive, .path());
REFUSES_ON_TEMPORARY(ps::Archive, .entries());
REFUSES_ON_TEMPORARY(ps::Archive, .storages());
REFUSES_ON_TEMPORARY(ps::Archive, .sources());
REFUSES_ON_TEMPORARY(ps::Archive, .structure());
REFUSES_ON_TEMPORARY(ps::Archive, .metadata());
REFUSES_ON_TEMPORARY(ps::Archive, .unknown_globals());
REFUSES_ON_TEMPORARY(ps::Buffer, .data());
BY_VALUE_ON_TEMPORARY(ps::Buffer, .owner());
BY_VALUE_ON_TEMPORARY(ps::Batch, .tensor());
REFUSES_ON_TEMPORARY(ps::Collate, .rule());
BY_VALUE_ON_TEMPORARY(ps::DataLoader::Iterator, .operator*());
REFUSES_ON_TEMPORARY(ps::DataLoader::Iterator, .operator->());
REFUSES_ON_TEMPORARY(ps::Dataset, .impl());
BY_VALUE_ON_TEMPORARY(ps::Error, .message());
BY_VALUE_ON_TEMPORARY(ps::Error, .path());
BY_VALUE_ON_TEMPORARY(ps::Error, .tensor());
BY_VALUE_ON_TEMPORARY(ps::Error, .cause());
BY_VALUE_ON_TEMPORARY(ps::LazyTensor, .name());
BY_VALUE_ON_TEMPORARY(ps::LazyTensor, .dtype());
BY_VALUE_ON_TEMPORARY(ps::LazyTensor, .shape());
BY_VALUE_ON_TEMPORARY(ps::LazyTensor, .strides());
BY_VALUE_ON_TEMPORARY(ps::LazyTensor, .entry());
BY_VALUE_ON_TEMPORARY(ps::LazyTensor, .storage());
BY_VALUE_ON_TEMPORARY(ps::LazyTensor, .source());
BY_VALUE_ON_TEMPORARY(ps::SampleStream, .node());
BY_VALUE_ON_TEMPORARY(ps::SampleStream, .samples());
BY_VALUE_ON_TEMPORARY(ps::SampleStream::Iterator, .operator*());
REFUSES_ON_TEMPORARY(ps::SampleStream::Iterator, .operator->());
REFUSES_ON_TEMPORARY(ps::Shape, .dims());
REFUSES_ON_TEMPORARY(ps::Shape, .begin());
REFUSES_ON_TEMPORARY(ps::Shape, .end());
BY_VALUE_ON_TEMPORARY(ps::Shape, [0]);
BY_VALUE_ON_TEMPORARY(ps::Source, .name());
REFUSES_ON_TEMPORARY(ps::Source, .operator*());
BY_VALUE_ON_TEMPORARY(ps::Tensor, .dtype());
BY_VALUE_ON_TEMPORARY(ps::Tensor, .shape());
BY_VALUE_ON_TEMPORARY(ps::Tensor, .strides());
BY_VALUE_ON_TEMPORARY(ps::Tensor, .buffer());
BY_VALUE_ON_TEMPORARY(ps::Tensor, .at<float>(0));
REFUSES_ON_TEMPORARY(ps::Tensor, .data());
REFUSES_ON_TEMPORARY(ps::Tensor, .template values<float>());
BY_VALUE_ON_TEMPORARY(ps::Value, .type_name());
BY_VALUE_ON_TEMPORARY(ps::Value, .as_string());
BY_VALUE_ON_TEMPORARY(ps::Value, .as_dtype());
BY_VALUE_ON_TEMPORARY(ps::Value, .as_tensor());
BY_VALUE_ON_TEMPORARY(ps::Value, .template get<std::string>());
REFUSES_ON_TEMPORARY(ps::WritableArchive, .path());
REFUSES_ON_TEMPORARY(ps::WritableArchive, .entries());
REFUSES_ON_TEMPORARY(ps::Writer, .path());

// As programs write it, with what one temporary gives for another.
REFUSES((Tensor t), t[0].shape().dims(), t.shape().dims());
REFUSES((Archive a), a["w"].shape().dims(), a["w"].shape().numel());
REFUSES((Tensor t), t.clone().buffer().data(), t.buffer().data());
static_assert(!std::is_reference_v<decltype(ps::load("f")["name"].as_string())>);
static_assert(!std::is_reference_v<decltype(ps::open_source("f").name())>);
template <class View>
constexpr bool kViewsTensors = requires(ps::Tensor t) {
  ps::as_mdspan<View>(t);
};
template <class View>
constexpr bool kViewsTemporaryTensors = requires(ps::Tensor t) {
  ps::as_mdspan<View>(t.clone());
};
/// What as_mdspan looks at of a class of spans.
struct Span {
  using element_type = float;
  struct extents_type {
    using index_type = int;
    static constexpr int static_extent(std::size_t) { return 1; }
  };
  struct mapping_type {
    using extents_type = Span::extents_type;
  };
  using data_handle_type = float*;
  static constexpr std::size_t rank() { return 0; }
};
static_assert(kViewsTensors<Span> && !kViewsTemporaryTensors<Span>);
// A view of memory that nobody keeps.
template <class T>
constexpr bool kViewsTemporaries = requires {
  ps::Tensor::view(std::vector<T>{1});
};
template <class T>
constexpr bool kViewsNames = requires(std::vector<T> v) {
  ps::Tensor::view(v);
};
static_assert(!kViewsTemporaries<float> && kViewsNames<float>);
