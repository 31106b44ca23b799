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
template <class Text>
constexpr bool kAssignsText = requires(ps::LoadOptions options, Text text) {
  options.mmap = text;
};
static_assert(kAssignsText<bool> && kAssignsText<std::optional<bool>> && !kAssignsText<const char*> &&
              !kAssignsText<int>);
