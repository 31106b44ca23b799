// A dataset that transforms the tensors of another. It has the other dataset fetch its samples, and only
// notes for each tensor what happens on the way into the batch; data/batch/converter.cpp does that. A transform of a
// transformed dataset becomes one conversion with all of the ops, because the bytes are then still walked once. The
// last of a chain asks the dataset below the first, and makes the conversion for all of them: what a sample costs does
// not grow with their number.

#include "data/transform/transformed.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/module_dtype.h"
#include "core/refuse.h"
#include "core/text.h"
#include "data/forwarding.h"
#include "data/sample/blame.h"
#include "data/sample/require_samples.h"
#include "data/sample/strides.h"
#include "data/transform/conversion.h"
#include "data/transform/geometry.h"

namespace penstock {

namespace {

using data::Conversion;
using data::Layout;
using data::LayoutPtr;
using data::Op;
using data::Payload;
using data::Sample;

using ConversionPtr = std::shared_ptr<const Conversion>;

/// What decides how a payload is converted, besides its layout.
struct Kind {
  const Conversion* before = nullptr;  ///< of the dataset below; this chain is added to it
  bool in_file = false;                ///< it is read without gaps, even if it has gaps in its file

  explicit Kind(const Payload& payload) : before(payload.conversion), in_file(payload.in_large_file()) {}
  /// Those that steps of the dataset below draw by. A sample may have another index here: what stands behind a repeat()
  /// draws by a key of its own.
  std::uint32_t keys() const noexcept { return before == nullptr ? 0 : before->keys(); }
  friend bool operator==(const Kind&, const Kind&) = default;
};

/// What the chain makes of samples of one layout.
struct Converted {
  LayoutPtr from;
  bool keeps_order;
  std::vector<Kind> kinds;  ///< of each payload
  LayoutPtr to;
  std::vector<ConversionPtr> conversions;  ///< for each tensor; null: it stays as it is

  bool is_of(const Sample& sample, const data::CallContext& call) const {
    if (sample.layout != from.get() || call.keeps_order != keeps_order) return false;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] != Kind(sample.payloads[i])) return false;
    }
    return true;
  }
};

/// Remembers layouts, so that a conversion is made once for all samples of equal layout.
struct Seen final : data::Scratch::State {
  static constexpr std::size_t kRemembered = 64;
  std::vector<std::shared_ptr<const Converted>> entries;

  const Converted* find(const Sample& sample, const data::CallContext& call) const {
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const auto& one) { return one->is_of(sample, call); });
    return found == entries.end() ? nullptr : found->get();
  }
};

/// Which tensors of a sample are meant.
enum class Meant : std::uint8_t {
  kNamed,   ///< those that the keys name, all of which are there; without keys all, of which there is one
  kTyped,   ///< those that an option `dtype=` means, and those that the keys name
  kScaled,  ///< those that the keys name, or number in a tuple: each with the scale of its key
};

class Transformed final : public data::Forwarding {
 public:
  Transformed(Dataset dataset, Op op, std::vector<std::string> keys, Meant meant, std::vector<std::int64_t> scales = {})
      : Forwarding(std::move(dataset)),
        given_(std::move(op)),
        op_(data::behind(given_, below().draws())),
        draws_(below().draws() + data::draws_of(op_)),
        keys_(std::move(keys)),
        meant_(meant),
        scales_(std::move(scales)) {}

  std::uint32_t draws() const noexcept override { return draws_; }
  bool is_at_hand(std::int64_t index, io::ResidentPages& pages) const override {
    return below().is_at_hand(index, pages);
  }
  std::function<SampleStream()> in_order() const override {
    return in_order_by([op = given_, keys = keys_, meant = meant_, scales = scales_](const Dataset& samples) {
      return Dataset(std::make_shared<Transformed>(samples, op, keys, meant, scales));
    });
  }

