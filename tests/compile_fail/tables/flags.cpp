// A text is a pointer, and a pointer converts to bool: cast(dtype, "x") must not mean strict.
#include <filesystem>

#include "tables.h"

namespace ps = penstock;

REFUSES((Dataset d), d.cast(ps::DType::float32, "x"), d.cast(ps::DType::float32, false, {"x"}));
REFUSES((SampleStream s), s.cast(ps::DType::float32, "x"), s.cast(ps::DType::float32, true));
REFUSES((Tensor t), t.with_requires_grad("yes"), t.with_requires_grad(true));
REFUSES((Tensor t), sum(t, 0, "keepdim"), sum(t, 0, true));
REFUSES((Tensor t), sum(t, {0, 1}, "keepdim"), sum(t, {0, 1}, true));
REFUSES((Tensor t), mean(t, 0, "keepdim"), mean(t, 0, true));
REFUSES((Tensor t), mean(t, {0, 1}, "keepdim"), mean(t, {0, 1}, true));
REFUSES((Tensor t), max(t, 0, "keepdim"), max(t, 0, true));
REFUSES((Tensor t), min(t, 0, "keepdim"), min(t, 0, true));
REFUSES((Tensor t), argmax(t, 0, "keepdim"), argmax(t, 0, true));
REFUSES((Tensor t), rows(t, "w"), rows(t));

// Functions of no argument that a template could make dependent: the texts are.
#define REFUSES_TEXT(WRONG, RIGHT)                    \
  static_assert([]<class Text>() {                    \
    return requires(Text text, bool flag) { RIGHT; }; \
  }.template operator()<const char*>());              \
  static_assert(!([]<class Text>() {                  \
    return requires(Text text, bool flag) { WRONG; }; \
  }.template operator()<const char*>()))

REFUSES_TEXT(ps::packed("a", text), ps::packed("a", flag));
REFUSES_TEXT(ps::packed(std::filesystem::path(), text), ps::packed(std::filesystem::path(), flag));
REFUSES_TEXT(ps::rows("a", "key", text), ps::rows("a", "key", std::optional<bool>(flag)));
REFUSES_TEXT(ps::rows(std::declval<ps::LazyTensor>(), text), ps::rows(std::declval<ps::LazyTensor>(), flag));
REFUSES_TEXT(ps::Value::boolean(text), ps::Value::boolean(flag));
REFUSES_TEXT(ps::Buffer::wrap(nullptr, 0, nullptr, text), ps::Buffer::wrap(nullptr, 0, nullptr, flag));
REFUSES_TEXT(ps::Buffer::wrap(nullptr, 0, ps::Device(), nullptr, text),
             ps::Buffer::wrap(nullptr, 0, ps::Device(), nullptr, flag));
REFUSES_TEXT(ps::sampler::subset({1}, text), ps::sampler::subset({1}, flag));
REFUSES_TEXT(ps::sampler::weighted({1}, 1, text), ps::sampler::weighted({1}, 1, flag));
REFUSES_TEXT(ps::sampler::batches(ps::sampler::sequential(1), 1, text),
             ps::sampler::batches(ps::sampler::sequential(1), 1, flag));
REFUSES_TEXT(ps::BatchOrder::equal(ps::Order(), 1, text), ps::BatchOrder::equal(ps::Order(), 1, flag));
REFUSES_TEXT(ps::Value(static_cast<const void*>(text)), ps::Value(text));

// Options that are true, false or unset, and options of one bool.
#define REFUSES_TEXT_IN(OPTIONS, FIELD)                     \
  static_assert([]<class Text>() {                          \
    return requires(bool flag) { OPTIONS{.FIELD = flag}; }; \
  }.template operator()<const char*>());                    \
  static_assert(!([]<class Text>() {                        \
    return requires(Text text) { OPTIONS{.FIELD = text}; }; \
  }.template operator()<const char*>()))