  void fetch(std::span<const std::int64_t> indices, const data::Work& work, std::span<Sample> out) const override {
    chain().bottom->fetch(indices, work, out);
    auto& seen = work.scratch.state<Seen>(this);
    const Converted* converted = nullptr;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (out[i].failed()) continue;
      if (converted == nullptr || !converted->is_of(out[i], work.call)) {
        converted = converted_for(out[i], i, seen, work.call, work.scratch);
      }
      if (converted == nullptr) continue;
      const auto payloads = work.scratch.arena.array<Payload>(converted->kinds.size());
      for (std::size_t t = 0; t < payloads.size(); ++t) {
        payloads[t] = out[i].payloads[t];
        const ConversionPtr& conversion = converted->conversions[t];
        if (conversion == nullptr) continue;
        const std::uint32_t keys = converted->kinds[t].keys();
        if (conversion->keys() > keys) {
          const auto all = work.scratch.arena.array<std::uint64_t>(conversion->keys());
          std::copy_n(payloads[t].keys, keys, all.begin());
          all[keys] = work.call.key_of(indices[i]);
          payloads[t].keys = all.data();
        }
        payloads[t].conversion = conversion.get();
      }
      out[i] = {converted->to.get(), {payloads.data()}};
    }
  }

 private:
  /// Null where `sample` cannot be converted and says so.
  const Converted* converted_for(Sample& sample, std::size_t position, Seen& seen, const data::CallContext& call,
                                 data::Scratch& scratch) const {
    if (const Converted* known = seen.find(sample, call)) return known;
    if (seen.entries.size() == Seen::kRemembered) {
      scratch.objects.push_back(seen.entries.front());
      seen.entries.erase(seen.entries.begin());
    }
    try {
      return seen.entries.emplace_back(std::make_shared<const Converted>(convert(sample, call))).get();
    } catch (const Error& error) {
      data::fail(sample, position, error, call, scratch);
      return nullptr;
    }
  }

  /// The transforms from the first on, which stand on one another, and what is below all of them.
  struct Chain {
    const detail::DatasetImpl* bottom = nullptr;
    std::vector<const Transformed*> stages;
  };
  const Chain& chain() const {
    std::call_once(once_, [this] {
      for (const auto* stage = this; stage != nullptr; stage = dynamic_cast<const Transformed*>(found_.bottom)) {
        found_.stages.push_back(stage);
        found_.bottom = &stage->below();
      }
      std::reverse(found_.stages.begin(), found_.stages.end());
    });
    return found_;
  }

  /// What becomes of a sample on its way through the chain.
  struct OnWay {
    Layout now;                        ///< as behind the stages so far
    std::vector<std::vector<Op>> ops;  ///< of each tensor, so far
    bool keeps_order;
  };

  Converted convert(const Sample& sample, const data::CallContext& call) const {
    const Layout& layout = *sample.layout;
    const std::size_t tensors = layout.tensors.size();
    Converted out{
        .from = layout.shared_from_this(), .keeps_order = call.keeps_order, .kinds = {}, .to = {}, .conversions = {}};
    for (std::size_t t = 0; t < tensors; ++t) out.kinds.emplace_back(sample.payloads[t]);
    OnWay way{.now = layout, .ops = std::vector<std::vector<Op>>(tensors), .keeps_order = call.keeps_order};
    std::vector<data::TensorLayout> inputs;
    for (std::size_t t = 0; t < tensors; ++t) inputs.push_back(input_of(layout.tensors[t], out.kinds[t], way));
    way.now.tensors = inputs;
    for (const Transformed* const stage : chain().stages) stage->add_to(way);
    auto to = std::make_shared<Layout>(layout);
    out.conversions.resize(tensors);
    for (const data::Leaf& leaf : layout.structure->leaves) {
      if (leaf.kind != data::LeafKind::kTensor || way.ops[leaf.number].empty()) continue;
      ConversionPtr& made = out.conversions[leaf.number];
      made = conversion_of(std::move(way.ops[leaf.number]), inputs[leaf.number], out.kinds[leaf.number], leaf, way);
      to->tensors[leaf.number] = made->output();
    }
    out.to = std::move(to);
    return out;
  }

  /// Adds this stage alone, so that it is known of what type and shape the next one finds the tensors.
  void add_to(OnWay& way) const {
    const Layout& layout = way.now;
    if (meant_ != Meant::kTyped) require_keys(layout);
    const std::vector<std::int64_t> room = meant_ == Meant::kScaled ? common_room(layout) : std::vector<std::int64_t>{};
    for (const data::Leaf& leaf : layout.structure->leaves) {
      if (!is_meant(leaf, layout)) continue;
      require_tensor(leaf);
      const Op op = meant_ == Meant::kScaled ? scaled(scale_of(leaf), room) : op_;
      data::TensorLayout& tensor = way.now.tensors[leaf.number];
      tensor = made_of({op}, tensor, leaf, way)->output();
      way.ops[leaf.number].push_back(op);
    }
  }

  bool is_named(const data::Leaf& leaf) const { return name_of(leaf) != keys_.end(); }

  std::vector<std::string>::const_iterator name_of(const data::Leaf& leaf) const {
    return std::find_if(keys_.begin(), keys_.end(), [&](const std::string& key) { return names(key, leaf); });
  }

  bool names(const std::string& key, const data::Leaf& leaf) const {
    return leaf.key == key || (meant_ == Meant::kScaled && leaf.path.starts_with("[" + key + "]"));
  }

  std::int64_t scale_of(const data::Leaf& leaf) const {
    return scales_[static_cast<std::size_t>(name_of(leaf) - keys_.begin())];
  }

  /// The crop of a part whose scale is this.
  data::CropOp scaled(std::int64_t scale, const std::vector<std::int64_t>& room) const {
    data::CropOp out = std::get<data::CropOp>(op_);
    for (std::int64_t& size : out.size) size = core::checked_mul(size, scale, "the size of a random_crop");
    out.scales.clear();
    out.room = room;
    out.scale = scale;
    return out;
  }

  /// Along each dimension, how many places behind the first one all parts have room at, at scale 1.
  std::vector<std::int64_t> common_room(const Layout& layout) const {
    const auto& crop = std::get<data::CropOp>(op_);
    std::vector<std::int64_t> out(crop.size.size(), std::numeric_limits<std::int64_t>::max());
    for (const data::Leaf& leaf : layout.structure->leaves) {
      if (leaf.kind != data::LeafKind::kTensor || !is_named(leaf)) continue;
      const Shape& shape = layout.tensors[leaf.number].shape;
      const std::vector<std::int64_t> sizes(shape.begin(), shape.end());
      std::vector<std::size_t> dims;
      try {
        dims = data::checked_dims(crop.dims, crop.size.size(), sizes, "random_crop");
      } catch (const Error& error) {
        throw of_leaf(error, leaf);
      }
      for (std::size_t i = 0; i < dims.size(); ++i) {
        // A part that is too small is told by its own conversion.
        out[i] = std::min(out[i], std::max<std::int64_t>(sizes[dims[i]] / scale_of(leaf) - crop.size[i], 0));
      }
    }
    return out;
  }

  bool is_meant(const data::Leaf& leaf, const Layout& layout) const {
    const bool is_tensor = leaf.kind == data::LeafKind::kTensor;
    if (meant_ == Meant::kScaled) return is_named(leaf);
    if (meant_ == Meant::kNamed) return keys_.empty() ? is_tensor : is_named(leaf);
    if (!is_tensor) return false;
    const DType& stored = layout.tensors[leaf.number].dtype;
    const DType& wanted = std::get<data::CastOp>(op_).dtype;
    return is_named(leaf) ? stored.is_numeric() : core::follows_dtype(stored) && core::follows_dtype(wanted);
  }

  static void require_tensor(const data::Leaf& leaf) {
    if (leaf.kind == data::LeafKind::kTensor) return;
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("{} is {}, and transforms are for tensors", leaf.path, data::kind_text(leaf.kind)));
  }

  static Error of_leaf(const Error& error, const data::Leaf& leaf) {
    return leaf.path.empty() ? error : error.prefixed(leaf.path + ": ");
  }

  static data::TensorLayout input_of(const data::TensorLayout& tensor, const Kind& kind, const OnWay& way) {
    if (kind.before != nullptr) return tensor;
    data::TensorLayout out(tensor.dtype, tensor.shape, strides_for(tensor, kind, way.keeps_order));
    out.requires_grad = tensor.requires_grad;
    return out;
  }

  /// The conversion by `ops`, which follow those of the dataset below.
  static ConversionPtr conversion_of(std::vector<Op> ops, const data::TensorLayout& input, const Kind& kind,
                                     const data::Leaf& leaf, const OnWay& way) {
    if (kind.before == nullptr) return made_of(std::move(ops), input, leaf, way);
    std::vector<Op> all = kind.before->ops();
    for (Op& op : ops) all.push_back(data::with_key(std::move(op), kind.keys()));
    return made_of(std::move(all), kind.before->input(), leaf, way);
  }

  static ConversionPtr made_of(std::vector<Op> ops, const data::TensorLayout& input, const data::Leaf& leaf,
                               const OnWay& way) {
    try {
      return std::make_shared<const Conversion>(std::move(ops), input, way.keeps_order);
    } catch (const Error& error) {
      throw of_leaf(error, leaf);
    }
  }

  /// How the payload lies when it is converted.
  static Strides strides_for(const data::TensorLayout& tensor, const Kind& kind, bool keeps_order) {
    if (!kind.in_file) return tensor.strides;
    return keeps_order ? data::dense_strides(tensor.shape, tensor.strides) : tensor.shape.contiguous_strides();
  }

  /// Something is meant, and by each key.
  void require_keys(const Layout& layout) const {
    const auto& leaves = layout.structure->leaves;
    if (keys_.empty()) {
      if (std::any_of(leaves.begin(), leaves.end(), [&](const data::Leaf& leaf) { return is_meant(leaf, layout); }))
        return;
      throw Error(ErrorCode::kInvalidArgument, "the sample has no tensor that could be transformed");
    }
    for (const std::string& key : keys_) {
      if (std::none_of(leaves.begin(), leaves.end(), [&](const data::Leaf& leaf) { return names(key, leaf); })) {
        throw_absent(key, leaves);
      }
    }
  }

  template <class Leaves>
  [[noreturn]] static void throw_absent(const std::string& key, const Leaves& leaves) {
    std::vector<std::string> names;
    for (const data::Leaf& leaf : leaves) {
      if (!leaf.key.empty() && std::find(names.begin(), names.end(), leaf.key) == names.end())
        names.push_back(leaf.key);
    }
    const std::string hint = core::did_you_mean(core::nearest_names(key, names));
    throw Error(ErrorCode::kKeyNotFound,
                core::format("none of the sample's {} has the key {}, which is that of the dict right around it{}{}",
                             core::counted(leaves.size(), "part"), core::quoted(key), hint.empty() ? "" : "; ", hint));
  }

  Op given_;  ///< before the draws of what is below were counted
  Op op_;
  std::uint32_t draws_;
  std::vector<std::string> keys_;
  Meant meant_;
  std::vector<std::int64_t> scales_;  ///< of the keys, where kScaled
  mutable std::once_flag once_;
  mutable Chain found_;
};

}  // namespace