REFUSES_TEXT_IN(ps::LoadOptions, mmap);
REFUSES_TEXT_IN(ps::LoadOptions, verify);
REFUSES_TEXT_IN(ps::LoadOptions, direct);
REFUSES_TEXT_IN(ps::LoadOptions, gds);
REFUSES_TEXT_IN(ps::LoadOptions, strict);
REFUSES_TEXT_IN(ps::OpenOptions, verify);
REFUSES_TEXT_IN(ps::SaveOptions, sync);
REFUSES_TEXT_IN(ps::WriterOptions, resume);
REFUSES_TEXT_IN(ps::FilesOptions, raw);
REFUSES_TEXT_IN(ps::LoaderOptions, shuffle);
REFUSES_TEXT_IN(ps::DlpackOptions, copy);
// The same by assignment, where a text would convert.
template <class Option>
constexpr bool kTakesItselfAlone = std::is_assignable_v<Option&, bool> && !std::is_assignable_v<Option&, const char*> &&
                                   !std::is_assignable_v<Option&, int> && !std::is_assignable_v<Option&, double>;
#define TAKES_BOOL_ALONE(OPTIONS, FIELD) static_assert(kTakesItselfAlone<decltype(ps::OPTIONS::FIELD)>)
TAKES_BOOL_ALONE(DlpackOptions, copy);
TAKES_BOOL_ALONE(DocumentsOptions, sequences);
TAKES_BOOL_ALONE(FieldsOptions, check);
TAKES_BOOL_ALONE(FilesOptions, class_folders);
TAKES_BOOL_ALONE(FilesOptions, index);
TAKES_BOOL_ALONE(FilesOptions, raw);
TAKES_BOOL_ALONE(LengthBucketOptions, drop_last);
TAKES_BOOL_ALONE(LengthBucketOptions, shuffle);
TAKES_BOOL_ALONE(LoadOptions, direct);
TAKES_BOOL_ALONE(LoadOptions, gds);
TAKES_BOOL_ALONE(LoadOptions, mmap);
TAKES_BOOL_ALONE(LoadOptions, pinned);
TAKES_BOOL_ALONE(LoadOptions, shared);
TAKES_BOOL_ALONE(LoadOptions, strict);
TAKES_BOOL_ALONE(LoadOptions, verify);
TAKES_BOOL_ALONE(LoaderOptions, drop_last);
TAKES_BOOL_ALONE(LoaderOptions, shuffle);
TAKES_BOOL_ALONE(LoaderOptions, verify);
TAKES_BOOL_ALONE(MapOptions, batched);
TAKES_BOOL_ALONE(DistributedOptions, shuffle);
TAKES_BOOL_ALONE(NodeLocalOptions, shuffle);
TAKES_BOOL_ALONE(OpenOptions, big_endian);
TAKES_BOOL_ALONE(OpenOptions, verify);
TAKES_BOOL_ALONE(PackOptions, verify);
TAKES_BOOL_ALONE(PackSequencesOptions, cu_seqlens);
TAKES_BOOL_ALONE(PadOptions, lengths);
TAKES_BOOL_ALONE(PadOptions, mask);
TAKES_BOOL_ALONE(RaggedOptions, cu_seqlens);
TAKES_BOOL_ALONE(RandomOptions, compact);
TAKES_BOOL_ALONE(RandomOptions, replacement);
TAKES_BOOL_ALONE(RawLayout, fortran_order);
TAKES_BOOL_ALONE(RemoteOptions, anonymous);
TAKES_BOOL_ALONE(SaveOptions, compress);
TAKES_BOOL_ALONE(SaveOptions, sync);
TAKES_BOOL_ALONE(ShardsOptions, index);
TAKES_BOOL_ALONE(ShardsOptions, raw);
TAKES_BOOL_ALONE(TransferOptions, copy);
TAKES_BOOL_ALONE(TransferOptions, non_blocking);
TAKES_BOOL_ALONE(WriterOptions, compress);
TAKES_BOOL_ALONE(WriterOptions, resume);
TAKES_BOOL_ALONE(WriterOptions, sync);
TAKES_BOOL_ALONE(ZipOptions, compare_names);
static_assert(std::is_assignable_v<ps::OptionalFlag&, std::optional<bool>>);