Dataset Dataset::transformed(detail::steps::TransformOp op, const std::vector<std::string>& keys) const {
  data::require_sound(op);
  const auto* const crop = std::get_if<data::CropOp>(&op);
  const Scales scales = crop == nullptr ? Scales{} : crop->scales;
  if (!scales.empty() && !keys.empty()) {
    core::refuse("random_crop has keys beside scales, which name the parts that are cropped; leave the keys out");
  }
  data::require_samples(*this, "a transform");
  if (scales.empty()) return Dataset(std::make_shared<Transformed>(*this, std::move(op), keys, Meant::kNamed));
  std::vector<std::string> names;
  std::vector<std::int64_t> factors;
  for (const auto& [name, scale] : scales) {
    names.push_back(name);
    factors.push_back(scale);
  }
  return Dataset(
      std::make_shared<Transformed>(*this, std::move(op), std::move(names), Meant::kScaled, std::move(factors)));
}

Dataset data::typed(const Dataset& below, const DType& dtype, bool strict, const std::vector<std::string>& named) {
  if (named.empty()) {
    core::require_module_dtype(dtype, "of samples", "and convert others with cast(), or name their keys to files()");
  }
  require_samples(below, "dtype=");
  return Dataset(std::make_shared<Transformed>(below, CastOp{dtype, strict}, named, Meant::kTyped));
}

}  // namespace penstock
